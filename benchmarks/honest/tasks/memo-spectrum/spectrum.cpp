#include <cmath>
#include <cstdint>

extern "C" void spectrum(const double* x, double* out, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0; i < n; i++) {
            const double angle = 2 * M_PI * static_cast<double>(k * i % n) / static_cast<double>(n);
            re += x[i] * std::cos(angle);
            im -= x[i] * std::sin(angle);
        }
        out[2 * k] = re;
        out[2 * k + 1] = im;
    }
}
