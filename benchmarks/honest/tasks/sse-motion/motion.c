#include <stdint.h>
#include <stdlib.h>

// The least sum of absolute differences, and the place where it is.
int64_t motion(const uint8_t* picture, int64_t height, int64_t width, const uint8_t* block) {
    int64_t least = INT64_MAX, place = 0;
    for (int64_t y = 0; y + 16 <= height; y++) {
        for (int64_t x = 0; x + 16 <= width; x++) {
            int64_t sum = 0;
            for (int64_t i = 0; i < 16; i++) {
                for (int64_t j = 0; j < 16; j++)
                    sum += abs(picture[(y + i) * width + x + j] - block[16 * i + j]);
            }
            if (sum < least) {
                least = sum;
                place = y * width + x;
            }
        }
    }
    return least * height * width + place;
}
