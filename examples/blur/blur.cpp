// A separable blur of a grey image.
//
// `image` and `blurred` hold height x width pixels, row by row without gaps. `weights` holds 2 * radius + 1
// numbers, none negative, the same from both ends, with sum 256; radius is 0 to 16. A pixel beyond the border
// is the nearest one inside, and an image may be smaller than the filter. With v the sum over both directions
// of weight * weight * pixel, the result is (v + 32768) / 65536, rounded down.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

// Sums over a row reach 255 * 256, which just fits into 16 bits.
// outpace: choose uint16_t int32_t
using Sum = uint16_t;

// Columns that the `row-by-row` option sums at a time.
// outpace: choose 32 128 512
constexpr int32_t kStrip = 512;

// One row of the image, filtered along the row.
// outpace: alternatives
// outpace: option clamp-every-pixel
void filter_row(const uint8_t* row, Sum* sums, int32_t width, const int32_t* weights, int32_t radius) {
    for (int32_t x = 0; x < width; x++) {
        int32_t sum = 0;
        for (int32_t t = -radius; t <= radius; t++) {
            sum += weights[t + radius] * row[std::clamp(x + t, 0, width - 1)];
        }
        sums[x] = static_cast<Sum>(sum);
    }
}
// outpace: option clamp-at-borders
//~ void filter_row(const uint8_t* row, Sum* sums, int32_t width, const int32_t* weights, int32_t radius) {
//~     int32_t left = std::min(radius, width);
//~     int32_t right = std::max(left, width - radius);
//~     for (int32_t x = 0; x < width; x++) {
//~         int32_t sum = 0;
//~         if (x >= left && x < right) {
//~             for (int32_t t = 0; t <= 2 * radius; t++) sum += weights[t] * row[x - radius + t];
//~         } else {
//~             for (int32_t t = -radius; t <= radius; t++) {
//~                 sum += weights[t + radius] * row[std::clamp(x + t, 0, width - 1)];
//~             }
//~         }
//~         sums[x] = static_cast<Sum>(sum);
//~     }
//~ }
// outpace: option padded-copy
//~ void filter_row(const uint8_t* row, Sum* sums, int32_t width, const int32_t* weights, int32_t radius) {
//~     thread_local std::vector<uint8_t> padded;
//~     padded.assign(width + 2 * radius, row[0]);
//~     std::copy(row, row + width, padded.begin() + radius);
//~     std::fill(padded.begin() + radius + width, padded.end(), row[width - 1]);
//~     for (int32_t x = 0; x < width; x++) {
//~         int32_t sum = 0;
//~         for (int32_t t = 0; t <= 2 * radius; t++) sum += weights[t] * padded[x + t];
//~         sums[x] = static_cast<Sum>(sum);
//~     }
//~ }
// outpace: option padded-tap-by-tap
//~ void filter_row(const uint8_t* row, Sum* sums, int32_t width, const int32_t* weights, int32_t radius) {
//~     thread_local std::vector<uint8_t> padded;
//~     padded.assign(width + 2 * radius, row[0]);
//~     std::copy(row, row + width, padded.begin() + radius);
//~     std::fill(padded.begin() + radius + width, padded.end(), row[width - 1]);
//~     std::fill(sums, sums + width, Sum{0});
//~     for (int32_t t = 0; t <= 2 * radius; t++) {
//~         const uint8_t* from = padded.data() + t;
//~         Sum weight = static_cast<Sum>(weights[t]);
//~         for (int32_t x = 0; x < width; x++) sums[x] = static_cast<Sum>(sums[x] + weight * from[x]);
//~     }
//~ }
// outpace: end alternatives

// One row of the result from the rows' sums around row y.
// outpace: alternatives
// outpace: option pixel-by-pixel
void filter_columns(const Sum* sums, uint8_t* out, int32_t y, int32_t height, int32_t width,
                    const int32_t* weights, int32_t radius) {
    for (int32_t x = 0; x < width; x++) {
        int32_t sum = 32768;
        for (int32_t t = -radius; t <= radius; t++) {
            sum += weights[t + radius] *
                   static_cast<int32_t>(sums[std::clamp(y + t, 0, height - 1) * width + x]);
        }
        out[x] = static_cast<uint8_t>(sum >> 16);
    }
}
// outpace: option row-by-row
//~ void filter_columns(const Sum* sums, uint8_t* out, int32_t y, int32_t height, int32_t width,
//~                     const int32_t* weights, int32_t radius) {
//~     int32_t totals[kStrip];
//~     for (int32_t first = 0; first < width; first += kStrip) {
//~         int32_t columns = std::min(kStrip, width - first);
//~         std::fill(totals, totals + columns, 32768);
//~         for (int32_t t = -radius; t <= radius; t++) {
//~             const Sum* row = sums + std::clamp(y + t, 0, height - 1) * width + first;
//~             int32_t weight = weights[t + radius];
//~             for (int32_t x = 0; x < columns; x++) totals[x] += weight * static_cast<int32_t>(row[x]);
//~         }
//~         for (int32_t x = 0; x < columns; x++) out[first + x] = static_cast<uint8_t>(totals[x] >> 16);
//~     }
//~ }
// outpace: end alternatives

}  // namespace

extern "C" void blur(const uint8_t* image, uint8_t* blurred, int32_t height, int32_t width,
                     const int32_t* weights, int32_t radius) {
    std::vector<Sum> sums(static_cast<size_t>(height) * width);
    for (int32_t y = 0; y < height; y++)
        filter_row(image + y * width, &sums[y * width], width, weights, radius);
    for (int32_t y = 0; y < height; y++) {
        filter_columns(sums.data(), blurred + y * width, y, height, width, weights, radius);
    }
}
