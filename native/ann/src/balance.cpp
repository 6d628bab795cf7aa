#include "balance.hpp"

#include <algorithm>
#include <array>

#include "threads.hpp"

namespace outpace::ann {
namespace {

// A list gives up at most this many vectors: more would be moved far.
constexpr std::uint32_t most_moved = 12;
constexpr std::size_t choices = 8;  // lists that are asked for room, the nearest first

struct Mover {
    std::uint32_t vector;
    std::array<std::uint32_t, choices> to;
};

}  // namespace

void fill_blocks(const Shape& shape, const Slots& slots, const float* vectors,
                 const std::vector<float>& centres, const std::vector<std::uint32_t>& reserved, int threads,
                 std::vector<std::uint32_t>& nearest) {
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16)), lists = centres.size() / padded;
    if (lists <= choices) return;
    std::vector<std::vector<std::uint32_t>> members(lists);
    for (std::size_t i = 0; i < nearest.size(); ++i) members[nearest[i]].push_back(std::uint32_t(i));
    std::vector<std::vector<Mover>> movers(lists);
    parallel(lists, threads, 8, [&](std::size_t begin, std::size_t end) {
        std::vector<Key> far, near;
        std::vector<float> distance(lists);
        for (std::size_t list = begin; list < end; ++list) {
            const std::size_t size = members[list].size() + reserved[list];
            const std::uint32_t rest = std::uint32_t(size % lanes);
            if (rest == 0 || rest > most_moved || rest > members[list].size() || size < lanes) continue;
            far.clear();
            for (const std::uint32_t vector : members[list]) {
                float away;
                slots.construct->distances(vectors + std::size_t(vector) * padded,
                                           centres.data() + list * padded, int(padded), 1, &away);
                far.push_back(make_key(away, vector));
            }
            std::sort(far.begin(), far.end(), std::greater<>());
            for (std::uint32_t r = 0; r < rest; ++r) {
                const std::uint32_t vector = key_slot(far[r]);
                slots.construct->distances(vectors + std::size_t(vector) * padded, centres.data(),
                                           int(padded), lists, distance.data());
                near.clear();
                for (std::size_t other = 0; other < lists; ++other)
                    if (other != list) near.push_back(make_key(distance[other], Slot(other)));
                std::partial_sort(near.begin(), near.begin() + choices, near.end());
                Mover mover{vector, {}};
                for (std::size_t c = 0; c < choices; ++c) mover.to[c] = key_slot(near[c]);
                movers[list].push_back(mover);
            }
        }
    });
    std::vector<std::uint32_t> room(lists);
    for (std::size_t list = 0; list < lists; ++list)
        room[list] = std::uint32_t((lanes - (members[list].size() + reserved[list]) % lanes) % lanes);
    // The shortest rests first: they cost the fewest moves for a block.
    std::vector<std::uint32_t> order;
    for (std::size_t list = 0; list < lists; ++list)
        if (!movers[list].empty()) order.push_back(std::uint32_t(list));
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return movers[a].size() < movers[b].size(); });
    std::vector<bool> took(lists, false);
    for (const std::uint32_t list : order) {
        if (took[list]) continue;  // its last block has been filled by others meanwhile
        std::vector<std::uint32_t> target;
        for (const Mover& mover : movers[list]) {
            for (const std::uint32_t to : mover.to)
                if (room[to] && to != list) {
                    --room[to];
                    target.push_back(to);
                    break;
                }
        }
        if (target.size() < movers[list].size()) {
            for (const std::uint32_t to : target) ++room[to];  // all or none: a block is saved or it is not
            continue;
        }
        for (std::size_t m = 0; m < target.size(); ++m) {
            nearest[movers[list][m].vector] = target[m];
            took[target[m]] = true;
        }
        room[list] = 0;
    }
}

}  // namespace outpace::ann
