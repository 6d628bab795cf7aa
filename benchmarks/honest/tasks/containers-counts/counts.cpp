#include <cstdint>
#include <map>

// Numbers and how often each is there, in ascending order, mixed into one.
extern "C" uint64_t counts(const uint32_t* values, int64_t n) {
    std::map<uint32_t, uint64_t> found;
    for (int64_t i = 0; i < n; i++) found[values[i]]++;
    uint64_t mixed = 0;
    for (const auto& [value, count] : found) mixed = (mixed * 31 + value) * 31 + count;
    return mixed;
}
