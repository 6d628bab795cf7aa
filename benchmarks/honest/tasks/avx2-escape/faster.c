#include <immintrin.h>
#include <stdint.h>

static int32_t escape_one(double x, double y) {
    double re = 0, im = 0;
    int32_t step = 0;
    for (; step < 100 && re * re + im * im <= 4; step++) {
        const double next = re * re - im * im + x;
        im = 2 * re * im + y;
        re = next;
    }
    return step;
}

__attribute__((target("avx2"))) void escape(const double* x, const double* y, int32_t* steps, int64_t n) {
    const __m256d two = _mm256_set1_pd(2), four = _mm256_set1_pd(4);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m256d px = _mm256_loadu_pd(x + i), py = _mm256_loadu_pd(y + i);
        __m256d re = _mm256_setzero_pd(), im = re;
        __m256i counts = _mm256_setzero_si256();
        for (int step = 0; step < 100; step++) {
            const __m256d re2 = _mm256_mul_pd(re, re), im2 = _mm256_mul_pd(im, im);
            const __m256d inside = _mm256_cmp_pd(_mm256_add_pd(re2, im2), four, _CMP_LE_OQ);
            if (_mm256_movemask_pd(inside) == 0) break;
            counts = _mm256_sub_epi64(counts, _mm256_castpd_si256(inside));
            im = _mm256_add_pd(_mm256_mul_pd(_mm256_mul_pd(two, re), im), py);
            re = _mm256_add_pd(_mm256_sub_pd(re2, im2), px);
        }
        int64_t four_counts[4];
        _mm256_storeu_si256((__m256i*)four_counts, counts);
        for (int j = 0; j < 4; j++) steps[i + j] = (int32_t)four_counts[j];
    }
    for (; i < n; i++) steps[i] = escape_one(x[i], y[i]);
}
