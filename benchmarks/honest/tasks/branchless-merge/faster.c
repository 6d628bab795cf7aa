#include <stdint.h>

void merge(const int32_t* a, const int32_t* b, int32_t* out, int64_t n) {
    int64_t i = 0, j = 0;
    while (i < n && j < n) {
        const int32_t left = a[i], right = b[j];
        const int32_t first = -(int32_t)(left <= right);
        *out++ = (left & first) | (right & ~first);
        i -= first;
        j += 1 + first;
    }
    while (i < n) *out++ = a[i++];
    while (j < n) *out++ = b[j++];
}
