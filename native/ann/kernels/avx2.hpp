// AVX2 kernels (with FMA and F16C, x86-64-v3): Haswell, Zen and newer.
//
// There is no dot product of bytes that adds into 32 bits here. maddubs adds pairs of products into 16 bits
// and saturates, so each kernel below says why its sums fit.
#pragma once

#include <immintrin.h>

#include "portable.hpp"

namespace outpace::ann::OUTPACE_ISA {

inline std::uint32_t at_most(const float* x, float limit) {
    const __m256 limits = _mm256_set1_ps(limit);
    const auto half = [&](const float* at) {
        return std::uint32_t(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(at), limits, _CMP_LE_OQ)));
    };
    return half(x) | half(x + 8) << 8;
}

inline void prefetch(const void* at) {
    _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
}

inline __m256i load_bytes(const void* at) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

inline void store_bytes(const ints* whole, std::uint8_t* out) {
    const __m256i words = _mm256_packus_epi32(__m256i(whole[0]), __m256i(whole[1]));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);  // packing works within halves
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}

// Sixteen sums in order from those of groups 0 and 1 (`first`, one per half) and 2 and 3 (`second`): at most
// 4 * 255.
inline __m256i add_groups(__m256i first, __m256i second) {
    const __m256i one = _mm256_set1_epi8(1);
    const __m256i low = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(first, second), one),
                  high = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(first, second), one);
    return _mm256_add_epi16(_mm256_permute2x128_si256(low, high, 0x20),
                            _mm256_permute2x128_si256(low, high, 0x31));
}

// Sums stay in eight bits until the end (see make_tables), so a chunk costs four shuffles and four additions.
inline void scan_lanes(const std::uint8_t* block, const std::uint8_t* table, int chunks, __m256i& first,
                       __m256i& second) {
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low[2] = {}, high[2] = {};
    const std::uint8_t* codes = block + block_head;
    for (int i = 0; i < chunks; ++i)
        for (int j = 0; j < 2; ++j) {
            const __m256i code = load_bytes(codes + i * 64 + j * 32),
                          entry = load_bytes(table + i * 64 + j * 32);
            low[j] = _mm256_add_epi8(low[j], _mm256_shuffle_epi8(entry, _mm256_and_si256(code, nibble)));
            high[j] = _mm256_add_epi8(
                high[j], _mm256_shuffle_epi8(entry, _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble)));
        }
    first = add_groups(low[0], low[1]);
    second = add_groups(high[0], high[1]);
}

inline __m256i low_words(__m256i v) {
    return _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v));
}
inline __m256i high_words(__m256i v) {
    return _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1));
}

inline void scan_sums(const std::uint8_t* block, const std::uint8_t* table, int chunks, std::int32_t* sums) {
    __m256i first, second;
    scan_lanes(block, table, chunks, first, second);
    __m256i* out = reinterpret_cast<__m256i*>(sums);
    _mm256_storeu_si256(out, low_words(first));
    _mm256_storeu_si256(out + 1, high_words(first));
    _mm256_storeu_si256(out + 2, low_words(second));
    _mm256_storeu_si256(out + 3, high_words(second));
}

inline __m256 load_halves(const void* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}

inline std::uint32_t scan_block(const std::uint8_t* block, const std::uint8_t* table, int chunks, float step,
                                float offset, float limit) {
    __m256i first, second;
    scan_lanes(block, table, chunks, first, second);
    const __m256 steps = _mm256_set1_ps(step), offsets = _mm256_set1_ps(offset),
                 limits = _mm256_set1_ps(limit);
    const auto passes = [&](__m256i sums, int at) {
        const __m256 inner = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), steps, offsets);
        const __m256 estimate = _mm256_fmadd_ps(load_halves(block + at), inner, load_halves(block + 64 + at));
        return std::uint32_t(_mm256_movemask_ps(_mm256_cmp_ps(estimate, limits, _CMP_LT_OQ)));
    };
    return passes(low_words(first), 0) | passes(high_words(first), 16) << 8 |
           passes(low_words(second), 32) << 16 | passes(high_words(second), 48) << 24;
}

