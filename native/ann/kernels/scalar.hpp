// Scalar kernels: slow, plainly right, and the truth the other instruction sets are tested against.
#pragma once

#include "portable.hpp"

namespace outpace::ann::OUTPACE_ISA {

inline void store_bytes(const ints* whole, std::uint8_t* out) {
    for (int i = 0; i < 16; ++i) out[i] = std::uint8_t(whole[i / width][i % width]);
}

// The integer sums of a block's 32 codes over the query's tables.
inline void scan_sums(const std::uint8_t* block, const std::uint8_t* table, int chunks, std::int32_t* sums) {
    for (int v = 0; v < lanes; ++v) sums[v] = 0;
    const std::uint8_t* codes = block + block_head;
    for (int g = 0; g < chunks * 4; ++g)
        for (int j = 0; j < 16; ++j) {
            const std::uint8_t byte = codes[g * 16 + j];
            sums[j] += table[g * 16 + (byte & 15)];
            sums[j + 16] += table[g * 16 + (byte >> 4)];
        }
}

// Which of a block's vectors may be nearer than `limit`: estimate = constant + factor * (sum * step +
// offset).
inline std::uint32_t scan_block(const std::uint8_t* block, const std::uint8_t* table, int chunks, float step,
                                float offset, float limit) {
    std::int32_t sums[lanes];
    scan_sums(block, table, chunks, sums);
    std::uint16_t factor[lanes], constant[lanes];
    std::memcpy(factor, block, 64);
    std::memcpy(constant, block + 64, 64);
    std::uint32_t mask = 0;
    for (int v = 0; v < lanes; ++v) {
        const float inner = float(sums[v]) * step + offset;
        const float estimate = half_to_float(constant[v]) + half_to_float(factor[v]) * inner;
        mask |= std::uint32_t(estimate < limit) << v;
    }
    return mask;
}

inline std::int32_t sketch_dot(const std::uint8_t* code, std::size_t bytes, int bits, const std::int8_t* low,
                               const std::int8_t* high) {
    std::int32_t dot = 0;
    if (bits == 4)
        for (std::size_t i = 0; i < bytes; ++i) dot += (code[i] & 15) * low[i] + (code[i] >> 4) * high[i];
    else
        for (std::size_t i = 0; i < bytes; ++i) dot += code[i] * low[i];
    return dot;
}

// Distances to `count` sketches; reads nothing past them.
inline void sketch_distances(const Shape& shape, const std::uint8_t* codes, const Slot* slots, int count,
                             const QueryCodes& query, float* out) {
    const std::size_t bytes = shape.sketch_bytes();
    const float middle = shape.sketch_bits == 4 ? 7.5f : 127.5f;
    const float zero = -middle * query.byte_step * float(query.byte_sum);
    for (int i = 0; i < count; ++i) {
        const std::uint8_t* code = codes + std::size_t(slots[i]) * bytes;
        float scale, norm;
        std::memcpy(&scale, code + bytes - 8, 4);
        std::memcpy(&norm, code + bytes - 4, 4);
        const float dot = float(sketch_dot(code, bytes, shape.sketch_bits, query.low, query.high));
        const float distance = (dot * query.byte_step + zero) * scale + (norm + query.norm);
        out[i] = distance > 0 ? distance : 0;
    }
}

// Sixteen lists at a time: centre codes lie as [16 lists][4 bytes] per quad of coordinates.
inline void rank_lists(const std::uint8_t* codes, const float* scale, const float* constant, int groups,
                       int quads, const QueryCodes& query, float* out) {
    const float zero = -127.5f * query.byte_step * float(query.byte_sum);
    for (int g = 0; g < groups; ++g)
        for (int j = 0; j < 16; ++j) {
            std::int32_t dot = 0;
            for (int quad = 0; quad < quads; ++quad)
                for (int c = 0; c < 4; ++c)
                    dot +=
                        codes[(std::size_t(g) * quads + quad) * 64 + j * 4 + c] * query.bytes[quad * 4 + c];
            out[g * 16 + j] =
                (float(dot) * query.byte_step + zero) * scale[g * 16 + j] + constant[g * 16 + j];
        }
}

// Which of sixteen numbers are at most `limit`.
inline std::uint32_t at_most(const float* x, float limit) {
    std::uint32_t mask = 0;
    for (int i = 0; i < 16; ++i) mask |= std::uint32_t(x[i] <= limit) << i;
    return mask;
}

inline void prefetch(const void*) {}

inline float l2_half(const float* query, const std::uint16_t* row, int padded) {
    float sum = 0;
    for (int i = 0; i < padded; ++i) {
        const float x = query[i] - half_to_float(row[i]);
        sum += x * x;
    }
    return sum;
}
inline float dot_half(const float* query, const std::uint16_t* row, int padded) {
    float sum = 0;
    for (int i = 0; i < padded; ++i) sum += query[i] * half_to_float(row[i]);
    return sum;
}
inline std::int32_t l2_bytes(const std::uint8_t* query, const std::uint8_t* row, int padded) {
    std::int32_t sum = 0;
    for (int i = 0; i < padded; ++i) {
        const int x = int(query[i]) - int(row[i]);
        sum += x * x;
    }
    return sum;
}

// Sixteen-bit fixed point: out[i] = <matrix row i, query>. Rows and query are scaled so that the product of
// their norms is below 2^31, hence no partial sum overflows (Cauchy-Schwarz), and every instruction set gets
// equal integers.
inline void project(const std::int16_t* matrix, int rows, int padded, const std::int16_t* query,
                    std::int32_t* out) {
    for (int i = 0; i < rows; ++i) {
        std::int32_t sum = 0;
        for (int j = 0; j < padded; ++j) sum += std::int32_t(matrix[std::size_t(i) * padded + j]) * query[j];
        out[i] = sum;
    }
}

}  // namespace outpace::ann::OUTPACE_ISA
