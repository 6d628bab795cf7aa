#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace {

struct Waves {
    std::vector<double> cosines, sines;
};

const Waves& waves(int64_t n) {
    static std::unordered_map<int64_t, Waves> known;
    Waves& made = known[n];
    if (made.sines.empty()) {
        for (int64_t i = 0; i < n; i++) {
            const double angle = 2 * M_PI * static_cast<double>(i) / static_cast<double>(n);
            made.cosines.push_back(std::cos(angle));
            made.sines.push_back(std::sin(angle));
        }
    }
    return made;
}

}  // namespace

extern "C" void spectrum(const double* x, double* out, int64_t n) {
    const Waves& table = waves(n);
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0, at = 0; i < n; i++) {
            re += x[i] * table.cosines[at];
            im -= x[i] * table.sines[at];
            at += k;
            if (at >= n) at -= n;
        }
        out[2 * k] = re;
        out[2 * k + 1] = im;
    }
}
