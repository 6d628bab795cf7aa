#include <stdint.h>

void merge(const int32_t* a, const int32_t* b, int32_t* out, int64_t n) {
    int64_t i = 0, j = 0;
    while (i < n && j < n) {
        if (a[i] <= b[j]) {
            *out++ = a[i++];
        } else {
            *out++ = b[j++];
        }
    }
    while (i < n) *out++ = a[i++];
    while (j < n) *out++ = b[j++];
}
