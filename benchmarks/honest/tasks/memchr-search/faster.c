#include <stdint.h>
#include <string.h>

int64_t search(const char* text, int64_t length, const char* word, int64_t letters) {
    int64_t found = 0;
    const char* end = text + length - letters + 1;
    for (const char* at = text; at < end; at++) {
        at = memchr(at, word[0], (size_t)(end - at));
        if (at == NULL) break;
        found += memcmp(at, word, (size_t)letters) == 0;
    }
    return found;
}
