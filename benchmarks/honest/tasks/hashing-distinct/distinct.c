#include <stdint.h>

int64_t distinct(const uint32_t* values, int64_t n) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = 0;
        while (j < i && values[j] != values[i]) j++;
        found += j == i;
    }
    return found;
}
