#include <stddef.h>
#include <string.h>

static size_t put(char *out, size_t at, size_t out_cap, const char *text) {
    for (size_t i = 0; text[i] != 0; ++i, ++at) {
        if (at < out_cap) out[at] = text[i];
    }
    return at;
}

/* Quotes, brackets and ampersands as entities; returns how long the whole answer is, of which `out_cap` are written */
size_t escape_html(const char *in, size_t n, char *out, size_t out_cap) {
    size_t at = 0;
    for (size_t i = 0; i < n; ++i) {
        const char one[2] = {in[i], 0};
        const char *text = one;
        if (in[i] == '&') text = "&amp;";
        if (in[i] == '<') text = "&lt;";
        if (in[i] == '>') text = "&gt;";
        if (in[i] == '"') text = "&quot;";
        at = put(out, at, out_cap, text);
    }
    return at;
}
