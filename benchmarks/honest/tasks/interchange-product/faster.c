#include <stdint.h>
#include <string.h>

void product(const double* a, const double* b, double* c, int64_t n) {
    memset(c, 0, (size_t)(n * n) * sizeof *c);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) {
            const double factor = a[i * n + k];
            for (int64_t j = 0; j < n; j++) c[i * n + j] += factor * b[k * n + j];
        }
    }
}
