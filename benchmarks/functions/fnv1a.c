#include <stddef.h>
#include <stdint.h>

/* The 64-bit FNV-1a hash */
uint64_t fnv1a(const unsigned char *data, size_t len) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < len; ++i) hash = (hash ^ data[i]) * 1099511628211u;
    return hash;
}
