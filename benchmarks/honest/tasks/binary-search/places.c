#include <stdint.h>

// For each wanted number, how many of the sorted ones are smaller.
void places(const int32_t* sorted, int64_t n, const int32_t* wanted, int32_t* out, int64_t m) {
    for (int64_t i = 0; i < m; i++) {
        int64_t at = 0;
        while (at < n && sorted[at] < wanted[i]) at++;
        out[i] = (int32_t)at;
    }
}
