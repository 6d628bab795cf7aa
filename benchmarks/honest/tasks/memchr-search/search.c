#include <stdint.h>

int64_t search(const char* text, int64_t length, const char* word, int64_t letters) {
    int64_t found = 0;
    for (int64_t i = 0; i + letters <= length; i++) {
        int64_t same = 0;
        while (same < letters && text[i + same] == word[same]) same++;
        found += same == letters;
    }
    return found;
}
