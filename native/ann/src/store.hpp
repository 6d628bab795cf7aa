// Store: everything an index keeps, as buffers that a file can hold as they are.
#pragma once

#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "outpace/ann/slots.hpp"
#include "transform.hpp"

namespace outpace::ann {

// Reference points and the codes with which a query ranks them all at once.
struct Ranked {
    std::uint32_t count = 0;
    Buffer codes, scale, constant;

    void set(const Shape& shape, const SearchTable& search, const std::vector<float>& points);
    Ranking view() const { return {count, codes.data(), scale.as<float>(), constant.as<float>()}; }
};

struct Store {
    Shape shape;
    Transform transform;
    float noise = 0.6f;
    std::uint64_t seed = 0;
    std::uint64_t count = 0;       // vectors that are live
    std::uint64_t dead_count = 0;  // removed vectors that still carry walks
    std::uint64_t repaired = 0;    // nodes that no walk could reach until an edge was added
    double build_seconds = 0;
    Id highest = -1;  // of all ids that ever were here, so that none comes back for another vector

    std::uint32_t blocks = 0;
    Buffer block_codes, next_block, live, dead, sketches, exact,
        ids;  // dead: removed, but graph rows still lead there

    Ranked lists;
    Buffer centres, first_block;

    Buffer rows;
    Ranked entries;
    Buffer entry_slots;

    // Under inner product: slots of vectors so much longer than all were at the build that codes misplace
    // them; every search compares them exactly. Some may have been removed, or have become others.
    Buffer long_slots;

    Ground ground() const;
    std::uint32_t slots() const { return blocks * lanes; }
    bool has_graph() const { return rows.size() > 0; }
    // Room for `more` further blocks, their lanes empty.
    void grow_blocks(std::uint32_t more);
    // Exact rows that can hold more numbers than these; what they hold, they hold without loss.
    Buffer widened(Scalar kind) const;
};

// Vectors as the user holds them.
struct Source {
    const void* data = nullptr;
    Scalar kind = Scalar::f32;
    std::size_t count = 0;
    int dimension = 0;

    void read(std::size_t row, float* out) const;
    // The row where it lies, if it is float32 already; else read into `room`.
    const float* row(std::size_t at, float* room) const {
        if (kind == Scalar::f32) return static_cast<const float*>(data) + at * std::size_t(dimension);
        read(at, room);
        return room;
    }
};

// What an exact row holds, given the input and the metric.
Scalar exact_kind(Scalar input, Metric metric, bool half);
void write_exact(const Shape& shape, const float* working, std::uint8_t* row);
void read_exact(const Shape& shape, const std::uint8_t* row, float* out);

}  // namespace outpace::ann
