/* The covariances of the columns of a table */
void covariance(int rows, int cols, const double *data, double *mean, double *cov) {
    for (int j = 0; j < cols; ++j) {
        mean[j] = 0.0;
        for (int i = 0; i < rows; ++i) mean[j] += data[i * cols + j];
        mean[j] /= rows;
    }
    for (int a = 0; a < cols; ++a) {
        for (int b = 0; b < cols; ++b) {
            double sum = 0.0;
            for (int i = 0; i < rows; ++i) sum += (data[i * cols + a] - mean[a]) * (data[i * cols + b] - mean[b]);
            cov[a * cols + b] = sum / (rows - 1.0);
        }
    }
}
