#include <math.h>
#include <stdint.h>

void powers(const double* x, double* out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * sqrt(x[i]);
}
