/* Gauss-Seidel sweeps with a nine-point average, in place */
void seidel_2d(int steps, int n, double *A) {
    for (int t = 0; t < steps; ++t) {
        for (int i = 1; i < n - 1; ++i) {
            for (int j = 1; j < n - 1; ++j) {
                double sum = 0.0;
                for (int y = -1; y <= 1; ++y) {
                    for (int x = -1; x <= 1; ++x) sum += A[(i + y) * n + j + x];
                }
                A[i * n + j] = sum / 9.0;
            }
        }
    }
}
