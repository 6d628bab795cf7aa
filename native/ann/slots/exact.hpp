// Exact: the distance between a query and an exact row. Included per instruction set, inside its namespace.
#pragma once

#include <cstring>

#include "../kernels/kernels.hpp"
#include "outpace/ann/ground.hpp"

namespace outpace::ann::OUTPACE_ISA {

inline float bytes_and_fractions(const float* query, const std::uint8_t* row, int padded) {
    return sum_of(padded, [=](int i) {
        // Through integers: gcc converts bytes to floats one by one.
        bytes here;
        std::memcpy(&here, row + i, sizeof here);
        const floats gap =
            load(query + i) - __builtin_convertvector(__builtin_convertvector(here, ints), floats);
        return gap * gap;
    });
}

// The metric's own distance between a query and an exact row.
inline float distance(const Shape& shape, const QueryCodes& query, const std::uint8_t* row) {
    const int padded = int(shape.exact_bytes()) / scalar_bytes(shape.exact);
    switch (shape.exact) {
        case Scalar::f32: {
            const float* x = reinterpret_cast<const float*>(row);
            if (shape.metric == Metric::l2) return l2_float(query.exact, x, padded);
            const float dot = dot_float(query.exact, x, padded);
            return shape.metric == Metric::ip ? -dot : 1 - dot;
        }
        case Scalar::f16: {
            const std::uint16_t* x = reinterpret_cast<const std::uint16_t*>(row);
            if (shape.metric == Metric::l2) return l2_half(query.exact, x, padded);
            const float dot = dot_half(query.exact, x, padded);
            return shape.metric == Metric::ip ? -dot : 1 - dot;
        }
        default:  // signed bytes are stored moved by 128, so one path serves both
            return query.whole ? float(l2_bytes(query.exact_bytes, row, padded))
                               : bytes_and_fractions(query.exact, row, padded);
    }
}

}  // namespace outpace::ann::OUTPACE_ISA