// Four horizontal sums for the price of little more than one.
inline __m128i four_sums(const __m256i* v) {
    const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
    const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
    const __m256i all = _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
    return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

// A query's bytes as 16 * coarse + fine, both within +-8: eight pairs of products with bytes up to 255 then
// add up to at most 8 * 2 * 255 * 8 = 32640, which fits 16 bits. Splitting the query costs once; splitting
// codes, each time.
struct SplitBytes {
    alignas(32) std::int8_t coarse[max_reduced + line];
    alignas(32) std::int8_t fine[max_reduced + line];

    SplitBytes(const std::int8_t* bytes, int count) {
        for (int i = 0; i < count; ++i) {
            const int above = (bytes[i] + 8) >> 4;
            coarse[i] = std::int8_t(above);
            fine[i] = std::int8_t(bytes[i] - 16 * above);
        }
    }
};
inline constexpr int split_run = 8;  // how many sums of pairs of a SplitBytes fit 16 bits

inline __m256i join(__m256i coarse, __m256i fine) {
    return _mm256_add_epi32(_mm256_madd_epi16(coarse, _mm256_set1_epi16(16)),
                            _mm256_madd_epi16(fine, _mm256_set1_epi16(1)));
}

// Four-bit sketches against low and high. A step adds 2 * 2 * 15 * 127 = 7620 at most: four fit 16 bits.
inline void add_products(const std::uint8_t* const* at, std::size_t begin, std::size_t end,
                         const std::int8_t* low, const std::int8_t* high, __m256i* dots) {
    const __m256i nibble = _mm256_set1_epi8(15), one = _mm256_set1_epi16(1);
    __m256i sum[4] = {};
    for (std::size_t i = begin; i < end; i += 32) {
        const __m256i lows = load_bytes(low + i), highs = load_bytes(high + i);
        for (int j = 0; j < 4; ++j) {
            const __m256i both = load_bytes(at[j] + i);
            const __m256i first = _mm256_maddubs_epi16(_mm256_and_si256(both, nibble), lows);
            const __m256i second =
                _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(both, 4), nibble), highs);
            sum[j] = _mm256_add_epi16(sum[j], _mm256_add_epi16(first, second));
        }
    }
    for (int j = 0; j < 4; ++j) dots[j] = _mm256_add_epi32(dots[j], _mm256_madd_epi16(sum[j], one));
}

// Eight-bit sketches against a split query, split_run steps at most.
inline void add_split_products(const std::uint8_t* const* at, std::size_t begin, std::size_t end,
                               const SplitBytes& query, __m256i* dots) {
    __m256i coarse[4] = {}, fine[4] = {};
    for (std::size_t i = begin; i < end; i += 32) {
        const __m256i above = load_bytes(query.coarse + i), below = load_bytes(query.fine + i);
        for (int j = 0; j < 4; ++j) {
            const __m256i code = load_bytes(at[j] + i);
            coarse[j] = _mm256_add_epi16(coarse[j], _mm256_maddubs_epi16(code, above));
            fine[j] = _mm256_add_epi16(fine[j], _mm256_maddubs_epi16(code, below));
        }
    }
    for (int j = 0; j < 4; ++j) dots[j] = _mm256_add_epi32(dots[j], join(coarse[j], fine[j]));
}

