// The product of two float32 matrices.
//
// a is m x k, b is k x n, c is m x n; all are stored row by row without gaps, and c starts with unknown
// contents. m, k and n are at least 1.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

// Columns of c that the tiled options work on at a time.
// outpace: choose 8 16 32 64
constexpr int64_t kColumns = 32;

// Rows of c (`panels`) or independent sums (`transposed`) that are kept going at a time.
// outpace: choose 1 2 4 8
constexpr int64_t kRows = 4;

// outpace: alternatives
// outpace: option dot-products
void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < k; l++) sum += a[i * k + l] * b[l * n + j];
            c[i * n + j] = sum;
        }
    }
}
// outpace: option rows
//~ void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
//~     std::fill(c, c + m * n, 0.0f);
//~     for (int64_t i = 0; i < m; i++) {
//~         for (int64_t l = 0; l < k; l++) {
//~             for (int64_t j = 0; j < n; j++) c[i * n + j] += a[i * k + l] * b[l * n + j];
//~         }
//~     }
//~ }
// outpace: option tiles
//~ void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
//~     for (int64_t first = 0; first < n; first += kColumns) {
//~         int64_t columns = std::min(kColumns, n - first);
//~         for (int64_t i = 0; i < m; i++) {
//~             float sums[kColumns] = {};
//~             for (int64_t l = 0; l < k; l++) {
//~                 for (int64_t j = 0; j < columns; j++) sums[j] += a[i * k + l] * b[l * n + first + j];
//~             }
//~             std::copy(sums, sums + columns, c + i * n + first);
//~         }
//~     }
//~ }
// outpace: option transposed
//~ void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
//~     std::vector<float> columns(n * k);
//~     for (int64_t l = 0; l < k; l++) {
//~         for (int64_t j = 0; j < n; j++) columns[j * k + l] = b[l * n + j];
//~     }
//~     for (int64_t i = 0; i < m; i++) {
//~         for (int64_t j = 0; j < n; j++) {
//~             const float *row = a + i * k, *column = columns.data() + j * k;
//~             float sums[kRows] = {};
//~             int64_t l = 0;
//~             for (; l + kRows <= k; l += kRows) {
//~                 for (int64_t s = 0; s < kRows; s++) sums[s] += row[l + s] * column[l + s];
//~             }
//~             float sum = 0;
//~             for (; l < k; l++) sum += row[l] * column[l];
//~             for (float part : sums) sum += part;
//~             c[i * n + j] = sum;
//~         }
//~     }
//~ }
// outpace: option panels
//~ // One tile of c in registers: kRows x kColumns sums, of which `rows` x `columns` are wanted.
//~ void tile(const float* a, const float* panel, float* c, int64_t rows, int64_t columns, int64_t k,
//~           int64_t n) {
//~     float sums[kRows][kColumns] = {};
//~     for (int64_t l = 0; l < k; l++) {
//~         for (int64_t r = 0; r < kRows; r++) {
//~             float factor = a[std::min(r, rows - 1) * k + l];
//~             for (int64_t j = 0; j < kColumns; j++) sums[r][j] += factor * panel[l * kColumns + j];
//~         }
//~     }
//~     for (int64_t r = 0; r < rows; r++) std::copy(sums[r], sums[r] + columns, c + r * n);
//~ }
//~ void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
//~     // Copied so that a tile reads b in one stream; what lies past the last column is never used.
//~     std::vector<float> panel(k * kColumns);
//~     for (int64_t first = 0; first < n; first += kColumns) {
//~         int64_t columns = std::min(kColumns, n - first);
//~         for (int64_t l = 0; l < k; l++) std::copy_n(b + l * n + first, columns, &panel[l * kColumns]);
//~         for (int64_t i = 0; i < m; i += kRows) {
//~             tile(a + i * k, panel.data(), c + i * n + first, std::min(kRows, m - i), columns, k, n);
//~         }
//~     }
//~ }
// outpace: end alternatives

}  // namespace

extern "C" void multiply(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
    product(a, b, c, m, k, n);
}
