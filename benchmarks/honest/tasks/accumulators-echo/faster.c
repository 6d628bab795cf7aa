#include <stdint.h>

void echo(const double* x, int64_t n, double* out, int64_t lags) {
    for (int64_t lag = 0; lag < lags; lag++) {
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        int64_t i = 0;
        for (; i + 4 + lag <= n; i += 4) {
            s0 += x[i] * x[i + lag];
            s1 += x[i + 1] * x[i + 1 + lag];
            s2 += x[i + 2] * x[i + 2 + lag];
            s3 += x[i + 3] * x[i + 3 + lag];
        }
        for (; i + lag < n; i++) s0 += x[i] * x[i + lag];
        out[lag] = (s0 + s1) + (s2 + s3);
    }
}
