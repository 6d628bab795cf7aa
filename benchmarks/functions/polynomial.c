/* Evaluates one polynomial at many places by Horner's rule */
void polynomial(const double *coefficients, int degree, const double *x, double *out, int n) {
    for (int i = 0; i < n; ++i) {
        double value = 0.0;
        for (int k = degree; k >= 0; --k) value = value * x[i] + coefficients[k];
        out[i] = value;
    }
}
