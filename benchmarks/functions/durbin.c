/* Solves the Yule-Walker equations by Durbin's recursion; r is scaled so that they are well conditioned */
void durbin(int n, const double r[n], double y[n], double z[n]) {
    const double scale = 0.1 / (n + 1);
    double beta = 1.0, alpha = -r[0] * scale;
    y[0] = alpha;
    for (int k = 1; k < n; ++k) {
        beta *= 1.0 - alpha * alpha;
        double sum = r[k] * scale;
        for (int i = 0; i < k; ++i) sum += r[k - i - 1] * scale * y[i];
        alpha = -sum / beta;
        for (int i = 0; i < k; ++i) z[i] = y[i] + alpha * y[k - i - 1];
        for (int i = 0; i < k; ++i) y[i] = z[i];
        y[k] = alpha;
    }
}
