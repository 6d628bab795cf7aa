#include <stdint.h>

void rows(const float* restrict matrix, const float* restrict weights, float* restrict sums, int64_t height,
          int64_t width) {
    for (int64_t j = 0; j < width; j++) {
        sums[j] = 0;
        for (int64_t i = 0; i < height; i++) sums[j] += weights[i] * matrix[i * width + j];
    }
}
