/* Whether no element is below the one before it */
int is_sorted(const int *x, int n) {
    for (int i = 1; i < n; ++i) {
        if (x[i] < x[i - 1]) return 0;
    }
    return 1;
}
