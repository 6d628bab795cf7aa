/* Moves each letter thirteen places on, in place */
void rot13(char *text) {
    for (char *at = text; *at != '\0'; ++at) {
        if (*at >= 'a' && *at <= 'z') *at = (char)('a' + (*at - 'a' + 13) % 26);
        if (*at >= 'A' && *at <= 'Z') *at = (char)('A' + (*at - 'A' + 13) % 26);
    }
}
