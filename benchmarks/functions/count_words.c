/* Runs of letters and digits in a text */
int count_words(const char *text) {
    int words = 0, inside = 0;
    for (; *text != 0; ++text) {
        const int letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9');
        words += letter && !inside;
        inside = letter;
    }
    return words;
}
