#include <string.h>

/* How often a pattern occurs in a text, overlaps counted */
int count_pattern(const char *text, const char *pattern) {
    const size_t length = strlen(pattern);
    int found = 0;
    if (length == 0) return 0;
    for (; *text != 0; ++text) found += strncmp(text, pattern, length) == 0;
    return found;
}
