#include <stdint.h>

/* The mean of the nine pixels around each, fewer at the borders */
void box_blur(const uint8_t *in, uint8_t *out, int width, int height) {
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            int sum = 0, count = 0;
            for (int v = y - 1; v <= y + 1; ++v) {
                for (int u = x - 1; u <= x + 1; ++u) {
                    if (v < 0 || v >= height || u < 0 || u >= width) continue;
                    sum += in[v * width + u];
                    ++count;
                }
            }
            out[y * width + x] = (uint8_t)(sum / count);
        }
    }
}
