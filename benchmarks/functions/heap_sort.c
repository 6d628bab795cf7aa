#include <stddef.h>

static void sift(float *x, size_t root, size_t end) {
    for (size_t child; (child = 2 * root + 1) < end; root = child) {
        if (child + 1 < end && x[child] < x[child + 1]) ++child;
        if (!(x[root] < x[child])) return;
        const float kept = x[root];
        x[root] = x[child];
        x[child] = kept;
    }
}

/* Sorts upwards in place */
void heap_sort(float *x, size_t count) {
    for (size_t i = count / 2; i-- > 0;) sift(x, i, count);
    for (size_t end = count; end-- > 1;) {
        const float kept = x[0];
        x[0] = x[end];
        x[end] = kept;
        sift(x, 0, end);
    }
}
