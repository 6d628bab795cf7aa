#include <stdio.h>

int main(void) {
    long lines = 0, words = 0, letters = 0;
    int inside = 0;
    for (int letter = getchar(); letter != EOF; letter = getchar()) {
        const int space = letter == ' ' || letter == '\n';
        letters++;
        lines += letter == '\n';
        words += inside && space;
        inside = !space;
    }
    printf("%ld %ld %ld\n", lines, words + inside, letters);
    return 0;
}
