#include <cstdint>

namespace {

struct Table {
    uint32_t rests[256];
    Table() {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t rest = byte;
            for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
            rests[byte] = rest;
        }
    }
};
const Table table;

}  // namespace

extern "C" uint32_t checksum(const uint8_t* data, int64_t n) {
    uint32_t rest = 0xffffffff;
    for (int64_t i = 0; i < n; i++) rest = table.rests[(rest ^ data[i]) & 255] ^ rest >> 8;
    return ~rest;
}
