// Rounds of Lloyd's k-means.
//
// `points` holds count x dim coordinates, `centres` k x dim, row by row. In each round every point takes the
// label of its nearest centre (of equally near ones, the first), then every centre moves to the mean of its
// points; a centre without points stays. `centres` starts with the initial centres and ends with the last
// ones; `labels` ends with the labels of the last round. count, dim, k and rounds are at least 1; k is at
// most 64.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr int64_t kMostCentres = 64;

// Coordinates between two looks at whether a centre is already too far, or centres summed at a time.
// outpace: choose 1 2 4 8
constexpr int64_t kStep = 4;

// Finds the nearest centre of a point; made anew in every round.
// outpace: alternatives
// outpace: option one-by-one
struct Nearest {
    const double* centres;
    int64_t k, dim;
    Nearest(const double* centres, int64_t k, int64_t dim) : centres(centres), k(k), dim(dim) {}
    int32_t operator()(const float* point) const {
        int32_t best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (int64_t c = 0; c < k; c++) {
            double sum = 0;
            for (int64_t d = 0; d < dim; d++) {
                double difference = point[d] - centres[c * dim + d];
                sum += difference * difference;
            }
            if (sum < least) {
                least = sum;
                best = static_cast<int32_t>(c);
            }
        }
        return best;
    }
};
// outpace: option give-up-early
//~ struct Nearest {
//~     const double* centres;
//~     int64_t k, dim;
//~     Nearest(const double* centres, int64_t k, int64_t dim) : centres(centres), k(k), dim(dim) {}
//~     int32_t operator()(const float* point) const {
//~         int32_t best = 0;
//~         double least = std::numeric_limits<double>::infinity();
//~         for (int64_t c = 0; c < k; c++) {
//~             double sum = 0;
//~             for (int64_t first = 0; first < dim && sum < least; first += kStep) {
//~                 int64_t last = std::min(first + kStep, dim);
//~                 for (int64_t d = first; d < last; d++) {
//~                     double difference = point[d] - centres[c * dim + d];
//~                     sum += difference * difference;
//~                 }
//~             }
//~             if (sum < least) {
//~                 least = sum;
//~                 best = static_cast<int32_t>(c);
//~             }
//~         }
//~         return best;
//~     }
//~ };
// outpace: option all-centres-at-once
//~ struct Nearest {
//~     // Coordinate by coordinate, so that one coordinate of a point meets many centres in one vector.
//~     std::vector<double> columns;
//~     int64_t k, padded, dim;
//~     Nearest(const double* centres, int64_t k, int64_t dim)
//~         : k(k), padded((k + kStep - 1) / kStep * kStep), dim(dim) {
//~         columns.resize(padded * dim);
//~         for (int64_t c = 0; c < k; c++) {
//~             for (int64_t d = 0; d < dim; d++) columns[d * padded + c] = centres[c * dim + d];
//~         }
//~     }
//~     int32_t operator()(const float* point) const {
//~         double sums[kMostCentres + kStep] = {};
//~         for (int64_t d = 0; d < dim; d++) {
//~             double coordinate = point[d];
//~             const double* column = &columns[d * padded];
//~             for (int64_t c = 0; c < padded; c++) {
//~                 sums[c] += (coordinate - column[c]) * (coordinate - column[c]);
//~             }
//~         }
//~         return static_cast<int32_t>(std::min_element(sums, sums + k) - sums);
//~     }
//~ };
// outpace: option groups-of-centres
//~ struct Nearest {
//~     std::vector<double> groups;
//~     int64_t k, dim;
//~     Nearest(const double* centres, int64_t k, int64_t dim) : k(k), dim(dim) {
//~         // The last group is filled up with copies of the last centre, which never beat the original.
//~         for (int64_t first = 0; first < k; first += kStep) {
//~             for (int64_t d = 0; d < dim; d++) {
//~                 for (int64_t c = first; c < first + kStep; c++) {
//~                     groups.push_back(centres[std::min(c, k - 1) * dim + d]);
//~                 }
//~             }
//~         }
//~     }
//~     int32_t operator()(const float* point) const {
//~         int32_t best = 0;
//~         double least = std::numeric_limits<double>::infinity();
//~         const double* column = groups.data();
//~         for (int64_t first = 0; first < k; first += kStep) {
//~             double sums[kStep] = {};
//~             for (int64_t d = 0; d < dim; d++, column += kStep) {
//~                 double coordinate = point[d];
//~                 for (int64_t c = 0; c < kStep; c++) {
//~                     sums[c] += (coordinate - column[c]) * (coordinate - column[c]);
//~                 }
//~             }
//~             for (int64_t c = 0; c < kStep; c++) {
//~                 if (sums[c] < least) {
//~                     least = sums[c];
//~                     best = static_cast<int32_t>(first + c);
//~                 }
//~             }
//~         }
//~         return best;
//~     }
//~ };
// outpace: end alternatives

// Moves each centre to the mean of the points that bear its label.
// outpace: alternatives
// outpace: option divide
void move_centres(double* centres, int64_t k, int64_t dim, const double* sums, const int64_t* members) {
    for (int64_t c = 0; c < k; c++) {
        if (members[c] == 0) continue;
        for (int64_t d = 0; d < dim; d++)
            centres[c * dim + d] = sums[c * dim + d] / static_cast<double>(members[c]);
    }
}
// outpace: option multiply
//~ void move_centres(double* centres, int64_t k, int64_t dim, const double* sums, const int64_t* members) {
//~     for (int64_t c = 0; c < k; c++) {
//~         if (members[c] == 0) continue;
//~         double share = 1.0 / static_cast<double>(members[c]);
//~         for (int64_t d = 0; d < dim; d++) centres[c * dim + d] = sums[c * dim + d] * share;
//~     }
//~ }
// outpace: end alternatives

}  // namespace

extern "C" void kmeans(const float* points, int64_t count, int64_t dim, double* centres, int64_t k,
                       int32_t* labels, int32_t rounds) {
    for (int32_t round = 0; round < rounds; round++) {
        Nearest nearest(centres, k, dim);
        for (int64_t i = 0; i < count; i++) labels[i] = nearest(points + i * dim);
        std::vector<double> sums(k * dim, 0.0);
        std::vector<int64_t> members(k, 0);
        for (int64_t i = 0; i < count; i++) {
            for (int64_t d = 0; d < dim; d++) sums[labels[i] * dim + d] += points[i * dim + d];
            members[labels[i]]++;
        }
        move_centres(centres, k, dim, sums.data(), members.data());
    }
}
