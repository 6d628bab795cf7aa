#include <cstdint>

extern "C" uint32_t checksum(const uint8_t* data, int64_t n) {
    uint32_t rest = 0xffffffff;
    for (int64_t i = 0; i < n; i++) {
        rest ^= data[i];
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
    }
    return ~rest;
}
