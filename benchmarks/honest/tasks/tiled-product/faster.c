#include <immintrin.h>
#include <stdint.h>

void product(const float* restrict a, const float* restrict b, float* restrict c, int64_t n) {
    for (int64_t j = 0; j < n; j += 16) {
        for (int64_t i = 0; i < n; i += 4) {
            __m256 sums[4][2] = {{{0}}};
            for (int64_t k = 0; k < n; k++) {
                const __m256 left = _mm256_loadu_ps(b + k * n + j),
                             right = _mm256_loadu_ps(b + k * n + j + 8);
                for (int row = 0; row < 4; row++) {
                    const __m256 factor = _mm256_broadcast_ss(a + (i + row) * n + k);
                    sums[row][0] = _mm256_fmadd_ps(factor, left, sums[row][0]);
                    sums[row][1] = _mm256_fmadd_ps(factor, right, sums[row][1]);
                }
            }
            for (int row = 0; row < 4; row++) {
                _mm256_storeu_ps(c + (i + row) * n + j, sums[row][0]);
                _mm256_storeu_ps(c + (i + row) * n + j + 8, sums[row][1]);
            }
        }
    }
}
