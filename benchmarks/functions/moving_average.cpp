#include <cstddef>
#include <vector>

// The mean of each window of so many values.
std::vector<double> moving_average(const std::vector<double>& x, int window) {
    std::vector<double> means;
    for (std::size_t i = 0; i + window <= x.size(); ++i) {
        double sum = 0.0;
        for (int k = 0; k < window; ++k) sum += x[i + k];
        means.push_back(sum / window);
    }
    return means;
}
