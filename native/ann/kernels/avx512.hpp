// AVX-512 kernels (F, BW, DQ, VL, VNNI, VBMI): Ice Lake, Zen 4 and newer.
#pragma once

#include <immintrin.h>

#include "portable.hpp"

namespace outpace::ann::OUTPACE_ISA {

inline void prefetch(const void* at) {
    _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
}

inline void store_bytes(const ints* whole, std::uint8_t* out) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(__m512i(*whole)));
}

// Sums stay in eight bits until the end (see make_tables), so a chunk costs two shuffles and two additions.
inline void scan_lanes(const std::uint8_t* block, const std::uint8_t* table, int chunks, __m512i& first,
                       __m512i& second) {
    const __m512i nibble = _mm512_set1_epi8(15);
    __m512i low = _mm512_setzero_si512(), high = low;
    const std::uint8_t* codes = block + block_head;
    for (int i = 0; i < chunks; ++i) {
        const __m512i code = _mm512_loadu_si512(codes + i * 64), entry = _mm512_load_si512(table + i * 64);
        low = _mm512_add_epi8(low, _mm512_shuffle_epi8(entry, _mm512_and_si512(code, nibble)));
        high = _mm512_add_epi8(
            high, _mm512_shuffle_epi8(entry, _mm512_and_si512(_mm512_srli_epi16(code, 4), nibble)));
    }
    // Byte j of the four groups' sums side by side, then one dot product with ones adds them as 32-bit
    // integers.
    alignas(64) static constexpr std::uint8_t gather[64] = {
        0,  16, 32, 48, 1,  17, 33, 49, 2,  18, 34, 50, 3,  19, 35, 51, 4,  20, 36, 52, 5,  21,
        37, 53, 6,  22, 38, 54, 7,  23, 39, 55, 8,  24, 40, 56, 9,  25, 41, 57, 10, 26, 42, 58,
        11, 27, 43, 59, 12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63};
    const __m512i order = _mm512_load_si512(gather), one = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
    first = _mm512_dpbusd_epi32(zero, _mm512_permutexvar_epi8(order, low), one);
    second = _mm512_dpbusd_epi32(zero, _mm512_permutexvar_epi8(order, high), one);
}

inline void scan_sums(const std::uint8_t* block, const std::uint8_t* table, int chunks, std::int32_t* sums) {
    __m512i first, second;
    scan_lanes(block, table, chunks, first, second);
    _mm512_storeu_si512(sums, first);
    _mm512_storeu_si512(sums + 16, second);
}

inline std::uint32_t scan_block(const std::uint8_t* block, const std::uint8_t* table, int chunks, float step,
                                float offset, float limit) {
    __m512i first, second;
    scan_lanes(block, table, chunks, first, second);
    const __m512 steps = _mm512_set1_ps(step), offsets = _mm512_set1_ps(offset),
                 limits = _mm512_set1_ps(limit);
    const auto halves = [block](int at) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + at)));
    };
    const __m512 near =
        _mm512_fmadd_ps(halves(0), _mm512_fmadd_ps(_mm512_cvtepi32_ps(first), steps, offsets), halves(64));
    const __m512 far =
        _mm512_fmadd_ps(halves(32), _mm512_fmadd_ps(_mm512_cvtepi32_ps(second), steps, offsets), halves(96));
    return _mm512_cmp_ps_mask(near, limits, _CMP_LT_OQ) |
           (std::uint32_t(_mm512_cmp_ps_mask(far, limits, _CMP_LT_OQ)) << 16);
}

inline std::uint32_t at_most(const float* x, float limit) {
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_set1_ps(limit), _CMP_LE_OQ);
}

