#include <stdint.h>
#include <stdlib.h>

int64_t distinct(const uint32_t* values, int64_t n) {
    uint64_t room = 16;
    while (room < 2 * (uint64_t)n) room *= 2;
    // A number more than it is, so that 0 can mean that nothing is there.
    uint64_t* seen = calloc(room, sizeof *seen);
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t mark = (uint64_t)values[i] + 1;
        uint64_t at = (mark * 0x9e3779b97f4a7c15u >> 32) & (room - 1);
        while (seen[at] != 0 && seen[at] != mark) at = (at + 1) & (room - 1);
        found += seen[at] == 0;
        seen[at] = mark;
    }
    free(seen);
    return found;
}
