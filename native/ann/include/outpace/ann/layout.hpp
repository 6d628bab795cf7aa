// Layout: how a vector is coded, stated once; every engine, kernel and file reads these bytes.
//
// A vector x is reduced to `reduced` coordinates (projection, rotation, centring; see transform.hpp). Two
// codes are kept of it, and one exact copy:
//
//   scan code    `scan_bits` per coordinate of r = x - a, where a is its anchor (the centre of its list, or
//   the graph
//                node whose row holds it). 32 vectors share a block:
//                  [f16 factor x 32][f16 constant x 32][chunks x 64 bytes]
//                A chunk is four groups of 16 bytes; a group is one nibble of each vector: vectors 0-15 in
//                the low halves, 16-31 in the high halves. A nibble holds 4 / scan_bits coordinates.
//   sketch       `sketch_bits` (4 or 8) per coordinate of x, with its scale and squared norm, in whole cache
//   lines; none where `sketch_bits` is 0, and the exact row serves in its place:
//                  [codes ... padding][f32 -2 * scale][f32 |x|^2]
//                Four bits: byte j holds coordinate j low and coordinate j + half high.
//   exact row    the vector as given (float32, float16, int8 or uint8), padded with zeros to 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace outpace::ann {

using Slot = std::uint32_t;  // where a vector lives: block * 32 + lane
using Id = std::int64_t;     // what the user calls it

inline constexpr Slot no_slot = std::numeric_limits<Slot>::max();
inline constexpr int lanes = 32;
inline constexpr int line = 64;
inline constexpr int block_head = 128;      // the two f16 arrays of a block
inline constexpr int row_head = 4 * lanes;  // the neighbours of a graph row, before its block
inline constexpr int max_reduced = 496;     // four lines of four-bit sketch
inline constexpr int max_chunks = 124;      // max_reduced coordinates of four bits
inline constexpr int max_dimension = 4096;
inline constexpr float fixed_norm =
    32000.0f;  // length of a vector in 16-bit fixed point: a product of two is below 2^31
// Reduced coordinates are in units of the stored vectors' spread. Beyond this, single precision cannot tell
// the stored vectors apart, and squares would leave its range.
inline constexpr float farthest = 1e12f;

constexpr float within_reach(float coordinate) {
    const float below =
        coordinate < farthest ? coordinate : farthest;  // in this order NaN becomes finite as well
    return below > -farthest ? below : -farthest;
}

enum class Metric : std::int32_t { l2 = 0, ip = 1, cosine = 2 };
enum class Scalar : std::int32_t { f32 = 0, f16 = 1, i8 = 2, u8 = 3 };

constexpr int scalar_bytes(Scalar kind) {
    return kind == Scalar::f32 ? 4 : kind == Scalar::f16 ? 2 : 1;
}

constexpr int round_up(int value, int step) {
    return (value + step - 1) / step * step;
}

// The sizes that follow from how vectors are coded. Part of the file.
struct Shape {
    std::int32_t dimension = 0;    // of the vectors as given
    std::int32_t reduced = 0;      // coordinates kept in codes
    std::int32_t scan_bits = 1;    // 1, 2 or 4
    std::int32_t sketch_bits = 4;  // 4 or 8, or 0: no sketch
    Scalar exact = Scalar::f32;    // what exact rows hold
    Metric metric = Metric::l2;

    constexpr int per_nibble() const { return 4 / scan_bits; }
    constexpr int groups() const { return (reduced + per_nibble() - 1) / per_nibble(); }
    constexpr int chunks() const { return (groups() + 3) / 4; }
    constexpr std::size_t block_bytes() const { return block_head + std::size_t(line) * chunks(); }
    constexpr std::size_t graph_row_bytes() const { return row_head + block_bytes(); }
    constexpr int half() const { return sketch_bits == 4 ? (reduced + 1) / 2 : reduced; }
    constexpr std::size_t sketch_bytes() const { return sketch_bits ? round_up(half() + 8, line) : 0; }
    // Halves are read sixteen at a time, so that half a line is a unit of theirs: a row that begins in the
    // middle of a line takes no more lines for it.
    constexpr std::size_t exact_bytes() const {
        return round_up(dimension * scalar_bytes(exact), exact == Scalar::f16 ? line / 2 : line);
    }
    // Coordinates, padded so that four of them make one 32-bit word of the ranking kernel.
    constexpr int quads() const { return (reduced + 3) / 4; }
    // The metric's own space: inner products become distances by one more coordinate (Bachrach et al. 2014).
    constexpr int working() const { return dimension + (metric == Metric::ip ? 1 : 0); }
};

// A candidate as one integer that sorts by distance, then by slot: distances are made non-negative first, so
// their bits sort as integers do.
using Key = std::uint64_t;

inline Key make_key(float distance, Slot slot) {
    const float positive = distance > 0 ? distance : 0;
    std::uint32_t bits;
    __builtin_memcpy(&bits, &positive, 4);
    return (Key(bits) << 32) | slot;
}
inline float key_distance(Key key) {
    const std::uint32_t bits = std::uint32_t(key >> 32);
    float distance;
    __builtin_memcpy(&distance, &bits, 4);
    return distance;
}
inline Slot key_slot(Key key) {
    return Slot(key);
}

}  // namespace outpace::ann
