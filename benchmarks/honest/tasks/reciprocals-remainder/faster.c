#include <stdint.h>

// The fraction of value / divisor in 64 bits is exact enough for numbers of 32 (Lemire, Kaser and Kurz 2019).
void remainders(const uint32_t* values, uint32_t* out, uint32_t divisor, int64_t n) {
    const uint64_t reciprocal = UINT64_MAX / divisor + 1;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t fraction = reciprocal * values[i];
        out[i] = (uint32_t)((unsigned __int128)fraction * divisor >> 64);
    }
}
