#include <stdint.h>

/* The bits that are set in all words together */
long popcount(const uint64_t *words, long n) {
    long bits = 0;
    for (long i = 0; i < n; ++i) {
        for (uint64_t left = words[i]; left != 0; left &= left - 1) ++bits;
    }
    return bits;
}