// Distances to sketches, four at a time; `add` adds the products of bytes [begin, end) to four dot products.
template <int run, class Add>
inline void sketch_distances_by(const Shape& shape, const std::uint8_t* codes, const Slot* slots, int count,
                                const QueryCodes& query, float middle, float* out, Add add) {
    const std::size_t bytes = shape.sketch_bytes();
    const __m128 step = _mm_set1_ps(query.byte_step), norms = _mm_set1_ps(query.norm),
                 zero = _mm_set1_ps(-middle * query.byte_step * float(query.byte_sum));
    for (int i = 0; i < count; i += 4) {
        const std::uint8_t* at[4];
        for (int j = 0; j < 4; ++j) at[j] = codes + std::size_t(slots[i + j < count ? i + j : i]) * bytes;
        __m256i dots[4] = {};
        for (std::size_t begin = 0; begin < bytes; begin += run * 32)
            add(at, begin, begin + run * 32 < bytes ? begin + run * 32 : bytes, dots);
        const __m128 dot = _mm_fmadd_ps(_mm_cvtepi32_ps(four_sums(dots)), step, zero);
        const auto tail = [&](int j) {
            return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at[j] + bytes - 8));
        };
        const __m128 first = _mm_castsi128_ps(_mm_unpacklo_epi64(tail(0), tail(1))),
                     second = _mm_castsi128_ps(_mm_unpacklo_epi64(tail(2), tail(3)));
        const __m128 scale = _mm_shuffle_ps(first, second, 0x88), norm = _mm_shuffle_ps(first, second, 0xdd);
        const __m128 distance =
            _mm_max_ps(_mm_fmadd_ps(dot, scale, _mm_add_ps(norm, norms)), _mm_setzero_ps());
        if (i + 4 <= count) {
            _mm_storeu_ps(out + i, distance);
        } else {
            alignas(16) float last[4];
            _mm_store_ps(last, distance);
            std::memcpy(out + i, last, std::size_t(count - i) * 4);
        }
    }
}

inline void sketch_distances(const Shape& shape, const std::uint8_t* codes, const Slot* slots, int count,
                             const QueryCodes& query, float* out) {
    if (shape.sketch_bits == 4) {
        sketch_distances_by<4>(shape, codes, slots, count, query, 7.5f, out,
                               [&](const auto& at, std::size_t begin, std::size_t end, __m256i* dots) {
                                   add_products(at, begin, end, query.low, query.high, dots);
                               });
    } else {
        const SplitBytes split(query.low, int(shape.sketch_bytes()));
        sketch_distances_by<split_run>(
            shape, codes, slots, count, query, 127.5f, out,
            [&](const auto& at, std::size_t begin, std::size_t end, __m256i* dots) {
                add_split_products(at, begin, end, split, dots);
            });
    }
}

// `together` groups of sixteen lists, so that they share the loads of the query.
template <int together>
inline void rank_groups(const std::uint8_t* codes, const float* scale, const float* constant, int quads,
                        const SplitBytes& split, __m256 step, __m256 zero, float* out) {
    constexpr int parts = 2 * together;
    const std::size_t group_bytes = std::size_t(quads) * 64;
    const auto four = [](const std::int8_t* bytes, int quad) {
        std::int32_t word;
        std::memcpy(&word, bytes + quad * 4, 4);
        return _mm256_set1_epi32(word);
    };
    __m256i dots[parts] = {};
    for (int begin = 0; begin < quads; begin += split_run) {
        const int end = begin + split_run < quads ? begin + split_run : quads;
        __m256i coarse[parts] = {}, fine[parts] = {};
        for (int quad = begin; quad < end; ++quad) {
            const __m256i above = four(split.coarse, quad), below = four(split.fine, quad);
            for (int j = 0; j < parts; ++j) {
                const __m256i code =
                    load_bytes(codes + std::size_t(j / 2) * group_bytes + quad * 64 + j % 2 * 32);
                coarse[j] = _mm256_add_epi16(coarse[j], _mm256_maddubs_epi16(code, above));
                fine[j] = _mm256_add_epi16(fine[j], _mm256_maddubs_epi16(code, below));
            }
        }
        for (int j = 0; j < parts; ++j) dots[j] = _mm256_add_epi32(dots[j], join(coarse[j], fine[j]));
    }
    for (int j = 0; j < parts; ++j) {
        const __m256 dot = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[j]), step, zero);
        _mm256_storeu_ps(out + j * 8, _mm256_fmadd_ps(dot, _mm256_loadu_ps(scale + j * 8),
                                                      _mm256_loadu_ps(constant + j * 8)));
    }
}

inline void rank_lists(const std::uint8_t* codes, const float* scale, const float* constant, int groups,
                       int quads, const QueryCodes& query, float* out) {
    const SplitBytes split(query.bytes, quads * 4);
    const __m256 step = _mm256_set1_ps(query.byte_step),
                 zero = _mm256_set1_ps(-127.5f * query.byte_step * float(query.byte_sum));
    int g = 0;
    for (; g + 2 <= groups; g += 2)
        rank_groups<2>(codes + std::size_t(g) * quads * 64, scale + g * 16, constant + g * 16, quads, split,
                       step, zero, out + g * 16);
    if (g < groups)
        rank_groups<1>(codes + std::size_t(g) * quads * 64, scale + g * 16, constant + g * 16, quads, split,
                       step, zero, out + g * 16);
}

