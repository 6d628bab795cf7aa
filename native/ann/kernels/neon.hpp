// NEON kernels (ARMv8-A, AArch64), with the dot product instructions where the compiler may use them.
//
// Codes of eight bits are moved by 128 to make them signed, since there is no product of unsigned and signed
// bytes; 128 * byte_sum makes up for it, exactly.
#pragma once

#include <arm_neon.h>

#include "portable.hpp"

namespace outpace::ann::OUTPACE_ISA {

inline std::uint32_t at_most(const float* x, float limit) {
    const uint32x4_t bit = {1, 2, 4, 8};
    std::uint32_t mask = 0;
    for (int i = 0; i < 16; i += 4)
        mask |= vaddvq_u32(vandq_u32(vcleq_f32(vld1q_f32(x + i), vdupq_n_f32(limit)), bit)) << i;
    return mask;
}

inline void prefetch(const void* at) {
    __builtin_prefetch(at);
}

inline void store_bytes(const ints* whole, std::uint8_t* out) {
    const auto words = [whole](int i) { return vmovn_u32(uint32x4_t(whole[i])); };
    vst1q_u8(out, vcombine_u8(vmovn_u16(vcombine_u16(words(0), words(1))),
                              vmovn_u16(vcombine_u16(words(2), words(3)))));
}

struct ScanSums {
    uint16x8_t of[4];  // eight vectors each, in order
};

// Sums stay in eight bits until the end (see make_tables), so a group costs two look-ups and two additions.
inline ScanSums scan_lanes(const std::uint8_t* block, const std::uint8_t* table, int chunks) {
    uint8x16_t low[4] = {}, high[4] = {};
    const uint8x16_t nibble = vdupq_n_u8(15);
    const std::uint8_t* codes = block + block_head;
    for (int i = 0; i < chunks; ++i)
        for (int j = 0; j < 4; ++j) {
            const uint8x16_t code = vld1q_u8(codes + i * 64 + j * 16),
                             entry = vld1q_u8(table + i * 64 + j * 16);
            low[j] = vaddq_u8(low[j], vqtbl1q_u8(entry, vandq_u8(code, nibble)));
            high[j] = vaddq_u8(high[j], vqtbl1q_u8(entry, vshrq_n_u8(code, 4)));
        }
    const auto first = [](const uint8x16_t* v) {
        return vaddq_u16(vaddl_u8(vget_low_u8(v[0]), vget_low_u8(v[1])),
                         vaddl_u8(vget_low_u8(v[2]), vget_low_u8(v[3])));
    };
    const auto second = [](const uint8x16_t* v) {
        return vaddq_u16(vaddl_high_u8(v[0], v[1]), vaddl_high_u8(v[2], v[3]));
    };
    return {{first(low), second(low), first(high), second(high)}};
}

inline void scan_sums(const std::uint8_t* block, const std::uint8_t* table, int chunks, std::int32_t* sums) {
    const ScanSums scanned = scan_lanes(block, table, chunks);
    for (int i = 0; i < 4; ++i) {
        vst1q_s32(sums + i * 8, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(scanned.of[i]))));
        vst1q_s32(sums + i * 8 + 4, vreinterpretq_s32_u32(vmovl_high_u16(scanned.of[i])));
    }
}

inline float32x4_t load_halves(const void* at) {
    uint16x4_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

inline std::uint32_t scan_block(const std::uint8_t* block, const std::uint8_t* table, int chunks, float step,
                                float offset, float limit) {
    const ScanSums scanned = scan_lanes(block, table, chunks);
    const float32x4_t steps = vdupq_n_f32(step), offsets = vdupq_n_f32(offset), limits = vdupq_n_f32(limit);
    const auto passes = [&](uint32x4_t sums, int at) {
        const float32x4_t inner = vfmaq_f32(offsets, vcvtq_f32_u32(sums), steps);
        const float32x4_t estimate = vfmaq_f32(load_halves(block + 64 + at), load_halves(block + at), inner);
        return vmovn_u32(vcltq_f32(estimate, limits));
    };
    static constexpr std::uint8_t weight[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x8_t weights = vld1_u8(weight);
    std::uint32_t mask = 0;
    for (int i = 0; i < 4; ++i) {
        const uint16x4_t near = passes(vmovl_u16(vget_low_u16(scanned.of[i])), i * 16);
        const uint16x4_t far = passes(vmovl_high_u16(scanned.of[i]), i * 16 + 8);
        const uint8x8_t eight = vmovn_u16(vcombine_u16(near, far));
        mask |= std::uint32_t(vaddv_u8(vand_u8(eight, weights))) << (8 * i);
    }
    return mask;
}

inline int8x16_t moved(const std::uint8_t* code) {
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(code), vdupq_n_u8(128)));
}

// Adds the products of sixteen signed bytes with query bytes within +-127. Two products of 128 * 127 fit 16
// bits.
inline int32x4_t add_products(int32x4_t sum, int8x16_t code, int8x16_t query) {
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(sum, code, query);
#else
    return vpadalq_s16(sum, vmlal_high_s8(vmull_s8(vget_low_s8(code), vget_low_s8(query)), code, query));
#endif
}

