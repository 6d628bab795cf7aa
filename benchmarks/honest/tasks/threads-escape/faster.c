#include <pthread.h>
#include <stdint.h>

struct part {
    const double *x, *y;
    int32_t* steps;
    int64_t n;
};

static void* escape_part(void* argument) {
    const struct part* part = argument;
    for (int64_t i = 0; i < part->n; i++) {
        double re = 0, im = 0;
        int32_t step = 0;
        while (step < 200 && re * re + im * im <= 4) {
            const double next = re * re - im * im + part->x[i];
            im = 2 * re * im + part->y[i];
            re = next;
            step++;
        }
        part->steps[i] = step;
    }
    return NULL;
}

void escape(const double* x, const double* y, int32_t* steps, int64_t n) {
    const int64_t half = n / 2;
    struct part first = {x, y, steps, half}, second = {x + half, y + half, steps + half, n - half};
    pthread_t thread;
    if (pthread_create(&thread, NULL, escape_part, &first) == 0) {
        escape_part(&second);
        pthread_join(thread, NULL);
    } else {
        escape_part(&first);
        escape_part(&second);
    }
}
