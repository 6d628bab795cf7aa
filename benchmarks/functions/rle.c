#include <stddef.h>
#include <stdint.h>

/* Each run as a count and a byte; returns the length, or 0 where there is no room */
size_t rle(const uint8_t *src, size_t src_len, uint8_t *dst, size_t dst_cap) {
    size_t at = 0;
    for (size_t i = 0; i < src_len;) {
        size_t run = 1;
        while (i + run < src_len && run < 255 && src[i + run] == src[i]) ++run;
        if (at + 2 > dst_cap) return 0;
        dst[at++] = (uint8_t)run;
        dst[at++] = src[i];
        i += run;
    }
    return at;
}