template <int bits>
inline __m512i sketch_products(const std::uint8_t* code, std::size_t bytes, const std::int8_t* low,
                               const std::int8_t* high) {
    __m512i sum = _mm512_setzero_si512();
    if constexpr (bits == 4) {
        const __m512i nibble = _mm512_set1_epi8(15);
        __m512i other = sum;
        for (std::size_t i = 0; i < bytes; i += 64) {
            const __m512i both = _mm512_loadu_si512(code + i);
            sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(both, nibble), _mm512_load_si512(low + i));
            other = _mm512_dpbusd_epi32(other, _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble),
                                        _mm512_load_si512(high + i));
        }
        return _mm512_add_epi32(sum, other);
    }
    for (std::size_t i = 0; i < bytes; i += 64)
        sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(code + i), _mm512_load_si512(low + i));
    return sum;
}

// Four horizontal sums for the price of little more than one.
inline __m128i four_sums(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

template <int bits>
inline void sketch_distances_of(const Shape& shape, const std::uint8_t* codes, const Slot* slots, int count,
                                const QueryCodes& query, float* out) {
    const std::size_t bytes = shape.sketch_bytes();
    const float middle = bits == 4 ? 7.5f : 127.5f;
    const __m128 step = _mm_set1_ps(query.byte_step), norms = _mm_set1_ps(query.norm),
                 zero = _mm_set1_ps(-middle * query.byte_step * float(query.byte_sum));
    for (int i = 0; i < count; i += 4) {
        const std::uint8_t* at[4];
        for (int j = 0; j < 4; ++j) at[j] = codes + std::size_t(slots[i + j < count ? i + j : i]) * bytes;
        __m128 dot = _mm_cvtepi32_ps(four_sums(sketch_products<bits>(at[0], bytes, query.low, query.high),
                                               sketch_products<bits>(at[1], bytes, query.low, query.high),
                                               sketch_products<bits>(at[2], bytes, query.low, query.high),
                                               sketch_products<bits>(at[3], bytes, query.low, query.high)));
        dot = _mm_fmadd_ps(dot, step, zero);
        const auto tail = [&](int j) {
            return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at[j] + bytes - 8));
        };
        const __m128 first = _mm_castsi128_ps(_mm_unpacklo_epi64(tail(0), tail(1))),
                     second = _mm_castsi128_ps(_mm_unpacklo_epi64(tail(2), tail(3)));
        const __m128 scale = _mm_shuffle_ps(first, second, 0x88), norm = _mm_shuffle_ps(first, second, 0xdd);
        const __m128 distance =
            _mm_max_ps(_mm_fmadd_ps(dot, scale, _mm_add_ps(norm, norms)), _mm_setzero_ps());
        if (i + 4 <= count)
            _mm_storeu_ps(out + i, distance);
        else
            _mm_mask_storeu_ps(out + i, __mmask8((1 << (count - i)) - 1), distance);
    }
}

inline void sketch_distances(const Shape& shape, const std::uint8_t* codes, const Slot* slots, int count,
                             const QueryCodes& query, float* out) {
    if (shape.sketch_bits == 4)
        sketch_distances_of<4>(shape, codes, slots, count, query, out);
    else
        sketch_distances_of<8>(shape, codes, slots, count, query, out);
}

inline void rank_lists(const std::uint8_t* codes, const float* scale, const float* constant, int groups,
                       int quads, const QueryCodes& query, float* out) {
    const __m512 step = _mm512_set1_ps(query.byte_step),
                 zero = _mm512_set1_ps(-127.5f * query.byte_step * float(query.byte_sum));
    for (int g = 0; g < groups; ++g) {
        const std::uint8_t* code = codes + std::size_t(g) * quads * 64;
        __m512i even = _mm512_setzero_si512(), odd = even;
        const auto word = [&query](int quad) {
            std::int32_t four;
            std::memcpy(&four, query.bytes + quad * 4, 4);
            return _mm512_set1_epi32(four);
        };
        int quad = 0;
        for (; quad + 2 <= quads; quad += 2) {
            even = _mm512_dpbusd_epi32(even, _mm512_loadu_si512(code + quad * 64), word(quad));
            odd = _mm512_dpbusd_epi32(odd, _mm512_loadu_si512(code + quad * 64 + 64), word(quad + 1));
        }
        if (quad < quads) even = _mm512_dpbusd_epi32(even, _mm512_loadu_si512(code + quad * 64), word(quad));
        const __m512 dot = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(even, odd)), step, zero);
        _mm512_storeu_ps(out + g * 16, _mm512_fmadd_ps(dot, _mm512_loadu_ps(scale + g * 16),
                                                       _mm512_loadu_ps(constant + g * 16)));
    }
}

