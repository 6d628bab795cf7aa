#include "kmeans.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "random.hpp"
#include "store.hpp"

namespace outpace::ann {

namespace {

// From so many centres on, comparing every vector with all of them in every round would be most of a build.
constexpr std::size_t many_centres = 2048;
constexpr std::uint32_t regions = 128;
// A region's vectors are compared with this share of the centres, those nearest to its middle. An eighth
// finds the nearest for 98% of the vectors of sift and 94% of glove, and for the others one hardly farther.
constexpr std::size_t share_compared = 8;

// The members of each group, in their own order: those of group g lie from start[g] to start[g + 1].
struct Grouped {
    std::vector<std::size_t> start;
    std::vector<std::uint32_t> members;

    Grouped(const std::vector<std::uint32_t>& group_of, std::size_t groups)
        : start(groups + 1, 0), members(group_of.size()) {
        for (const std::uint32_t group : group_of) ++start[group + 1];
        std::partial_sum(start.begin(), start.end(), start.begin());
        std::vector<std::size_t> at(start.begin(), start.end() - 1);
        for (std::size_t i = 0; i < group_of.size(); ++i) members[at[group_of[i]]++] = std::uint32_t(i);
    }
};

// A near centre of every vector, mostly the nearest: good enough for a round of k-means.
std::vector<std::uint32_t> assign_by_region(const Shape& shape, const Slots& slots, const float* vectors,
                                            std::size_t count, const std::vector<float>& centres,
                                            int threads) {
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16)), lists = centres.size() / padded;
    const std::vector<float> middles =
        k_means(shape, slots, centres.data(), lists, regions, 4, lists, 0, threads);
    const Grouped grouped(assign_all(shape, slots, vectors, count, middles, threads), regions);
    std::vector<std::uint32_t> nearest(count);
    parallel(regions, threads, 1, [&](std::size_t region, std::size_t) {
        std::vector<float> away(lists);
        slots.construct->distances(middles.data() + region * padded, centres.data(), int(padded), lists,
                                   away.data());
        std::vector<Key> near;
        for (std::size_t list = 0; list < lists; ++list) near.push_back(make_key(away[list], Slot(list)));
        const auto last = near.begin() + std::ptrdiff_t(lists / share_compared);
        std::nth_element(near.begin(), last, near.end());
        near.erase(last, near.end());
        std::vector<float> compared(near.size() * padded);
        for (std::size_t c = 0; c < near.size(); ++c)
            std::memcpy(compared.data() + c * padded, centres.data() + key_slot(near[c]) * padded,
                        padded * 4);
        Ranked ranked;
        ranked.set(shape, *slots.search, compared);
        const Ranking view = ranked.view();
        constexpr std::size_t batch = 256;
        std::vector<float> rows(batch * padded);
        std::uint32_t found[batch];
        for (std::size_t at = grouped.start[region]; at < grouped.start[region + 1]; at += batch) {
            const std::size_t now = std::min(batch, grouped.start[region + 1] - at);
            for (std::size_t i = 0; i < now; ++i)
                std::memcpy(rows.data() + i * padded, vectors + grouped.members[at + i] * padded, padded * 4);
            slots.construct->assign(&shape, &view, rows.data(), now, found);
            for (std::size_t i = 0; i < now; ++i) nearest[grouped.members[at + i]] = key_slot(near[found[i]]);
        }
    });
    return nearest;
}

}  // namespace

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
    const Grouped grouped(nearest, lists);
    const auto& [start, members] = grouped;
    sizes.resize(lists);
    for (std::size_t i = 0; i < lists; ++i) sizes[i] = std::uint32_t(start[i + 1] - start[i]);
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
                           std::uint64_t seed, int threads, const Report& report) {
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
        if (report) report(double(round) / rounds);
        const auto assign = wanted < many_centres ? assign_all : assign_by_region;
        const auto nearest = assign(shape, slots, sample.data(), chosen.size(), centres, threads);
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
