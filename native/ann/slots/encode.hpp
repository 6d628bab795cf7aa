// Encode: a vector's scan code, sketch and ranking code. Included per instruction set, inside its namespace.
#pragma once

#include <algorithm>

#include "../kernels/kernels.hpp"

namespace outpace::ann::OUTPACE_ISA {

constexpr float largest_half = 65504;

// Levels 0 .. 2^bits - 1 for the coordinates, value = scale * (level - middle). The scale is searched for the
// least squared error, then replaced by the one that makes <x, decoded> = |x|^2, so that dot products come
// out unbiased.
inline float quantise(const float* x, unsigned count, int bits, std::uint8_t* levels) {
    const float top = float((1 << bits) - 1), middle = top / 2;
    float largest = 0;
    for (unsigned i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
    if (largest == 0) {
        std::memset(levels, int(middle), count);
        return 0;
    }
    // Eight bits lose next to nothing at the full range. Fewer gain from clipping the extremes.
    const int tries = bits == 8 ? 1 : 16;
    const int padded = round_up(int(count), 16);
    float best_error = std::numeric_limits<float>::infinity(), best = largest / middle;
    for (int t = 0; t < tries; ++t) {
        const float scale = largest / middle * (tries == 1 ? 1.0f : 0.25f + 0.75f * float(t + 1) / 16);
        const float inverse = 1 / scale;
        const float sum = sum_of(padded, [=](int i) {
            const floats v = load(x + i);
            floats level = v * inverse + (middle + 0.5f);
            level = level < 0 ? floats{} : level;
            level = level > top ? splat(top) : level;
            level = __builtin_convertvector(__builtin_convertvector(level, ints), floats);
            const floats gap = (level - middle) * scale - v;
            return gap * gap;
        });
        if (sum < best_error) {
            best_error = sum;
            best = scale;
        }
    }
    float square = 0, cross = 0;
    for (unsigned i = 0; i < count; ++i) {
        const float level =
            std::min(std::max(0.0f, std::floor(x[i] / best + middle + 0.5f)), top);  // NaN becomes 0
        levels[i] = std::uint8_t(level);
        square += x[i] * x[i];
        cross += x[i] * (level - middle);
    }
    return cross > 0 ? square / cross : 0;
}

inline void clear_lane(const Shape& shape, std::uint8_t* block, int lane) {
    // An infinite constant keeps the lane out of every scan.
    const std::uint16_t zero = 0, infinity = 0x7c00;
    std::memcpy(block + 2 * lane, &zero, 2);
    std::memcpy(block + 64 + 2 * lane, &infinity, 2);
    const std::uint8_t keep = lane < 16 ? 0xf0 : 0x0f;
    for (int g = 0; g < shape.chunks() * 4; ++g) block[block_head + g * 16 + (lane & 15)] &= keep;
}

// With r = x - a, s its levels as odd integers and f = |r|^2 / <r, s>:
//   |q - x|^2 = |q - a|^2 + |r|^2 - 2 <r, q - a>  ~  |q - a|^2 + (|r|^2 + 2 f <s, a>) - 2 f <s, q>.
// Folding <s, a> into the constant leaves one table per query for all anchors, and noise that scales with |q
// - a|.
inline void encode_lane(const Shape& shape, const float* vector, const float* anchor, std::uint8_t* block,
                        int lane) {
    const int reduced = shape.reduced, padded = round_up(reduced, 16), bits = shape.scan_bits,
              per = shape.per_nibble();
    alignas(64) float residual[max_reduced + line];
    std::uint8_t levels[max_reduced + line];
    for (int i = 0; i < padded; ++i) residual[i] = vector[i] - anchor[i];
    if (bits == 1)
        for (int i = 0; i < padded; ++i) levels[i] = residual[i] > 0;
    else
        quantise(residual, unsigned(reduced), bits, levels);
    std::memset(levels + reduced, 0, line);
    const float top = float((1 << bits) - 1);
    float square = 0, cross = 0, with_anchor = 0;
    for (int i = 0; i < reduced; ++i) {
        const float s = 2 * float(levels[i]) - top;
        square += residual[i] * residual[i];
        cross += residual[i] * s;
        with_anchor += anchor[i] * s;
    }
    const float factor = cross > 0 ? square / cross : 0;
    const std::uint16_t stored_factor = float_to_half(-2 * factor);
    // The constant is made for the factor as stored, so that its rounding does not meet |a|.
    const float kept = half_to_float(stored_factor) / -2;
    // Beyond the range of f16 the constant is as large as it can be, not infinite, which would mean an empty
    // lane: the estimate is then too low, which only costs a look at the sketch.
    const std::uint16_t stored_constant =
        float_to_half(std::min(square + 2 * kept * with_anchor, largest_half));
    std::memcpy(block + 2 * lane, &stored_factor, 2);
    std::memcpy(block + 64 + 2 * lane, &stored_constant, 2);
    const int shift = lane < 16 ? 0 : 4, groups = shape.groups();
    std::uint8_t* column = block + block_head + (lane & 15);
    for (int g = 0; g < groups; ++g) {
        std::uint8_t nibble = 0;
        for (int c = 0; c < per; ++c) nibble |= std::uint8_t(levels[g * per + c] << (c * bits));
        column[g * 16] = std::uint8_t((column[g * 16] & (0xf0 >> shift)) | (nibble << shift));
    }
}

inline void encode_sketch(const Shape& shape, const float* vector, std::uint8_t* sketch) {
    std::uint8_t levels[max_reduced + line] = {};
    const int reduced = shape.reduced, half = shape.half();
    const std::size_t bytes = shape.sketch_bytes();
    if (!bytes) return;
    const float scale = -2 * quantise(vector, unsigned(reduced), shape.sketch_bits, levels);
    float norm = 0;
    for (int i = 0; i < reduced; ++i) norm += vector[i] * vector[i];
    std::memset(sketch, 0, bytes);
    if (shape.sketch_bits == 4)
        for (int i = 0; i < half; ++i)
            sketch[i] = std::uint8_t(levels[i] | (i + half < reduced ? levels[i + half] << 4 : 0));
    else
        std::memcpy(sketch, levels, std::size_t(reduced));
    std::memcpy(sketch + bytes - 8, &scale, 4);
    std::memcpy(sketch + bytes - 4, &norm, 4);
}

inline void decode_sketch(const Shape& shape, const std::uint8_t* sketch, float* vector) {
    const int reduced = shape.reduced, half = shape.half();
    const float middle = shape.sketch_bits == 4 ? 7.5f : 127.5f;
    float scale;
    std::memcpy(&scale, sketch + shape.sketch_bytes() - 8, 4);
    for (int i = 0; i < reduced; ++i) {
        const int level = shape.sketch_bits == 8 ? sketch[i]
                          : i < half             ? sketch[i] & 15
                                                 : sketch[i - half] >> 4;
        vector[i] = (float(level) - middle) * scale / -2;
    }
}

inline void encode_ranked(const Shape& shape, const float* point, std::uint32_t index, std::uint8_t* codes,
                          float* scale) {
    std::uint8_t levels[max_reduced + line] = {};
    *scale = -2 * quantise(point, unsigned(shape.reduced), 8, levels);
    std::uint8_t* group = codes + std::size_t(index / 16) * std::size_t(shape.quads()) * 64;
    for (int i = 0; i < shape.reduced; ++i) group[(i / 4) * 64 + int(index % 16) * 4 + i % 4] = levels[i];
}

}  // namespace outpace::ann::OUTPACE_ISA
