// Slots: the three modules that can be replaced, each behind one table of C functions.
//
// Inside a slot the compiler sees everything and inlines; between slots only these tables stand, so that one
// slot can be compiled alone and loaded into a running index. A table's `version` must equal slot_version, or
// it is refused.
#pragma once

#include <cstddef>
#include <cstdint>

#include "outpace/ann/ground.hpp"

namespace outpace::ann {

inline constexpr std::int32_t slot_version = 2;

struct Scratch;  // a search slot's working memory for one thread at a time

// refine: the exact distances of the candidates a search kept, and the nearest of them.
struct RefineTable {
    std::int32_t version;
    // Exact distances (the metric's own, smaller is nearer) from the query to `count` slots.
    void (*distances)(const Ground* ground, const QueryCodes* query, const Slot* slots, std::size_t count,
                      float* out);
    // Moves the nearest `k` of `count` candidates to `out`, nearest first, ties by slot; returns how many
    // there are.
    std::size_t (*refine)(const Ground* ground, const QueryCodes* query, const Key* candidates,
                          std::size_t count, std::size_t k, Slot* slots, float* out);
};

// search: packing, scanning and walking.
struct SearchTable {
    std::int32_t version;
    Scratch* (*make_scratch)();
    void (*free_scratch)(Scratch* scratch);
    // Fills all of the query from a vector as given, of the index's dimension; returns its squared length,
    // which is not finite where the vector is not.
    float (*ingest)(const Ground* ground, const float* given, QueryCodes* query);
    // Fills what the cascade needs from query->reduced.
    void (*prepare)(const Ground* ground, QueryCodes* query);
    // The candidates worth refining, in no order, at most settings->depth; `allowed` is one bit per slot, or
    // null.
    std::size_t (*candidates)(const Ground* ground, Scratch* scratch, const QueryCodes* query,
                              const Settings* settings, const std::uint32_t* allowed, const Key** out,
                              Counters* counters);
    // Codes of one vector (reduced coordinates, zero-padded to sixteen).
    void (*encode_lane)(const Shape* shape, const float* vector, const float* anchor, std::uint8_t* block,
                        int lane);
    void (*clear_lane)(const Shape* shape, std::uint8_t* block, int lane);
    void (*encode_sketch)(const Shape* shape, const float* vector, std::uint8_t* sketch);
    void (*encode_ranked)(const Shape* shape, const float* point, std::uint32_t index, std::uint8_t* codes,
                          float* scale);
    // Reads a sketch back, to an approximation.
    void (*decode_sketch)(const Shape* shape, const std::uint8_t* sketch, float* vector);
};

// construct: which list a vector belongs to, and which neighbours a node keeps. All in reduced coordinates,
// whose rows are zero-padded to sixteen floats.
struct ConstructTable {
    std::int32_t version;
    // The nearest ranked point of each of `count` vectors.
    void (*assign)(const Shape* shape, const Ranking* ranking, const float* vectors, std::size_t count,
                   std::uint32_t* nearest);
    // Squared distances from one vector to `count` rows.
    void (*distances)(const float* vector, const float* rows, int padded, std::size_t count, float* out);
    // Which of `count` rows, sorted by their distance from the node, become its neighbours: indices, at most
    // `degree`.
    std::size_t (*prune)(const float* rows, const float* distance, int padded, std::size_t count, int degree,
                         std::uint32_t* kept);
    // 16-bit fixed point products of a matrix and a vector; every instruction set gives the same integers.
    void (*project)(const std::int16_t* matrix, int rows, int padded, const std::int16_t* vector,
                    std::int32_t* out);
};

struct Slots {
    const RefineTable* refine = nullptr;
    const SearchTable* search = nullptr;
    const ConstructTable* construct = nullptr;
};

}  // namespace outpace::ann

// What a module exports; a module may hold one slot or several.
#define OUTPACE_ANN_EXPORT extern "C" __attribute__((visibility("default")))

OUTPACE_ANN_EXPORT const outpace::ann::RefineTable* outpace_ann_refine();
OUTPACE_ANN_EXPORT const outpace::ann::SearchTable* outpace_ann_search();
OUTPACE_ANN_EXPORT const outpace::ann::ConstructTable* outpace_ann_construct();
