// Half: conversions between single and half precision for the code that is not compiled per instruction set.
#pragma once

#include <bit>
#include <cstdint>

namespace outpace::ann {

inline float from_half(std::uint16_t half) {
    const std::uint32_t sign = std::uint32_t(half & 0x8000) << 16;
    const std::uint32_t magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
    // Rebiasing by multiplication makes subnormals right as well.
    return std::bit_cast<float>(
        sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f));
}

inline std::uint16_t to_half(float value) {
    std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint16_t sign = std::uint16_t((bits >> 16) & 0x8000);
    bits &= 0x7fffffff;
    if (bits >= 0x477ff000)  // rounds to 65536 and more, or NaN
        return sign | (bits > 0x7f800000 ? 0x7e00 : 0x7c00);
    if (bits < 0x38800000)  // subnormal: adding one half lets the adder round
        return sign |
               std::uint16_t(std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 0.5f) - 0x3f000000);
    bits += 0xc8000fff + ((bits >> 13) & 1);
    return sign | std::uint16_t(bits >> 13);
}

}  // namespace outpace::ann
