#include <stdlib.h>

/* Insertions, deletions and replacements that turn one text into the other */
int edit_distance(const char *a, int len_a, const char *b, int len_b) {
    int *row = malloc(((size_t)len_b + 1) * sizeof *row);
    if (row == NULL) return -1;
    for (int j = 0; j <= len_b; ++j) row[j] = j;
    for (int i = 1; i <= len_a; ++i) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= len_b; ++j) {
            const int replaced = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = replaced < best ? replaced : best;
        }
    }
    const int distance = row[len_b];
    free(row);
    return distance;
}
