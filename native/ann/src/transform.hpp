// Transform: from a vector as given to its reduced coordinates: centre, project on the widest directions,
// rotate, scale.
#pragma once

#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "outpace/ann/slots.hpp"

namespace outpace::ann {

struct Transform {
    Shape shape;
    float unit = 1;  // reduced coordinates are divided by this: data of unit root mean square fits f16 safely
    float longest = 0;  // under inner product: the norm that the extra coordinate fills up to
    Buffer matrix;      // reduced x padded working coordinates, 16-bit fixed point
    Buffer row_scale;   // f32 per row
    Buffer centre;      // f32 per row: the mean, projected

    int padded() const { return round_up(shape.working(), 32); }

    // The working copy of a vector: normalised under cosine, one coordinate longer under inner product. `out`
    // has room for padded() floats. A query gets zero in the extra coordinate.
    void working(const float* vector, bool is_query, float* out) const;

    // Reduced coordinates of a working vector, zero-padded to sixteen.
    void reduce(const ConstructTable& construct, const float* working, float* out) const;
};

// Learns the transform from `count` working vectors (rows of `padded` floats).
Transform learn_transform(const Shape& shape, const ConstructTable& construct, const float* sample,
                          std::size_t count, float longest, std::uint64_t seed, int threads);

}  // namespace outpace::ann
