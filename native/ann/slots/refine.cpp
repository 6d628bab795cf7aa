// Refine: exact distances of the candidates that a search kept, and the nearest of them.
#include <algorithm>
#include <vector>

#include "exact.hpp"
#include "outpace/ann/slots.hpp"

namespace outpace::ann::OUTPACE_ISA {
namespace {

// Distances can be negative (inner products), so their bits are made to sort as unsigned integers.
std::uint32_t sortable(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}
float unsortable(std::uint32_t bits) {
    bits ^= bits >> 31 ? 0x80000000u : 0xffffffffu;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

void fetch(const std::uint8_t* row, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += line) prefetch(row + at);
}

constexpr std::size_t ahead =
    4;  // rows fetched before they are needed: hides memory, stays within the fill buffers

void distances(const Ground* ground, const QueryCodes* query, const Slot* slots, std::size_t count,
               float* out) {
    const std::size_t bytes = ground->shape.exact_bytes();
    for (std::size_t i = 0; i < std::min(ahead, count); ++i) fetch(ground->exact + slots[i] * bytes, bytes);
    for (std::size_t i = 0; i < count; ++i) {
        if (i + ahead < count) fetch(ground->exact + slots[i + ahead] * bytes, bytes);
        out[i] = distance(ground->shape, *query, ground->exact + slots[i] * bytes);
    }
}

std::size_t refine(const Ground* ground, const QueryCodes* query, const Key* candidates, std::size_t count,
                   std::size_t k, Slot* slots, float* out) {
    const std::size_t bytes = ground->shape.exact_bytes();
    constexpr std::size_t small = 1024;
    Key on_stack[small];
    std::vector<Key> on_heap;
    Key* keys = on_stack;
    if (count > small) {
        on_heap.resize(count);
        keys = on_heap.data();
    }
    for (std::size_t i = 0; i < std::min(ahead, count); ++i)
        fetch(ground->exact + key_slot(candidates[i]) * bytes, bytes);
    for (std::size_t i = 0; i < count; ++i) {
        if (i + ahead < count) fetch(ground->exact + key_slot(candidates[i + ahead]) * bytes, bytes);
        const Slot slot = key_slot(candidates[i]);
        keys[i] = (Key(sortable(distance(ground->shape, *query, ground->exact + slot * bytes))) << 32) | slot;
    }
    const std::size_t found = std::min(k, count);
    std::partial_sort(keys, keys + found, keys + count);
    for (std::size_t i = 0; i < found; ++i) {
        slots[i] = key_slot(keys[i]);
        out[i] = unsortable(std::uint32_t(keys[i] >> 32));
    }
    return found;
}

constexpr RefineTable table = {slot_version, distances, refine};

}  // namespace
}  // namespace outpace::ann::OUTPACE_ISA

OUTPACE_ANN_EXPORT const outpace::ann::RefineTable* outpace_ann_refine() {
    return &outpace::ann::OUTPACE_ISA::table;
}
