// Checksum: 64 bits over some bytes, to find damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace outpace::ann {

// Four independent multiply-rotate lanes: several bytes per cycle, the same on every machine. It is no
// defence against someone who means harm, who can compute it as well: what a checked file says is checked
// again, or bounded where it is used.
inline std::uint64_t checksum(const std::uint8_t* data, std::size_t size) {
    constexpr std::uint64_t prime = 0x9e3779b185ebca87u;
    std::uint64_t lane[4] = {1, 2, 3, 4};
    const auto mix = [](std::uint64_t state, std::uint64_t word) {
        state = (state ^ word) * prime;
        return (state << 31) | (state >> 33);
    };
    std::size_t i = 0;
    for (; i + 32 <= size; i += 32)
        for (int j = 0; j < 4; ++j) {
            std::uint64_t word;
            std::memcpy(&word, data + i + 8 * std::size_t(j), 8);
            lane[j] = mix(lane[j], word);
        }
    std::uint64_t hash = mix(mix(mix(mix(size, lane[0]), lane[1]), lane[2]), lane[3]);
    for (; i < size; ++i) hash = mix(hash, data[i]);
    return hash ^ (hash >> 29);
}

}  // namespace outpace::ann
