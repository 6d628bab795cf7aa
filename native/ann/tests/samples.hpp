// Samples: random vectors and small indexes of them, made with the slots that the program was linked with.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "../src/build.hpp"
#include "../src/half.hpp"
#include "../src/random.hpp"

namespace outpace::ann::tests {

inline Slots linked_slots() {
    return {outpace_ann_refine(), outpace_ann_search(), outpace_ann_construct()};
}

// Rows of any kind, and the source that reads them.
struct Rows {
    std::vector<std::uint8_t> bytes;
    Source source;
};

// Coordinates spread about one of eight corners, as vectors of real data do not fill their space either.
inline Rows random_rows(Scalar kind, std::size_t count, int dimension, Random& random) {
    Rows rows;
    rows.bytes.resize(count * std::size_t(dimension * scalar_bytes(kind)));
    for (std::size_t i = 0; i < count; ++i) {
        const double corner = double(random.below(8)) * 2 - 7;
        for (int t = 0; t < dimension; ++t) {
            const double x = corner * ((t & 3) - 1) + random.normal();
            const std::size_t at = i * std::size_t(dimension) + std::size_t(t);
            if (kind == Scalar::f32)
                reinterpret_cast<float*>(rows.bytes.data())[at] = float(x);
            else if (kind == Scalar::f16)
                reinterpret_cast<std::uint16_t*>(rows.bytes.data())[at] = to_half(float(x));
            else
                rows.bytes[at] = std::uint8_t(std::lrint(std::fmin(std::fmax(x * 4 + 128, 0), 255)));
        }
    }
    rows.source = {rows.bytes.data(), kind, count, dimension};
    return rows;
}

struct SampleShape {
    int dimension;
    Scalar kind;
    Metric metric;
    bool graph;
    std::size_t count;
    std::uint32_t lists;
    bool half = false;
    int scan_bits = 0, reduced = 0;  // 0: as a build chooses them
    bool compact = false;
};

// Ids are the rows' numbers.
inline Store sample_store(const SampleShape& shape, std::uint64_t seed) {
    Random random(seed);
    const Rows rows = random_rows(shape.kind, shape.count, shape.dimension, random);
    BuildOptions options;
    options.metric = shape.metric;
    options.seed = seed;
    options.lists = shape.lists;
    options.graph = shape.graph;
    options.half = shape.half;
    options.scan_bits = shape.scan_bits;
    options.reduced = shape.reduced;
    options.compact = shape.compact;
    return build_store(rows.source, nullptr, options, linked_slots(), [](std::string_view, double) {});
}

}  // namespace outpace::ann::tests