inline int32x4_t nibble_products(const std::uint8_t* code, std::size_t bytes, const std::int8_t* low,
                                 const std::int8_t* high) {
    const uint8x16_t nibble = vdupq_n_u8(15);
    int32x4_t sum = vdupq_n_s32(0), other = sum;
    for (std::size_t i = 0; i < bytes; i += 64) {
#ifndef __ARM_FEATURE_DOTPROD
        // A line adds 8 * 15 * 127 = 15240 at most to either of these.
        int16x8_t lows = vdupq_n_s16(0), highs = lows;
#endif
        for (std::size_t j = i; j < i + 64; j += 16) {
            const uint8x16_t both = vld1q_u8(code + j);
            const int8x16_t first = vreinterpretq_s8_u8(vandq_u8(both, nibble)),
                            second = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
            const int8x16_t x = vld1q_s8(low + j), y = vld1q_s8(high + j);
#ifdef __ARM_FEATURE_DOTPROD
            sum = vdotq_s32(sum, first, x);
            other = vdotq_s32(other, second, y);
#else
            lows = vmlal_high_s8(vmlal_s8(lows, vget_low_s8(first), vget_low_s8(x)), first, x);
            highs = vmlal_high_s8(vmlal_s8(highs, vget_low_s8(second), vget_low_s8(y)), second, y);
#endif
        }
#ifndef __ARM_FEATURE_DOTPROD
        sum = vpadalq_s16(sum, lows);
        other = vpadalq_s16(other, highs);
#endif
    }
    return vaddq_s32(sum, other);
}

inline int32x4_t byte_products(const std::uint8_t* code, std::size_t bytes, const std::int8_t* query) {
    int32x4_t sum = vdupq_n_s32(0), other = sum;
    for (std::size_t i = 0; i < bytes; i += 32) {
        sum = add_products(sum, moved(code + i), vld1q_s8(query + i));
        other = add_products(other, moved(code + i + 16), vld1q_s8(query + i + 16));
    }
    return vaddq_s32(sum, other);
}

inline void sketch_distances(const Shape& shape, const std::uint8_t* codes, const Slot* slots, int count,
                             const QueryCodes& query, float* out) {
    const std::size_t bytes = shape.sketch_bytes();
    const bool nibbles = shape.sketch_bits == 4;
    const float middle = nibbles ? 7.5f : 127.5f;
    const int32x4_t shift = vdupq_n_s32(nibbles ? 0 : 128 * query.byte_sum);
    const float32x4_t step = vdupq_n_f32(query.byte_step), norms = vdupq_n_f32(query.norm),
                      zero = vdupq_n_f32(-middle * query.byte_step * float(query.byte_sum));
    for (int i = 0; i < count; i += 4) {
        int32x4_t sum[4];
        float32x2_t tail[4];  // scale and norm
        for (int j = 0; j < 4; ++j) {
            const std::uint8_t* at = codes + std::size_t(slots[i + j < count ? i + j : i]) * bytes;
            sum[j] = nibbles ? nibble_products(at, bytes, query.low, query.high)
                             : byte_products(at, bytes, query.low);
            std::memcpy(&tail[j], at + bytes - 8, 8);
        }
        const int32x4_t four = vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3]));
        const float32x4_t dot = vfmaq_f32(zero, vcvtq_f32_s32(vaddq_s32(four, shift)), step);
        const float32x4_t first = vcombine_f32(tail[0], tail[1]), second = vcombine_f32(tail[2], tail[3]);
        const float32x4_t scale = vuzp1q_f32(first, second), norm = vuzp2q_f32(first, second);
        // maxnm takes the number where the other is not one, as the scalar comparison does.
        const float32x4_t distance =
            vmaxnmq_f32(vfmaq_f32(vaddq_f32(norm, norms), dot, scale), vdupq_n_f32(0));
        std::memcpy(out + i, &distance, std::size_t(i + 4 <= count ? 4 : count - i) * 4);
    }
}

