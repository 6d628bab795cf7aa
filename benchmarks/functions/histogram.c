#include <stddef.h>
#include <stdint.h>

/* How often each byte occurs */
void histogram(const uint8_t *pixels, size_t n, uint32_t counts[256]) {
    for (int i = 0; i < 256; ++i) counts[i] = 0;
    for (size_t i = 0; i < n; ++i) ++counts[pixels[i]];
}
