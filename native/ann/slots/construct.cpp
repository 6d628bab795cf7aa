// Construct: assign vectors to lists, and choose the neighbours of graph nodes.
#include <algorithm>

#include "../kernels/kernels.hpp"
#include "outpace/ann/slots.hpp"

namespace outpace::ann::OUTPACE_ISA {
namespace {

void assign(const Shape* shape, const Ranking* ranking, const float* vectors, std::size_t count,
            std::uint32_t* nearest) {
    const int padded = round_up(shape->reduced, 16);
    // Ranked in strips that stay in the first-level cache together with the strip's distances.
    constexpr std::uint32_t strip = 32;
    alignas(64) float rank[strip * 16];
    QueryCodes* query = new QueryCodes;
    std::memset(query->reduced, 0, sizeof query->reduced);
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(query->reduced, vectors + i * std::size_t(padded), std::size_t(padded) * 4);
        make_bytes(*shape, *query);
        float best = std::numeric_limits<float>::infinity();
        std::uint32_t best_at = 0;
        for (std::uint32_t group = 0; group < ranking->groups(); group += strip) {
            const std::uint32_t now = std::min(strip, ranking->groups() - group);
            rank_lists(ranking->codes + std::size_t(group) * std::size_t(shape->quads()) * 64,
                       ranking->scale + group * 16, ranking->constant + group * 16, int(now), shape->quads(),
                       *query, rank);
            // Not the padding: its large constants come from a file, and a vector may lie farther off still.
            const std::uint32_t there = std::min(now * 16, ranking->count - group * 16);
            float least = rank[0];
            for (std::uint32_t j = 1; j < there; ++j) least = std::min(least, rank[j]);
            if (least < best) {
                best = least;
                best_at = group * 16 + std::uint32_t(std::find(rank, rank + there, least) - rank);
            }
        }
        nearest[i] = best_at;
    }
    delete query;
}

void distances(const float* vector, const float* rows, int padded, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = l2_float(vector, rows + i * std::size_t(padded), padded);
}

// The relative neighbourhood rule: a candidate is dropped when a kept one lies nearer to it than the node
// does. Places left over go to the nearest dropped ones: a row's 32 codes are scanned whether they are used
// or not.
std::size_t prune(const float* rows, const float* distance, int padded, std::size_t count, int degree,
                  std::uint32_t* kept) {
    std::size_t size = 0;
    std::uint32_t dropped[lanes];
    std::size_t drops = 0;
    for (std::uint32_t i = 0; i < count && size < std::size_t(degree); ++i) {
        const float* row = rows + i * std::size_t(padded);
        bool keep = true;
        for (std::size_t j = 0; j < size && keep; ++j)
            keep = l2_float(rows + kept[j] * std::size_t(padded), row, padded) > distance[i];
        if (keep)
            kept[size++] = i;
        else if (drops < lanes)
            dropped[drops++] = i;
    }
    for (std::size_t j = 0; j < drops && size < std::size_t(degree); ++j) kept[size++] = dropped[j];
    return size;
}

constexpr ConstructTable table = {slot_version, assign, distances, prune, project};

}  // namespace
}  // namespace outpace::ann::OUTPACE_ISA

OUTPACE_ANN_EXPORT const outpace::ann::ConstructTable* outpace_ann_construct() {
    return &outpace::ann::OUTPACE_ISA::table;
}
