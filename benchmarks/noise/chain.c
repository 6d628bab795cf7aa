#include <stdint.h>

// Extra steps per thousand, whose result nobody uses: a candidate with fewer of them is faster by exactly that share.
#define EXTRA 0

// One loop in one place: of two copies of it, one may lie better than the other, by more than what is looked for.
__attribute__((noipa, aligned(64))) static uint64_t walk(const uint64_t *data, uint64_t start, uint64_t steps) {
    uint64_t state = start;
    for (uint64_t step = 0; step < steps; ++step) {
        // Each step waits for the one before, so time is proportional to the number of steps.
        state = state * 6364136223846793005u + data[step & 511];
    }
    return state;
}

uint64_t chain(const uint64_t *data, uint64_t steps) {
    uint64_t wasted = walk(data, 1, steps * EXTRA / 1000);
    __asm__ volatile("" : : "r"(wasted));
    return walk(data, 2, steps);
}
