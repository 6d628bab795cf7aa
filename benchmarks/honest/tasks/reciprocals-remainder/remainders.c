#include <stdint.h>

void remainders(const uint32_t* values, uint32_t* out, uint32_t divisor, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = values[i] % divisor;
}