inline float l2_half(const float* query, const std::uint16_t* row, int padded) {
    __m256 sum[4] = {};
    const auto step = [&](int at, int j) {
        const __m256 gap = _mm256_sub_ps(_mm256_loadu_ps(query + at), load_halves(row + at));
        sum[j] = _mm256_fmadd_ps(gap, gap, sum[j]);
    };
    int i = 0;
    for (; i + 32 <= padded; i += 32)
        for (int j = 0; j < 4; ++j) step(i + j * 8, j);
    if (i < padded)  // rows are padded to 16 halves
        for (int j = 0; j < 2; ++j) step(i + j * 8, j);
    return total(f32x8(_mm256_add_ps(_mm256_add_ps(sum[0], sum[2]), _mm256_add_ps(sum[1], sum[3]))));
}

inline float dot_half(const float* query, const std::uint16_t* row, int padded) {
    __m256 sum[4] = {};
    const auto step = [&](int at, int j) {
        sum[j] = _mm256_fmadd_ps(_mm256_loadu_ps(query + at), load_halves(row + at), sum[j]);
    };
    int i = 0;
    for (; i + 32 <= padded; i += 32)
        for (int j = 0; j < 4; ++j) step(i + j * 8, j);
    if (i < padded)
        for (int j = 0; j < 2; ++j) step(i + j * 8, j);
    return total(f32x8(_mm256_add_ps(_mm256_add_ps(sum[0], sum[2]), _mm256_add_ps(sum[1], sum[3]))));
}

inline std::int32_t sum_words(__m256i v) {
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

inline std::int32_t l2_bytes(const std::uint8_t* query, const std::uint8_t* row, int padded) {
    __m256i sum[4] = {};
    const __m256i even = _mm256_set1_epi16(255);
    for (int i = 0; i < padded; i += 64)  // rows are padded to 64 bytes
        for (int j = 0; j < 2; ++j) {
            const __m256i x = load_bytes(query + i + j * 32), y = load_bytes(row + i + j * 32);
            const __m256i gap = _mm256_or_si256(_mm256_subs_epu8(x, y), _mm256_subs_epu8(y, x));
            const __m256i first = _mm256_and_si256(gap, even), second = _mm256_srli_epi16(gap, 8);
            sum[2 * j] = _mm256_add_epi32(sum[2 * j], _mm256_madd_epi16(first, first));
            sum[2 * j + 1] = _mm256_add_epi32(sum[2 * j + 1], _mm256_madd_epi16(second, second));
        }
    return sum_words(_mm256_add_epi32(_mm256_add_epi32(sum[0], sum[1]), _mm256_add_epi32(sum[2], sum[3])));
}

inline void project(const std::int16_t* matrix, int rows, int padded, const std::int16_t* query,
                    std::int32_t* out) {
    for (int i = 0; i < rows; i += 4) {
        const std::int16_t* at[4];
        for (int j = 0; j < 4; ++j) at[j] = matrix + std::size_t(i + j < rows ? i + j : i) * padded;
        __m256i sum[4] = {}, other[4] = {};
        for (int t = 0; t < padded; t += 32) {
            const __m256i x = load_bytes(query + t), y = load_bytes(query + t + 16);
            for (int j = 0; j < 4; ++j) {
                sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(x, load_bytes(at[j] + t)));
                other[j] = _mm256_add_epi32(other[j], _mm256_madd_epi16(y, load_bytes(at[j] + t + 16)));
            }
        }
        for (int j = 0; j < 4; ++j) sum[j] = _mm256_add_epi32(sum[j], other[j]);
        alignas(16) std::int32_t four[4];
        _mm_store_si128(reinterpret_cast<__m128i*>(four), four_sums(sum));
        std::memcpy(out + i, four, std::size_t(i + 4 <= rows ? 4 : rows - i) * 4);
    }
}

}  // namespace outpace::ann::OUTPACE_ISA
