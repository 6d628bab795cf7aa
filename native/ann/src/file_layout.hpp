// File layout: the header of an index file and the sections that follow it, each on a page of its own.
//
// A file is sealed by two kinds of checksums: every place holds that of its section's bytes, and the header
// holds its own, taken last, with that field zero. Whoever changes bytes by hand seals the file again in this
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "calibration.hpp"
#include "checksum.hpp"
#include "outpace/ann/layout.hpp"

namespace outpace::ann::file_layout {

// All numbers are little-endian, as on every machine this builds for.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are written in the machine's own byte order");

inline constexpr char magic[8] = {'O', 'U', 'T', 'P', 'A', 'C', 'E', 'A'};
inline constexpr std::uint32_t file_version = 4;
inline constexpr std::size_t page = 4096;  // sections begin on pages, so that a mapped one is aligned

enum Section : std::uint32_t {
    block_codes,
    next_block,
    live,
    dead,
    sketches,
    exact,
    ids,
    list_codes,
    list_scale,
    list_constant,
    centres,
    first_block,
    rows,
    entry_codes,
    entry_scale,
    entry_constant,
    entry_slots,
    matrix,
    row_scale,
    centre,
    long_slots,
    real_queries,
    calibration,
    section_count
};

struct Place {
    std::uint64_t offset, size, checksum;
};

struct Header {
    char magic[8];
    std::uint32_t version, header_bytes;
    std::uint64_t checksum;
    std::uint64_t file_bytes;
    Shape shape;
    float noise, unit, longest;
    std::uint32_t blocks, lists, entries, points, queries;
    std::uint64_t seed, count, dead_count, repaired;
    double build_seconds;
    std::uint64_t changed;
    std::uint32_t long_slots, real_queries;
    Id highest;
    float stretch[2];
    Place place[section_count];
};
static_assert(sizeof(Header) == 160 + section_count * sizeof(Place), "padding would be checked and not kept");
static_assert(sizeof(Measured) == 36, "points are stored as they lie in memory");

// Where the section after one that ends here begins.
inline std::uint64_t aligned(std::uint64_t offset) {
    return (offset + page - 1) / page * page;
}

inline std::uint64_t header_checksum(Header header) {
    header.checksum = 0;
    return checksum(reinterpret_cast<const std::uint8_t*>(&header), sizeof header);
}

}  // namespace outpace::ann::file_layout
