#include <stdio.h>
#include <unistd.h>

int main(void) {
    static char block[1 << 16];
    long lines = 0, words = 0, letters = 0;
    int inside = 0;
    for (ssize_t got; (got = read(0, block, sizeof block)) > 0; letters += got) {
        for (ssize_t i = 0; i < got; i++) {
            const int space = block[i] == ' ' || block[i] == '\n';
            lines += block[i] == '\n';
            words += inside & space;
            inside = !space;
        }
    }
    printf("%ld %ld %ld\n", lines, words + inside, letters);
    return 0;
}
