/* x1 += A * y1 and x2 += transpose(A) * y2 */
void mvt(int n, double x1[n], double x2[n], const double y1[n], const double y2[n], const double A[n][n]) {
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) x1[i] += A[i][j] * y1[j];
    }
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) x2[i] += A[j][i] * y2[j];
    }
}
