#include <stdint.h>

void echo(const double* x, int64_t n, double* out, int64_t lags) {
    for (int64_t lag = 0; lag < lags; lag++) {
        double sum = 0;
        for (int64_t i = 0; i + lag < n; i++) sum += x[i] * x[i + lag];
        out[lag] = sum;
    }
}
