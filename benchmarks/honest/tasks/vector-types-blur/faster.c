#include <stdint.h>
#include <string.h>

typedef float vector __attribute__((vector_size(32), aligned(4), may_alias));

void blur(const float* in, float* out, int64_t height, int64_t width) {
    memcpy(out, in, (size_t)(height * width) * sizeof *out);
    for (int64_t i = 4; i < height - 4; i++) {
        for (int64_t j = 0; j < width; j += 8) {
            vector sum = {0};
            for (int64_t k = -4; k <= 4; k++) sum += *(const vector*)(in + (i + k) * width + j);
            *(vector*)(out + i * width + j) = sum / 9;
        }
    }
}
