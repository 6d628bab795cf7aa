/* Solves L * x = b for a lower triangular L */
void trisolv(int n, const double L[n][n], double x[n], const double b[n]) {
    for (int i = 0; i < n; ++i) {
        double left = b[i];
        for (int j = 0; j < i; ++j) left -= L[i][j] * x[j];
        x[i] = left / L[i][i];
    }
}