inline float l2_half(const float* query, const std::uint16_t* row, int padded) {
    __m512 first = _mm512_setzero_ps(), second = first;
    const auto part = [&](int i) {
        return _mm512_sub_ps(_mm512_loadu_ps(query + i),
                             _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + i))));
    };
    int i = 0;
    for (; i + 32 <= padded; i += 32) {
        const __m512 x = part(i), y = part(i + 16);
        first = _mm512_fmadd_ps(x, x, first);
        second = _mm512_fmadd_ps(y, y, second);
    }
    if (i < padded) {  // rows are padded to 16 halves
        const __m512 x = part(i);
        first = _mm512_fmadd_ps(x, x, first);
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(first, second));
}

inline float dot_half(const float* query, const std::uint16_t* row, int padded) {
    __m512 first = _mm512_setzero_ps(), second = first;
    const auto half = [row](int i) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + i)));
    };
    int i = 0;
    for (; i + 32 <= padded; i += 32) {
        first = _mm512_fmadd_ps(_mm512_loadu_ps(query + i), half(i), first);
        second = _mm512_fmadd_ps(_mm512_loadu_ps(query + i + 16), half(i + 16), second);
    }
    if (i < padded) first = _mm512_fmadd_ps(_mm512_loadu_ps(query + i), half(i), first);
    return _mm512_reduce_add_ps(_mm512_add_ps(first, second));
}

inline std::int32_t l2_bytes(const std::uint8_t* query, const std::uint8_t* row, int padded) {
    __m512i sum = _mm512_setzero_si512(), other = sum;
    const __m512i zero = sum;
    for (int i = 0; i < padded; i += 64) {
        const __m512i x = _mm512_loadu_si512(query + i), y = _mm512_loadu_si512(row + i);
        const __m512i gap = _mm512_or_si512(_mm512_subs_epu8(x, y), _mm512_subs_epu8(y, x));
        const __m512i low = _mm512_unpacklo_epi8(gap, zero), high = _mm512_unpackhi_epi8(gap, zero);
        sum = _mm512_dpwssd_epi32(sum, low, low);
        other = _mm512_dpwssd_epi32(other, high, high);
    }
    return _mm512_reduce_add_epi32(_mm512_add_epi32(sum, other));
}

inline void project(const std::int16_t* matrix, int rows, int padded, const std::int16_t* query,
                    std::int32_t* out) {
    for (int i = 0; i < rows; i += 4) {
        const std::int16_t* at[4];
        for (int j = 0; j < 4; ++j) at[j] = matrix + std::size_t(i + j < rows ? i + j : i) * padded;
        __m512i sum[4] = {};
        for (int t = 0; t < padded; t += 32) {
            const __m512i x = _mm512_loadu_si512(query + t);
            for (int j = 0; j < 4; ++j)
                sum[j] = _mm512_dpwssd_epi32(sum[j], x, _mm512_loadu_si512(at[j] + t));
        }
        const __m128i four = four_sums(sum[0], sum[1], sum[2], sum[3]);
        if (i + 4 <= rows)
            _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), four);
        else
            _mm_mask_storeu_epi32(out + i, __mmask8((1 << (rows - i)) - 1), four);
    }
}

}  // namespace outpace::ann::OUTPACE_ISA
