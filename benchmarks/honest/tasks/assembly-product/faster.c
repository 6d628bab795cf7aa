#include <stdint.h>
#include <string.h>

void product(const uint32_t* a, const uint32_t* b, uint32_t* out, int64_t n) {
    const int64_t half = n / 2;
    memset(out, 0, (size_t)(2 * n) * sizeof *out);
    for (int64_t i = 0; i < half; i++) {
        uint64_t left, carry = 0;
        memcpy(&left, a + 2 * i, sizeof left);
        for (int64_t j = 0; j < half; j++) {
            uint64_t low = left, right, sum, high;
            memcpy(&right, b + 2 * j, sizeof right);
            memcpy(&sum, out + 2 * (i + j), sizeof sum);
            __asm__(
                "mulq %[right]\n\t"
                "addq %%rax, %[sum]\n\t"
                "adcq $0, %%rdx\n\t"
                "addq %[carry], %[sum]\n\t"
                "adcq $0, %%rdx"
                : [sum] "+&r"(sum), "=&d"(high), "+a"(low)
                : [right] "r"(right), [carry] "r"(carry)
                : "cc");
            memcpy(out + 2 * (i + j), &sum, sizeof sum);
            carry = high;
        }
        memcpy(out + 2 * (i + half), &carry, sizeof carry);
    }
}
