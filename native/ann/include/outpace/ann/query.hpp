// Query: one query as the kernels see it, prepared once and then only read.
#pragma once

#include <cstdint>

#include "outpace/ann/layout.hpp"

namespace outpace::ann {

struct QueryCodes {
    // Scan: for each group a table of sixteen partial sums, scaled so that a whole code adds up within eight
    // bits.
    alignas(64) std::uint8_t table[max_chunks * line];
    float table_step = 0;  // what one unit of the table is worth
    float table_base = 0;  // the sum that all-zero entries stand for

    // Sketch and list ranking: the query in signed bytes, and the same split as four-bit sketches are.
    alignas(64) std::int8_t bytes[max_reduced + line];
    alignas(64) std::int8_t low[max_reduced + line];
    alignas(64) std::int8_t high[max_reduced + line];
    float byte_step = 0;  // what one unit of a byte is worth
    std::int32_t byte_sum = 0;
    float norm = 0;  // |q|^2 in reduced coordinates

    alignas(64) float reduced[max_reduced + line];
    alignas(64) float exact[max_dimension + line];  // as given, normalised under cosine
    alignas(64) std::uint8_t exact_bytes[max_dimension + line];
    bool whole = false;  // exact_bytes holds the query without loss

    // A walk passes this slot by. A stored vector that stands for a query would otherwise meet itself, and
    // its own row leads to all that it should have to find.
    Slot passed_by = no_slot;
};

}  // namespace outpace::ann
