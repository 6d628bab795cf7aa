// Portable kernels: what every instruction set shares, in vector types the compiler lowers to whatever there
// is.
//
// This file is included once per instruction set, inside that set's own namespace (OUTPACE_ISA), and compiled
// with its flags. Nothing here may live outside that namespace: a shared inline function would be compiled
// for the newest set and then run on the oldest.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "outpace/ann/layout.hpp"
#include "outpace/ann/query.hpp"

#ifndef OUTPACE_ISA
#error "OUTPACE_ISA names the instruction set this file is compiled for"
#endif

namespace outpace::ann::OUTPACE_ISA {

using f32x4 = float __attribute__((vector_size(16)));
using f32x8 = float __attribute__((vector_size(32)));
using f32x16 = float __attribute__((vector_size(64)));

// As many floats as one register holds. A wider vector type compiles too, but gcc keeps it in memory between
// any two operations, which costs more than all of them.
#if OUTPACE_ISA_LEVEL == 3
inline constexpr int width = 16;
#elif OUTPACE_ISA_LEVEL == 2
inline constexpr int width = 8;
#else
inline constexpr int width = 4;
#endif
using floats = float __attribute__((vector_size(4 * width)));
using bytes = std::uint8_t __attribute__((vector_size(width)));
using ints = std::int32_t __attribute__((vector_size(4 * width)));

inline floats load(const float* at) {
    floats value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
inline floats splat(float value) {
    return value - floats{};
}

// A fixed order of additions, halves upon halves: the same sum on every instruction set, up to fused
// multiplication. Each half is a register, since a loop over lanes would go through memory.
inline float total(f32x4 v) {
    return (v[0] + v[2]) + (v[1] + v[3]);
}
inline float total(f32x8 v) {
    f32x4 half[2];
    std::memcpy(half, &v, sizeof v);
    return total(half[0] + half[1]);
}
inline float total(f32x16 v) {
    f32x8 half[2];
    std::memcpy(half, &v, sizeof v);
    return total(half[0] + half[1]);
}
template <int count>
inline float total(floats* parts) {
    if constexpr (count == 1) {
        return total(*parts);
    } else {
        for (int i = 0; i < count / 2; ++i) parts[i] += parts[i + count / 2];
        return total<count / 2>(parts);
    }
}

// Sixteen integers within 0 .. 255 as bytes. Each instruction set has its own: compilers narrow through
// memory.
inline void store_bytes(const ints* whole, std::uint8_t* out);

// Half precision to single, exactly, subnormals, infinities and NaN included.
inline float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = std::uint32_t(half & 0x8000) << 16;
    std::uint32_t bits = std::uint32_t(half & 0x7fff) << 13;
    float value;
    std::memcpy(&value, &bits, 4);
    value *= 0x1p112f;  // rebias, which also makes subnormals right
    if ((half & 0x7fff) >= 0x7c00) {
        bits |= 0x7f800000;
        std::memcpy(&value, &bits, 4);
    }
    std::uint32_t out;
    std::memcpy(&out, &value, 4);
    out |= sign;
    std::memcpy(&value, &out, 4);
    return value;
}

// Single to half, to nearest even; beyond the range to infinity.
inline std::uint16_t float_to_half(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const std::uint16_t sign = std::uint16_t((bits >> 16) & 0x8000);
    bits &= 0x7fffffff;
    if (bits >= 0x47800000)  // 65536 and more, or NaN
        return sign | (bits > 0x7f800000 ? 0x7e00 : 0x7c00);
    if (bits < 0x38800000) {  // subnormal: add the smallest normal's unit and let the adder round
        float magnitude;
        std::memcpy(&magnitude, &bits, 4);
        magnitude += 0.5f;
        std::memcpy(&bits, &magnitude, 4);
        return sign | std::uint16_t(bits - 0x3f000000);
    }
    bits += 0xc8000fff + ((bits >> 13) & 1);
    return sign | std::uint16_t(bits >> 13);
}

// Adds up term(i) over `padded` coordinates, a multiple of sixteen, in 32 lanes: enough chains to hide the
// latency of an addition, and the same chains on every instruction set.
template <class Term>
inline float sum_of(int padded, Term term) {
    constexpr int parts = 32 / width;
    floats sum[parts] = {};
    int i = 0;
    for (; i + 32 <= padded; i += 32)
        for (int j = 0; j < parts; ++j) sum[j] += term(i + j * width);
    if (i < padded)
        for (int j = 0; j < parts / 2; ++j) sum[j] += term(i + j * width);
    return total<parts>(sum);
}

inline float l2_float(const float* a, const float* b, int padded) {
    return sum_of(padded, [=](int i) {
        const floats gap = load(a + i) - load(b + i);
        return gap * gap;
    });
}

inline float dot_float(const float* a, const float* b, int padded) {
    return sum_of(padded, [=](int i) { return load(a + i) * load(b + i); });
}

// The largest magnitude of `padded` coordinates, and never zero. Compilers may not reorder a maximum by
// themselves.
inline float largest_size(const float* x, int padded) {
    floats highest = {}, lowest = {};
    for (int i = 0; i < padded; i += width) {
        const floats here = load(x + i);
        highest = here > highest ? here : highest;
        lowest = here < lowest ? here : lowest;
    }
    float largest = 1e-20f;
    for (int i = 0; i < width; ++i) {
        largest = highest[i] > largest ? highest[i] : largest;
        largest = -lowest[i] > largest ? -lowest[i] : largest;
    }
    return largest;
}

// The tables for nibbles of `per` coordinates, and the sum that all-zero entries stand for.
template <int per>
inline float fill_tables(const float* q, int groups, int top, float& step, std::uint8_t* table) {
    constexpr int bits = 4 / per, top_level = (1 << bits) - 1, parts = 16 / width;
    alignas(64) float reach[max_chunks * 4 + 16];
    for (int g = 0; g < groups; ++g) {
        float sum = 0;
        for (int c = 0; c < per; ++c) sum += std::fabs(q[g * per + c]);
        reach[g] = sum * float(top_level);
    }
    const int padded = round_up(groups, 16);
    for (int g = groups; g < padded; ++g) reach[g] = 0;
    const float widest = largest_size(reach, padded);
    step = 2 * widest / float(top);
    const float unit = float(top) / (2 * widest);
    floats value[per][parts];  // of coordinate c in nibble j
    for (int c = 0; c < per; ++c)
        for (int j = 0; j < 16; ++j)
            value[c][j / width][j % width] = float(2 * ((j >> (c * bits)) & top_level) - top_level) * unit;
    for (int g = 0; g < groups; ++g) {
        ints whole[parts];
        for (int p = 0; p < parts; ++p) {
            floats entry = splat(reach[g] * unit + 0.5f);
            for (int c = 0; c < per; ++c) entry += q[g * per + c] * value[c][p];
            whole[p] = __builtin_convertvector(entry, ints);
        }
        store_bytes(whole, table + g * 16);
    }
    return -sum_of(padded, [&reach](int i) { return load(reach + i); });
}

// The scan tables of one query. Entry j of a group is the dot product of the nibble's coordinate values with
// the query's coordinates, moved to start at zero and scaled: entries are at most 255 / chunks, so that no
// sum of a whole code overflows eight bits and the scan needs no widening.
inline void make_tables(const Shape& shape, QueryCodes& query) {
    const int groups = shape.groups(), chunks = shape.chunks();
    const int top = 255 / chunks < 127 ? 255 / chunks : 127;
    const float* q = query.reduced;  // zero-padded past `reduced`
    query.table_base = shape.scan_bits == 1   ? fill_tables<4>(q, groups, top, query.table_step, query.table)
                       : shape.scan_bits == 2 ? fill_tables<2>(q, groups, top, query.table_step, query.table)
                                              : fill_tables<1>(q, groups, top, query.table_step, query.table);
    std::memset(query.table + groups * 16, 0, std::size_t(chunks * 4 - groups) * 16);
}

// The query in signed bytes, for sketches and for ranking lists.
inline void make_bytes(const Shape& shape, QueryCodes& query) {
    const int reduced = shape.reduced, half = shape.half(), padded = round_up(reduced, 16);
    const float largest = largest_size(query.reduced, padded);
    query.norm = dot_float(query.reduced, query.reduced, padded);
    query.byte_step = largest / 127;
    const float unit = 127 / largest;
    std::int32_t sum = 0;
    for (int i = 0; i < padded; ++i) {
        const float scaled = query.reduced[i] * unit;
        const std::int32_t whole = std::int32_t(scaled + (scaled < 0 ? -0.5f : 0.5f));
        query.bytes[i] = std::int8_t(whole);
        sum += whole;
    }
    query.byte_sum = sum;
    std::memset(query.bytes + padded, 0, line);
    const std::size_t bytes = shape.sketch_bytes();
    std::memset(query.low, 0, bytes);
    std::memset(query.high, 0, bytes);
    if (shape.sketch_bits == 4) {
        std::memcpy(query.low, query.bytes, std::size_t(half));
        std::memcpy(query.high, query.bytes + half, std::size_t(reduced - half));
    } else {
        std::memcpy(query.low, query.bytes, std::size_t(reduced));
    }
}

}  // namespace outpace::ann::OUTPACE_ISA
