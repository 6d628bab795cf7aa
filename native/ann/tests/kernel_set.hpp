// Kernel set: the kernels of one instruction set as a table of functions, so that two sets fit in one
// program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "outpace/ann/layout.hpp"
#include "outpace/ann/query.hpp"

namespace outpace::ann {

// What callers guarantee, and all that kernels may read or write:
//   block       block_head + 64 * chunks bytes;  table  64 * chunks bytes on a cache line
//   sketches    whole sketches of shape.sketch_bytes(), up to the last slot;  slots, out  `count` of them
//   ranking     groups * quads * 64 bytes;  scale, constant, out  groups * 16 floats
//   QueryCodes  bytes are zero for a line past `reduced` padded to sixteen, low and high up to
//   sketch_bytes(); no byte
//               is -128, and byte_sum is the sum of bytes
//   rows        padded to 16 floats, 32 halves, 64 bytes or 32 fixed point numbers, and so is the query
struct KernelSet {
    void (*scan_sums)(const std::uint8_t* block, const std::uint8_t* table, int chunks, std::int32_t* sums);
    std::uint32_t (*scan_block)(const std::uint8_t* block, const std::uint8_t* table, int chunks, float step,
                                float offset, float limit);
    void (*sketch_distances)(const Shape& shape, const std::uint8_t* codes, const Slot* slots, int count,
                             const QueryCodes& query, float* out);
    void (*rank_lists)(const std::uint8_t* codes, const float* scale, const float* constant, int groups,
                       int quads, const QueryCodes& query, float* out);
    void (*prefetch)(const void* at);
    float (*l2_half)(const float* query, const std::uint16_t* row, int padded);
    float (*dot_half)(const float* query, const std::uint16_t* row, int padded);
    std::int32_t (*l2_bytes)(const std::uint8_t* query, const std::uint8_t* row, int padded);
    void (*project)(const std::int16_t* matrix, int rows, int padded, const std::int16_t* query,
                    std::int32_t* out);
    float (*l2_float)(const float* a, const float* b, int padded);
    float (*dot_float)(const float* a, const float* b, int padded);
    float (*half_to_float)(std::uint16_t half);
    std::uint16_t (*float_to_half)(float value);
    void (*make_tables)(const Shape& shape, QueryCodes& query);
    void (*make_bytes)(const Shape& shape, QueryCodes& query);
};

}  // namespace outpace::ann

#define OUTPACE_DECLARE_KERNEL_SET(name) \
    namespace outpace::ann::name {       \
    const KernelSet& kernel_set();       \
    }
