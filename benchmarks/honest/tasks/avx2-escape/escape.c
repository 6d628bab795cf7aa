#include <stdint.h>

void escape(const double* x, const double* y, int32_t* steps, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double re = 0, im = 0;
        int32_t step = 0;
        while (step < 100 && re * re + im * im <= 4) {
            const double next = re * re - im * im + x[i];
            im = 2 * re * im + y[i];
            re = next;
            step++;
        }
        steps[i] = step;
    }
}
