// Totals per store of an order list in CSV.
//
// `text` holds `bytes` bytes and then a NUL: a heading line, then one order per line, such as
//     Harbour Street,"Lamp, ""Nordic""",3,19.90
// Every line has four fields. The store is not empty and never quoted. The item may be quoted; then it may
// hold commas, and a quote is written twice. Quantity and price may be empty (0), negative, and may start
// with zeros; both have at most nine digits, the price at most two of them after its point. No field holds a
// newline. The last line may lack its newline.
//
// Stores are numbered in the order of their first line. For store s: first[s] is the offset of its name in
// that line, units[s] the sum of its quantities, cents[s] the sum of quantity times price in cents. Entries
// past the last store are 0. There are at most `capacity` stores, and `capacity` is at most 200. Returns how
// many there are.

#include <stdint.h>
#include <string.h>

#define MOST_STORES 200

// A power of two above MOST_STORES: fewer slots stay in the nearest cache, more collide less.
// outpace: choose 256 512 1024 4096
#define SLOTS 1024

typedef struct {
    const char* text;
    int64_t* first;
    int64_t count;
    int64_t lengths[MOST_STORES];
    int16_t slots[SLOTS];  // store number + 1; 0 is a free slot
} Stores;

static int same_name(const Stores* stores, int64_t store, const char* name, int64_t length) {
    return stores->lengths[store] == length &&
           memcmp(stores->text + stores->first[store], name, length) == 0;
}

static int64_t add_store(Stores* stores, const char* name, int64_t length) {
    stores->first[stores->count] = name - stores->text;
    stores->lengths[stores->count] = length;
    return stores->count++;
}

// The number of the store with this name, which is added when it is new.
// outpace: alternatives
// outpace: option list
//~ static int64_t find_store(Stores* stores, const char* name, int64_t length) {
//~     for (int64_t store = 0; store < stores->count; store++) {
//~         if (same_name(stores, store, name, length)) return store;
//~     }
//~     return add_store(stores, name, length);
//~ }
// outpace: option hash-all-bytes
static int64_t find_store(Stores* stores, const char* name, int64_t length) {
    uint32_t hash = 2166136261u;
    for (int64_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    uint32_t slot = hash & (SLOTS - 1);
    while (stores->slots[slot] != 0) {
        int64_t store = stores->slots[slot] - 1;
        if (same_name(stores, store, name, length)) return store;
        slot = (slot + 1) & (SLOTS - 1);
    }
    int64_t store = add_store(stores, name, length);
    stores->slots[slot] = (int16_t)(store + 1);
    return store;
}
// outpace: option hash-three-bytes
//~ static int64_t find_store(Stores* stores, const char* name, int64_t length) {
//~     uint32_t hash = (uint32_t)length * 31u + (unsigned char)name[0];
//~     hash = hash * 31u + (unsigned char)name[length / 2];
//~     hash = hash * 31u + (unsigned char)name[length - 1];
//~     uint32_t slot = (hash * 2654435769u) >> 12 & (SLOTS - 1);
//~     while (stores->slots[slot] != 0) {
//~         int64_t store = stores->slots[slot] - 1;
//~         if (same_name(stores, store, name, length)) return store;
//~         slot = (slot + 1) & (SLOTS - 1);
//~     }
//~     int64_t store = add_store(stores, name, length);
//~     stores->slots[slot] = (int16_t)(store + 1);
//~     return store;
//~ }
// outpace: end alternatives

// The first `wanted` at or after `at`, or `end`.
// outpace: alternatives
// outpace: option byte-by-byte
static const char* find(const char* at, const char* end, char wanted) {
    while (at < end && *at != wanted) at++;
    return at;
}
// outpace: option memchr
//~ static const char* find(const char* at, const char* end, char wanted) {
//~     const char* found = memchr(at, wanted, (size_t)(end - at));
//~     return found ? found : end;
//~ }
// outpace: option eight-bytes
//~ static const char* find(const char* at, const char* end, char wanted) {
//~     const uint64_t ones = 0x0101010101010101u;
//~     uint64_t pattern = ones * (unsigned char)wanted;
//~     while (end - at >= 8) {
//~         uint64_t word;
//~         memcpy(&word, at, 8);
//~         word ^= pattern;
//~         uint64_t zeros = (word - ones) & ~word & (ones << 7);
//~         if (zeros) return at + (__builtin_ctzll(zeros) >> 3);
//~         at += 8;
//~     }
//~     while (at < end && *at != wanted) at++;
//~     return at;
//~ }
// outpace: end alternatives

// Past the closing quote of the quoted field that starts at `at`.
static const char* skip_quoted(const char* at, const char* end) {
    do {
        at = find(at + 1, end, '"') + 1;
    } while (*at == '"');
    return at;
}

// Reads a number with at most `decimals` decimals, scaled to whole units, and moves past it.
static int64_t read_scaled(const char** at, int decimals) {
    const char* p = *at;
    int negative = *p == '-';
    if (negative) p++;
    int64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++) value = value * 10 + (*p - '0');
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9'; p++, decimals--) value = value * 10 + (*p - '0');
    }
    for (; decimals > 0; decimals--) value *= 10;
    *at = p;
    return negative ? -value : value;
}

int64_t sum_by_store(const char* text, int64_t bytes, int64_t* first, int64_t* units, int64_t* cents,
                     int64_t capacity) {
    Stores stores = {.text = text, .first = first};
    memset(first, 0, (size_t)capacity * sizeof *first);
    memset(units, 0, (size_t)capacity * sizeof *units);
    memset(cents, 0, (size_t)capacity * sizeof *cents);

    const char* end = text + bytes;
    const char* at = find(text, end, '\n');
    while (at < end && ++at < end) {
        const char* name = at;
        at = find(at, end, ',');
        int64_t store = find_store(&stores, name, at - name);
        at++;
        if (*at == '"') at = skip_quoted(at, end);
        at = find(at, end, ',') + 1;
        int64_t quantity = read_scaled(&at, 0);
        at++;
        int64_t price = read_scaled(&at, 2);
        units[store] += quantity;
        cents[store] += quantity * price;
    }
    return stores.count;
}
