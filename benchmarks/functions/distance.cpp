#include <cmath>
#include <cstddef>
#include <vector>

namespace near {

// How far two points of the same space are apart.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double gap = static_cast<double>(a[i]) - b[i];
        sum += gap * gap;
    }
    return std::sqrt(sum);
}

}  // namespace near