inline void rank_lists(const std::uint8_t* codes, const float* scale, const float* constant, int groups,
                       int quads, const QueryCodes& query, float* out) {
    const int32x4_t shift = vdupq_n_s32(128 * query.byte_sum);
    const float32x4_t step = vdupq_n_f32(query.byte_step),
                      zero = vdupq_n_f32(-127.5f * query.byte_step * float(query.byte_sum));
    const auto word = [&query](int quad) {
        std::int32_t four;
        std::memcpy(&four, query.bytes + quad * 4, 4);
        return vreinterpretq_s8_s32(vdupq_n_s32(four));
    };
    for (int g = 0; g < groups; ++g) {
        const std::uint8_t* code = codes + std::size_t(g) * quads * 64;
        int32x4_t four[4];
#ifdef __ARM_FEATURE_DOTPROD
        for (int j = 0; j < 4; ++j) four[j] = shift;
        for (int quad = 0; quad < quads; ++quad) {
            const int8x16_t q = word(quad);
            for (int j = 0; j < 4; ++j) four[j] = vdotq_s32(four[j], moved(code + quad * 64 + j * 16), q);
        }
#else
        int32x4_t pairs[8];  // two lists each: the sum of a list's even pairs, then of its odd ones
        for (int j = 0; j < 8; ++j) pairs[j] = vdupq_n_s32(0);
        int quad = 0;
        for (; quad + 2 <= quads; quad += 2) {  // two products of 128 * 127 fit 16 bits
            const int8x16_t q = word(quad), r = word(quad + 1);
            for (int j = 0; j < 4; ++j) {
                const int8x16_t x = moved(code + quad * 64 + j * 16),
                                y = moved(code + quad * 64 + 64 + j * 16);
                pairs[2 * j] = vpadalq_s16(pairs[2 * j], vmlal_s8(vmull_s8(vget_low_s8(x), vget_low_s8(q)),
                                                                  vget_low_s8(y), vget_low_s8(r)));
                pairs[2 * j + 1] = vpadalq_s16(pairs[2 * j + 1], vmlal_high_s8(vmull_high_s8(x, q), y, r));
            }
        }
        if (quad < quads)
            for (int j = 0; j < 4; ++j) {
                const int8x16_t q = word(quad), x = moved(code + quad * 64 + j * 16);
                pairs[2 * j] = vpadalq_s16(pairs[2 * j], vmull_s8(vget_low_s8(x), vget_low_s8(q)));
                pairs[2 * j + 1] = vpadalq_s16(pairs[2 * j + 1], vmull_high_s8(x, q));
            }
        for (int j = 0; j < 4; ++j) four[j] = vaddq_s32(shift, vpaddq_s32(pairs[2 * j], pairs[2 * j + 1]));
#endif
        for (int j = 0; j < 4; ++j) {
            const int at = g * 16 + j * 4;
            const float32x4_t dot = vfmaq_f32(zero, vcvtq_f32_s32(four[j]), step);
            vst1q_f32(out + at, vfmaq_f32(vld1q_f32(constant + at), dot, vld1q_f32(scale + at)));
        }
    }
}

inline float l2_half(const float* query, const std::uint16_t* row, int padded) {
    float32x4_t sum[4] = {};
    for (int i = 0; i < padded; i += 16)  // rows are padded to 16 halves
        for (int j = 0; j < 4; ++j) {
            const float32x4_t gap = vsubq_f32(vld1q_f32(query + i + j * 4), load_halves(row + i + j * 4));
            sum[j] = vfmaq_f32(sum[j], gap, gap);
        }
    return vaddvq_f32(vaddq_f32(vaddq_f32(sum[0], sum[2]), vaddq_f32(sum[1], sum[3])));
}

inline float dot_half(const float* query, const std::uint16_t* row, int padded) {
    float32x4_t sum[4] = {};
    for (int i = 0; i < padded; i += 16)
        for (int j = 0; j < 4; ++j)
            sum[j] = vfmaq_f32(sum[j], vld1q_f32(query + i + j * 4), load_halves(row + i + j * 4));
    return vaddvq_f32(vaddq_f32(vaddq_f32(sum[0], sum[2]), vaddq_f32(sum[1], sum[3])));
}

inline std::int32_t l2_bytes(const std::uint8_t* query, const std::uint8_t* row, int padded) {
    uint32x4_t sum[4] = {};
    for (int i = 0; i < padded; i += 64)  // rows are padded to 64 bytes
        for (int j = 0; j < 4; ++j) {
            const uint8x16_t gap = vabdq_u8(vld1q_u8(query + i + j * 16), vld1q_u8(row + i + j * 16));
#ifdef __ARM_FEATURE_DOTPROD
            sum[j] = vdotq_u32(sum[j], gap, gap);
#else
            sum[j] = vpadalq_u16(sum[j], vmull_u8(vget_low_u8(gap), vget_low_u8(gap)));
            sum[j] = vpadalq_u16(sum[j], vmull_high_u8(gap, gap));
#endif
        }
    return std::int32_t(vaddvq_u32(vaddq_u32(vaddq_u32(sum[0], sum[1]), vaddq_u32(sum[2], sum[3]))));
}

inline void project(const std::int16_t* matrix, int rows, int padded, const std::int16_t* query,
                    std::int32_t* out) {
    for (int i = 0; i < rows; i += 4) {
        const std::int16_t* at[4];
        for (int j = 0; j < 4; ++j) at[j] = matrix + std::size_t(i + j < rows ? i + j : i) * padded;
        int32x4_t sum[4] = {};
        for (int t = 0; t < padded; t += 8) {
            const int16x8_t x = vld1q_s16(query + t);
            for (int j = 0; j < 4; ++j) {
                const int16x8_t y = vld1q_s16(at[j] + t);
                sum[j] = vmlal_high_s16(vmlal_s16(sum[j], vget_low_s16(x), vget_low_s16(y)), x, y);
            }
        }
        const int32x4_t four = vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3]));
        std::memcpy(out + i, &four, std::size_t(i + 4 <= rows ? 4 : rows - i) * 4);
    }
}

}  // namespace outpace::ann::OUTPACE_ISA
