#include <stdint.h>
#include <stdlib.h>

/* How steep the picture is at each inner pixel */
void sobel(const uint8_t *in, int16_t *out, int w, int h) {
    for (int y = 1; y < h - 1; ++y) {
        for (int x = 1; x < w - 1; ++x) {
            const uint8_t *p = in + y * w + x;
            const int across = p[1 - w] + 2 * p[1] + p[1 + w] - p[-1 - w] - 2 * p[-1] - p[-1 + w];
            const int down = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[-w + 1];
            out[y * w + x] = (int16_t)(abs(across) + abs(down));
        }
    }
}
