// The numbers of a JSON text.
//
// `text` holds `bytes` bytes and then a NUL that is not part of it. It is valid when it is one value after
// RFC 8259, with white space around it allowed, and nests arrays and objects at most 128 deep. Bytes of 128
// and more are taken as they are: UTF-8 is not checked. No number in it is beyond the range of a double.
//
// Writes all numbers in the order of the text, each as the nearest double, and returns how many there are, or
// -1 when the text is not valid; then what was written does not matter. `numbers` has room for bytes / 2 + 1.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 128

typedef struct {
    const char* at;
    const char* end;
    double* numbers;
    int64_t count;
    int depth;
} Parser;

// Digits that the `digits-first` option reads before it leaves a number to strtod.
// outpace: choose 8 12 15
#define MOST_DIGITS 15

// outpace: alternatives
// outpace: option compare
static const char* skip_blanks(const char* at) {
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') at++;
    return at;
}
// outpace: option look-first
//~ static const char* skip_blanks(const char* at) {
//~     // Most tokens of a compact text are followed by no blank at all.
//~     if ((unsigned char)*at > ' ') return at;
//~     while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') at++;
//~     return at;
//~ }
// outpace: option bit-mask
//~ static const char* skip_blanks(const char* at) {
//~     const uint64_t blanks = 1ull << ' ' | 1ull << '\n' | 1ull << '\r' | 1ull << '\t';
//~     while ((unsigned char)*at <= ' ' && (blanks >> *at & 1)) at++;
//~     return at;
//~ }
// outpace: end alternatives

// The first byte at or after `at` that may end a string or must not be in one: a quote, a backslash,
// a control.
// outpace: alternatives
// outpace: option byte-by-byte
static const char* plain_end(const char* at, const char* end) {
    (void)end;  // the NUL behind the text is a control
    while (*at != '"' && *at != '\\' && (unsigned char)*at >= ' ') at++;
    return at;
}
// outpace: option table
//~ static const char* plain_end(const char* at, const char* end) {
//~     static const unsigned char stops[256] = {[0 ... 31] = 1, ['"'] = 1, ['\\'] = 1};
//~     (void)end;
//~     while (!stops[(unsigned char)*at]) at++;
//~     return at;
//~ }
// outpace: option eight-bytes
//~ static const char* plain_end(const char* at, const char* end) {
//~     const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
//~     while (end - at >= 8) {
//~         uint64_t word;
//~         memcpy(&word, at, 8);
//~         uint64_t quotes = word ^ ones * '"', slashes = word ^ ones * '\\';
//~         uint64_t stops = ((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes);
//~         stops = (stops | ((word - ones * ' ') & ~word)) & tops;
//~         if (stops) return at + (__builtin_ctzll(stops) >> 3);
//~         at += 8;
//~     }
//~     while (*at != '"' && *at != '\\' && (unsigned char)*at >= ' ') at++;
//~     return at;
//~ }
// outpace: end alternatives

static int is_digit(char c) { return c >= '0' && c <= '9'; }

static int is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The value of the valid number from `at` to `end`.
// outpace: alternatives
// outpace: option strtod
static double number_value(const char* at, const char* end) {
    (void)end;
    return strtod(at, NULL);
}
// outpace: option digits-first
//~ static double number_value(const char* at, const char* end) {
//~     // Clinger: with at most 15 digits and a power of ten up to 22, both are exact doubles, so that one
//~     // division rounds correctly.
//~     static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
//~                                     1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
//~     const char* p = at + (*at == '-');
//~     uint64_t digits = 0;
//~     int length = 0, decimals = 0;
//~     for (; p < end && is_digit(*p); p++, length++) digits = digits * 10 + (uint64_t)(*p - '0');
//~     if (p < end && *p == '.') {
//~         for (p++; p < end && is_digit(*p) && length < MOST_DIGITS; p++, length++, decimals++) {
//~             digits = digits * 10 + (uint64_t)(*p - '0');
//~         }
//~     }
//~     if (p < end || length > MOST_DIGITS) return strtod(at, NULL);
//~     double value = (double)digits / powers[decimals];
//~     return *at == '-' ? -value : value;
//~ }
// outpace: end alternatives

static int parse_string(Parser* parser) {
    const char* at = parser->at + 1;
    for (;;) {
        at = plain_end(at, parser->end);
        if (*at == '"') break;
        if (*at != '\\') return 0;
        at++;
        if (*at == 'u') {
            for (int i = 0; i < 4; i++) {
                if (!is_hex(*++at)) return 0;
            }
        } else if (*at == '\0' || strchr("\"\\/bfnrt", *at) == NULL) {
            return 0;
        }
        at++;
    }
    parser->at = at + 1;
    return 1;
}

static int parse_number(Parser* parser) {
    const char* at = parser->at;
    if (*at == '-') at++;
    if (!is_digit(*at)) return 0;
    if (*at == '0') {
        at++;
    } else {
        while (is_digit(*at)) at++;
    }
    if (*at == '.') {
        if (!is_digit(*++at)) return 0;
        while (is_digit(*at)) at++;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-') at++;
        if (!is_digit(*at)) return 0;
        while (is_digit(*at)) at++;
    }
    parser->numbers[parser->count++] = number_value(parser->at, at);
    parser->at = at;
    return 1;
}

static int parse_word(Parser* parser, const char* word) {
    size_t length = strlen(word);
    if (strncmp(parser->at, word, length) != 0) return 0;
    parser->at += length;
    return 1;
}

static int parse_value(Parser* parser);

static int parse_key(Parser* parser) {
    if (*parser->at != '"' || !parse_string(parser)) return 0;
    parser->at = skip_blanks(parser->at);
    if (*parser->at != ':') return 0;
    parser->at = skip_blanks(parser->at + 1);
    return 1;
}

// An array, or an object, whose values have keys.
static int parse_members(Parser* parser, char close, int keys) {
    if (++parser->depth > MOST_DEPTH) return 0;
    parser->at = skip_blanks(parser->at + 1);
    if (*parser->at != close) {
        for (;;) {
            if (keys && !parse_key(parser)) return 0;
            if (!parse_value(parser)) return 0;
            parser->at = skip_blanks(parser->at);
            if (*parser->at != ',') break;
            parser->at = skip_blanks(parser->at + 1);
        }
        if (*parser->at != close) return 0;
    }
    parser->at++;
    parser->depth--;
    return 1;
}

static int parse_value(Parser* parser) {
    switch (*parser->at) {
        case '{':
            return parse_members(parser, '}', 1);
        case '[':
            return parse_members(parser, ']', 0);
        case '"':
            return parse_string(parser);
        case 't':
            return parse_word(parser, "true");
        case 'f':
            return parse_word(parser, "false");
        case 'n':
            return parse_word(parser, "null");
        default:
            return parse_number(parser);
    }
}

int64_t collect_numbers(const char* text, int64_t bytes, double* numbers) {
    Parser parser = {.at = skip_blanks(text), .end = text + bytes, .numbers = numbers};
    if (!parse_value(&parser)) return -1;
    return skip_blanks(parser.at) == parser.end ? parser.count : -1;
}
