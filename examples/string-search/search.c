// All occurrences of several patterns in a text.
//
// `text` holds `bytes` bytes of any value and then a NUL that is not part of it. `patterns` holds `count`
// patterns one after another: pattern p lies from starts[p] to starts[p + 1]. There are 1 to 64 patterns,
// each of 1 to 100 bytes, and equal ones may appear twice.
//
// An occurrence is a position in the text and a pattern that lies there as a whole; occurrences may overlap.
// They are listed by position, and at one position by the pattern's number: where[i] and which[i] for the
// first `capacity` of them. Returns how many there are, also when that is more than `capacity`.

#include <stdint.h>
#include <string.h>

// Size of the table of the `by-two-bytes` option: small tables stay near, large ones stop more positions.
// outpace: choose 8 10 12 16
#define TABLE_BITS 12

typedef struct {
    const char* text;
    int64_t bytes;
    const char* patterns;
    const int32_t* starts;
    int32_t* where;
    int32_t* which;
    int64_t capacity;
    int64_t found;
} Search;

// Whether `length` bytes at `a` and at `b`, at least one, are equal.
// outpace: alternatives
// outpace: option memcmp
//~ static int same(const char* a, const char* b, int64_t length) {
//~     return memcmp(a, b, (size_t)length) == 0;
//~ }
// outpace: option first-then-memcmp
static int same(const char* a, const char* b, int64_t length) {
    return a[0] == b[0] && memcmp(a, b, (size_t)length) == 0;
}
// outpace: option last-then-memcmp
//~ static int same(const char* a, const char* b, int64_t length) {
//~     return a[length - 1] == b[length - 1] && memcmp(a, b, (size_t)length) == 0;
//~ }
// outpace: option byte-by-byte
//~ static int same(const char* a, const char* b, int64_t length) {
//~     int64_t i = 0;
//~     while (i < length && a[i] == b[i]) i++;
//~     return i == length;
//~ }
// outpace: end alternatives

static void try_pattern(Search* search, int64_t position, int32_t pattern) {
    const char* wanted = search->patterns + search->starts[pattern];
    int64_t length = search->starts[pattern + 1] - search->starts[pattern];
    if (length > search->bytes - position || !same(search->text + position, wanted, length)) return;
    if (search->found < search->capacity) {
        search->where[search->found] = (int32_t)position;
        search->which[search->found] = pattern;
    }
    search->found++;
}

// Tries at every position the patterns that may lie there.
// outpace: alternatives
// outpace: option every-pattern
static void scan(Search* search, int32_t count) {
    for (int64_t position = 0; position < search->bytes; position++) {
        for (int32_t pattern = 0; pattern < count; pattern++) try_pattern(search, position, pattern);
    }
}
// outpace: option by-first-byte
//~ static void scan(Search* search, int32_t count) {
//~     uint64_t candidates[256] = {0};
//~     for (int32_t pattern = 0; pattern < count; pattern++) {
//~         candidates[(unsigned char)search->patterns[search->starts[pattern]]] |= (uint64_t)1 << pattern;
//~     }
//~     for (int64_t position = 0; position < search->bytes; position++) {
//~         uint64_t left = candidates[(unsigned char)search->text[position]];
//~         for (; left; left &= left - 1) try_pattern(search, position, __builtin_ctzll(left));
//~     }
//~ }
// outpace: option by-two-bytes
//~ static uint32_t table_slot(unsigned char a, unsigned char b) {
//~     return (a * 256u + b) * 2654435769u >> (32 - TABLE_BITS);
//~ }
//~ static void scan(Search* search, int32_t count) {
//~     static uint64_t candidates[1 << TABLE_BITS];
//~     memset(candidates, 0, sizeof candidates);
//~     for (int32_t pattern = 0; pattern < count; pattern++) {
//~         const unsigned char* wanted = (const unsigned char*)search->patterns + search->starts[pattern];
//~         int single = search->starts[pattern + 1] - search->starts[pattern] == 1;
//~         // A pattern of one byte may be followed by any other.
//~         for (int next = single ? 0 : wanted[1]; next < 256; next++) {
//~             candidates[table_slot(wanted[0], (unsigned char)next)] |= (uint64_t)1 << pattern;
//~             if (!single) break;
//~         }
//~     }
//~     // The NUL behind the text may be read, so the last position needs no case of its own.
//~     for (int64_t position = 0; position < search->bytes; position++) {
//~         const unsigned char* at = (const unsigned char*)search->text + position;
//~         uint64_t left = candidates[table_slot(at[0], at[1])];
//~         for (; left; left &= left - 1) try_pattern(search, position, __builtin_ctzll(left));
//~     }
//~ }
// outpace: end alternatives

int64_t find_all(const char* text, int64_t bytes, const char* patterns, const int32_t* starts,
                 int32_t count, int32_t* where, int32_t* which, int64_t capacity) {
    Search search = {text, bytes, patterns, starts, where, which, capacity, 0};
    scan(&search, count);
    return search.found;
}
