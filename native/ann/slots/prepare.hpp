// Prepare: from a query as given to everything that the cascade reads. Included per instruction set.
//
// At a hundred thousand queries a second each pass over the coordinates shows, so there are few, all in
// registers.
#pragma once

#include "../kernels/kernels.hpp"
#include "outpace/ann/ground.hpp"

namespace outpace::ann::OUTPACE_ISA {

using shorts = std::int16_t __attribute__((vector_size(2 * width)));

// 16-bit fixed point, to nearest; the scale makes the whole vector `fixed_norm` long.
inline void make_fixed(const float* x, int padded, float scale, std::int16_t* out) {
    for (int i = 0; i < padded; i += width) {
        const floats scaled = load(x + i) * scale;
        const ints whole = __builtin_convertvector(scaled + (scaled < 0 ? splat(-0.5f) : splat(0.5f)), ints);
        const shorts narrow = __builtin_convertvector(whole, shorts);
        std::memcpy(out + i, &narrow, sizeof narrow);
    }
}

// Exact bytes of a query for byte rows, and whether they lose nothing.
inline bool make_exact_bytes(float* x, int padded, float move, std::uint8_t* out) {
    ints lost = {};
    for (int i = 0; i < padded; i += 16) {
        ints whole[16 / width];
        for (int p = 0; p < 16 / width; ++p) {
            floats value = load(x + i + p * width) + move;
            std::memcpy(x + i + p * width, &value, sizeof value);
            floats inside = value < 0 ? floats{} : value;
            inside = inside > 255 ? splat(255) : inside;
            whole[p] = __builtin_convertvector(inside, ints);
            lost |= __builtin_convertvector(whole[p], floats) != value;
        }
        store_bytes(whole, out + i);
    }
    std::int32_t any = 0;
    for (int i = 0; i < width; ++i) any |= lost[i];
    return any == 0;
}

// Reduced coordinates of a working vector of length `norm` as if it were of length `length`, zero-padded to
// sixteen.
inline void reduce(const Shape& shape, const Projection& projection, const float* working, float norm,
                   float length, float* out) {
    const int reduced = shape.reduced;
    alignas(64) std::int16_t fixed[max_dimension + 64];
    alignas(64) std::int32_t products[max_reduced + 16];
    make_fixed(working, projection.padded, norm > 0 ? fixed_norm / norm : 0, fixed);
    project(projection.matrix, reduced, projection.padded, fixed, products);
    const float back = length / fixed_norm;
    for (int i = 0; i < reduced; ++i)
        out[i] = within_reach(float(products[i]) * (back * projection.row_scale[i]) - projection.centre[i]);
    for (int i = reduced; i < round_up(reduced, 16); ++i) out[i] = 0;
}

constexpr float shortest_square = 1e-24f;

// Fills all of `query` from a vector of the index's dimension. Returns its squared length: the caller refuses
// what is not finite, and under cosine what is zero.
inline float ingest(const Ground& ground, const float* given, QueryCodes& query) {
    const Shape& shape = ground.shape;
    const int dimension = shape.dimension;
    // Rows are padded to whole lines, of bytes at the most: 64 coordinates.
    const int padded = round_up(dimension, line) < ground.projection.padded ? ground.projection.padded
                                                                            : round_up(dimension, line);
    std::memcpy(query.exact, given, std::size_t(dimension) * 4);
    std::memset(query.exact + dimension, 0, std::size_t(padded - dimension) * 4);
    float square = dot_float(query.exact, query.exact, round_up(dimension, 16));
    if (shape.metric == Metric::cosine && square < shortest_square) {
        // Squares this small lose their digits, or vanish; only the direction matters, so it is made longer.
        double sum = 0;
        for (int i = 0; i < dimension; ++i) sum += double(given[i]) * given[i];
        const double stretch = sum > 0 ? 1 / std::sqrt(sum) : 0;
        for (int i = 0; i < dimension; ++i) query.exact[i] = float(given[i] * stretch);
        square = sum > 0 ? 1 : 0;
    }
    float norm = std::sqrt(square);
    if (shape.metric == Metric::cosine && norm > 0) {
        const float unit = 1 / norm;
        for (int i = 0; i < padded; i += width) {
            const floats scaled = load(query.exact + i) * unit;
            std::memcpy(query.exact + i, &scaled, sizeof scaled);
        }
        norm = 1;
    }
    // The order of inner products does not depend on the query's length, but that of distances does where a
    // stored vector is longer than all were at the build; the longer the query, the less. All are coded
    // alike.
    const float length = shape.metric == Metric::ip ? query_lengths * ground.longest : norm;
    reduce(shape, ground.projection, query.exact, norm, length, query.reduced);
    if (shape.exact == Scalar::u8 || shape.exact == Scalar::i8) {
        const int bytes = round_up(dimension, line);
        query.whole =
            make_exact_bytes(query.exact, bytes, shape.exact == Scalar::i8 ? 128 : 0, query.exact_bytes);
        // Padding of rows is zero as stored, so the query's must be zero after the move too.
        std::memset(query.exact + dimension, 0, std::size_t(bytes - dimension) * 4);
        std::memset(query.exact_bytes + dimension, 0, std::size_t(bytes - dimension));
    }
    make_tables(shape, query);
    make_bytes(shape, query);
    return square;
}

}  // namespace outpace::ann::OUTPACE_ISA
