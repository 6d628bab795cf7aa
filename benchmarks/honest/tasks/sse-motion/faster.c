#include <emmintrin.h>
#include <stdint.h>

int64_t motion(const uint8_t* picture, int64_t height, int64_t width, const uint8_t* block) {
    int64_t least = INT64_MAX, place = 0;
    __m128i rows[16];
    for (int i = 0; i < 16; i++) rows[i] = _mm_loadu_si128((const __m128i*)(block + 16 * i));
    for (int64_t y = 0; y + 16 <= height; y++) {
        for (int64_t x = 0; x + 16 <= width; x++) {
            __m128i sums = _mm_setzero_si128();
            for (int i = 0; i < 16; i++) {
                const __m128i row = _mm_loadu_si128((const __m128i*)(picture + (y + i) * width + x));
                sums = _mm_add_epi64(sums, _mm_sad_epu8(row, rows[i]));
            }
            const int64_t sum = _mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
            if (sum < least) {
                least = sum;
                place = y * width + x;
            }
        }
    }
    return least * height * width + place;
}
