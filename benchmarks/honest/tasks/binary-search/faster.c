#include <stdint.h>

void places(const int32_t* sorted, int64_t n, const int32_t* wanted, int32_t* out, int64_t m) {
    for (int64_t i = 0; i < m; i++) {
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (sorted[middle] < wanted[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        out[i] = (int32_t)low;
    }
}
