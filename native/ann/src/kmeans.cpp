#include "kmeans.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "random.hpp"
#include "store.hpp"
#include "threads.hpp"

namespace outpace::ann {

std::vector<std::uint32_t> assign_all(const Shape& shape, const Slots& slots, const float* vectors,
                                      std::size_t count, const std::vector<float>& centres, int threads) {
    Ranked ranked;
    ranked.set(shape, *slots.search, centres);
    const Ranking view = ranked.view();
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
    std::vector<std::uint32_t> nearest(count);
    parallel(count, threads, 1024, [&](std::size_t begin, std::size_t end) {
        slots.construct->assign(&shape, &view, vectors + begin * padded, end - begin, nearest.data() + begin);
    });
    return nearest;
}

void move_centres(int padded_width, const float* vectors, const std::vector<std::uint32_t>& nearest,
                  int threads, std::vector<float>& centres, std::vector<std::uint32_t>& sizes) {
    const std::size_t padded = std::size_t(padded_width), lists = centres.size() / padded;
    sizes.assign(lists, 0);
    for (const std::uint32_t list : nearest) ++sizes[list];
    std::vector<std::size_t> start(lists + 1, 0);
    for (std::size_t i = 0; i < lists; ++i) start[i + 1] = start[i] + sizes[i];
    std::vector<std::uint32_t> members(nearest.size());
    {
        std::vector<std::size_t> at(start.begin(), start.end() - 1);
        for (std::size_t i = 0; i < nearest.size(); ++i) members[at[nearest[i]]++] = std::uint32_t(i);
    }
    // A list's members are added in their order, by one thread: the sum is the same for any number of
    // threads.
    parallel(lists, threads, 64, [&](std::size_t begin, std::size_t end) {
        std::vector<float> sum(padded);
        for (std::size_t list = begin; list < end; ++list) {
            if (!sizes[list]) continue;
            std::fill(sum.begin(), sum.end(), 0.0f);
            for (std::size_t m = start[list]; m < start[list + 1]; ++m) {
                const float* x = vectors + std::size_t(members[m]) * padded;
                for (std::size_t t = 0; t < padded; ++t) sum[t] += x[t];
            }
            const float share = 1.0f / float(sizes[list]);
            for (std::size_t t = 0; t < padded; ++t) centres[list * padded + t] = sum[t] * share;
        }
    });
}

std::vector<float> k_means(const Shape& shape, const Slots& slots, const float* vectors, std::size_t count,
                           std::uint32_t wanted, int rounds, std::size_t sample_per_centre,
                           std::uint64_t seed, int threads) {
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
    Random random(seed ^ 0x6b6d65616e73u);
    const std::vector<std::size_t> chosen =
        random.sample(count, std::max<std::size_t>(wanted, sample_per_centre * wanted));
    std::vector<float> sample(chosen.size() * padded);
    for (std::size_t i = 0; i < chosen.size(); ++i)
        std::memcpy(sample.data() + i * padded, vectors + chosen[i] * padded, padded * 4);
    std::vector<float> centres(std::size_t(wanted) * padded);
    const std::vector<std::size_t> first = random.sample(chosen.size(), wanted);
    for (std::size_t i = 0; i < wanted; ++i)
        std::memcpy(centres.data() + i * padded, sample.data() + first[i % first.size()] * padded,
                    padded * 4);
    std::vector<std::uint32_t> sizes;
    for (int round = 0; round < rounds; ++round) {
        const auto nearest = assign_all(shape, slots, sample.data(), chosen.size(), centres, threads);
        move_centres(int(padded), sample.data(), nearest, threads, centres, sizes);
        if (round + 1 == rounds) break;
        // An empty centre halves the largest list: it takes that centre's place, moved towards one of its
        // vectors.
        std::vector<std::uint32_t> by_size(sizes.size());
        std::iota(by_size.begin(), by_size.end(), 0u);
        std::stable_sort(by_size.begin(), by_size.end(), [&](auto a, auto b) { return sizes[a] > sizes[b]; });
        std::size_t donor = 0;
        for (std::uint32_t list = 0; list < wanted; ++list) {
            if (sizes[list]) continue;
            const std::uint32_t from = by_size[donor++ % by_size.size()];
            const float* towards = sample.data() + random.below(chosen.size()) * padded;
            for (std::size_t t = 0; t < padded; ++t) {
                const float centre = centres[from * padded + t];
                centres[list * padded + t] = centre + 0.02f * (towards[t] - centre);
            }
        }
    }
    return centres;
}

}  // namespace outpace::ann
