#include <stdint.h>

/* out[i] is the sum of all elements up to and with i */
void prefix_sum(const int32_t *x, int64_t *out, int n) {
    int64_t sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += x[i];
        out[i] = sum;
    }
}
