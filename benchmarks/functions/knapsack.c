#include <stdlib.h>

/* The most that can be carried */
int knapsack(const int *weights, const int *values, int n, int capacity) {
    int *best = calloc((size_t)capacity + 1, sizeof *best);
    if (best == NULL) return -1;
    for (int i = 0; i < n; ++i) {
        for (int room = capacity; room >= weights[i]; --room) {
            const int with = best[room - weights[i]] + values[i];
            if (with > best[room]) best[room] = with;
        }
    }
    const int most = best[capacity];
    free(best);
    return most;
}
