#include <stdint.h>
#include <string.h>

// n is a multiple of 16.
void product(const float* restrict a, const float* restrict b, float* restrict c, int64_t n) {
    memset(c, 0, (size_t)(n * n) * sizeof *c);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) {
            for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
        }
    }
}
