#include <stddef.h>
#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Three bytes become four letters; returns how many letters there are */
size_t base64(const uint8_t *in, size_t len, char *out) {
    size_t at = 0;
    for (size_t i = 0; i < len; i += 3) {
        const uint32_t more = len - i;
        const uint32_t bits = (uint32_t)in[i] << 16 | (more > 1 ? in[i + 1] : 0u) << 8 | (more > 2 ? in[i + 2] : 0u);
        out[at++] = digits[bits >> 18];
        out[at++] = digits[bits >> 12 & 63];
        out[at++] = more > 1 ? digits[bits >> 6 & 63] : '=';
        out[at++] = more > 2 ? digits[bits & 63] : '=';
    }
    return at;
}
