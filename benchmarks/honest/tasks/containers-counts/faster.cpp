#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" uint64_t counts(const uint32_t* values, int64_t n) {
    std::vector<uint32_t> sorted(values, values + n);
    std::sort(sorted.begin(), sorted.end());
    uint64_t mixed = 0;
    for (auto at = sorted.begin(); at != sorted.end();) {
        const auto end = std::upper_bound(at, sorted.end(), *at);
        mixed = (mixed * 31 + *at) * 31 + static_cast<uint64_t>(end - at);
        at = end;
    }
    return mixed;
}
