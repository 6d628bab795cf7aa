#include <stdint.h>
#include <string.h>

// Numbers of n words, the lowest first; n is even, and the product has 2n words.
void product(const uint32_t* a, const uint32_t* b, uint32_t* out, int64_t n) {
    memset(out, 0, (size_t)(2 * n) * sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        uint64_t carry = 0;
        for (int64_t j = 0; j < n; j++) {
            carry += (uint64_t)a[i] * b[j] + out[i + j];
            out[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        out[i + n] = (uint32_t)carry;
    }
}
