/* The sum of all whole numbers in a text */
long sum_csv(const char *text, long length) {
    long sum = 0;
    for (long i = 0; i < length;) {
        const int minus = text[i] == '-';
        long number = 0, at = i + minus;
        for (; at < length && text[at] >= '0' && text[at] <= '9'; ++at) number = (number * 10 + (text[at] - '0')) % 1000000007;
        sum += minus ? -number : number;
        i = at > i ? at : i + 1;
    }
    return sum;
}
