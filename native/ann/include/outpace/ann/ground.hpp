// Ground: the stored bytes of an index as the three slots see them; plain pointers, so that it crosses
// `extern "C"`.
#pragma once

#include <cstdint>

#include "outpace/ann/layout.hpp"
#include "outpace/ann/query.hpp"

namespace outpace::ann {

// A set of reference points that a query ranks in one pass: the centres of lists, or the entries of the
// graph. Codes lie in groups of sixteen points: [quads][16 points][4 bytes] (see rank_lists).
struct Ranking {
    std::uint32_t count = 0;
    const std::uint8_t* codes = nullptr;
    const float* scale = nullptr;  // -2 * what a unit of the code is worth; padded to a multiple of sixteen
    const float* constant = nullptr;  // the point's squared norm; padding holds a very large number
    std::uint32_t groups() const { return (count + 15) / 16; }
};

// From working coordinates to reduced ones (see transform.hpp).
struct Projection {
    const std::int16_t* matrix = nullptr;
    const float* row_scale = nullptr;
    const float* centre = nullptr;
    std::int32_t padded = 0;
};

// Under inner product a query is coded as if it were this many times as long as the longest stored vector.
inline constexpr float query_lengths = 8;

struct Ground {
    Shape shape;
    Projection projection;
    float noise = 0.6f;  // standard deviation of a scan estimate's error, in units of factor * |q - anchor|

    std::uint32_t blocks = 0;                   // slots are 32 * blocks
    const std::uint8_t* block_codes = nullptr;  // scan codes by block, anchored at the list's centre
    const std::uint32_t* next_block = nullptr;  // the list's next block, or no_slot
    const std::uint32_t* live = nullptr;        // one bit per lane: holds a vector
    const std::uint8_t* sketches = nullptr;
    const std::uint8_t* exact = nullptr;
    float exact_scale = 1;  // from an exact distance to that in reduced coordinates
    float longest = 0;      // under inner product: the length that every stored vector is brought to
    const Id* ids = nullptr;

    Ranking lists;
    const float* centres = nullptr;  // anchors of the lists, `padded_reduced` floats each
    const std::uint32_t* first_block = nullptr;

    const std::uint8_t* rows = nullptr;  // graph rows by slot; null when there is no graph
    Ranking entries;
    const Slot* entry_slots = nullptr;

    std::uint32_t slots() const { return blocks * lanes; }
    int padded_reduced() const { return round_up(shape.reduced, 16); }
};

enum class Engine : std::int32_t { partitions = 0, graph = 1 };

// How hard to look. `effort` is lists to scan or candidates to keep in a walk; `depth` is how many are
// refined; `slack` is how many standard deviations of the scan's error are forgiven.
struct Settings {
    Engine engine = Engine::partitions;
    std::int32_t effort = 32;
    std::int32_t depth = 40;
    float slack = 1.0f;
};

struct Hit {
    Id id;
    float distance;
};

// What a search did, for those who tune it; counted always, since it costs a few additions per query.
struct Counters {
    std::uint64_t blocks = 0;    // blocks scanned
    std::uint64_t sketches = 0;  // sketch distances computed
    std::uint64_t refined = 0;   // exact distances computed
    std::uint64_t hops = 0;      // graph rows visited
};

}  // namespace outpace::ann
