// Kernels speed: nanoseconds per call of one instruction set (OUTPACE_TESTED) beside the scalar one, data in
// the cache.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "../src/random.hpp"
#include "kernel_set.hpp"

OUTPACE_DECLARE_KERNEL_SET(scalar)
OUTPACE_DECLARE_KERNEL_SET(OUTPACE_TESTED)

namespace outpace::ann::tests {
namespace {

// The least of many short rounds: what disturbs a round only ever makes it longer.
template <class Call>
double nanoseconds(Call call) {
    using Clock = std::chrono::steady_clock;
    double least = 1e9;
    int calls = 1;
    for (int round = 0; round < 60; ++round) {
        const auto begin = Clock::now();
        for (int i = 0; i < calls; ++i) call();
        const double spent = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
        if (spent < 2e5)
            calls *= 2;
        else
            least = std::min(least, spent / calls);
    }
    return least;
}

void compare(int reduced, int scan_bits) {
    Random random(1);
    const auto bytes = [&random](std::size_t count) {
        std::vector<std::uint8_t> out(count + line);
        for (auto& byte : out) byte = std::uint8_t(random.next());
        return out;
    };
    Shape shape{.dimension = reduced, .reduced = reduced, .scan_bits = scan_bits};
    Shape wide = shape;
    wide.sketch_bits = 8;
    const int padded = round_up(reduced, 64), groups = 16;
    const auto block = bytes(shape.block_bytes()), sketches = bytes(32 * wide.sketch_bytes());
    const auto lists = bytes(std::size_t(groups) * std::size_t(wide.quads()) * 64),
               row = bytes(std::size_t(padded) * 2);
    const auto matrix = bytes(std::size_t(reduced) * std::size_t(padded) * 2);
    std::vector<float> floats(std::size_t(padded) + 16 * groups), out(16 * groups);
    for (float& x : floats) x = float(random.normal());
    std::vector<std::int32_t> products(static_cast<std::size_t>(reduced));
    std::vector<Slot> slots(32);
    for (Slot& slot : slots) slot = Slot(random.below(32));
    const auto query = std::make_unique<QueryCodes>();
    std::memcpy(query->reduced, floats.data(), std::size_t(reduced) * 4);
    const auto* halves = reinterpret_cast<const std::uint16_t*>(row.data());
    const auto* fixed = reinterpret_cast<const std::int16_t*>(matrix.data());
    volatile float kept = 0;
    const auto print = [&](const char* name, auto call) {
        const double before = nanoseconds([&] { call(scalar::kernel_set()); });
        const double after = nanoseconds([&] { call(OUTPACE_TESTED::kernel_set()); });
        std::printf("%-20s reduced %3d, scan bits %d: %9.1f ns, scalar %9.1f ns\n", name, reduced, scan_bits,
                    after, before);
    };
    print("make_tables", [&](const KernelSet& set) { set.make_tables(shape, *query); });
    print("make_bytes", [&](const KernelSet& set) { set.make_bytes(shape, *query); });
    print("scan_block", [&](const KernelSet& set) {
        kept = float(set.scan_block(block.data(), query->table, shape.chunks(), query->table_step,
                                    query->table_base, 1));
    });
    print("sketches, 32 of 4", [&](const KernelSet& set) {
        set.sketch_distances(shape, sketches.data(), slots.data(), 32, *query, out.data());
    });
    scalar::kernel_set().make_bytes(wide, *query);
    print("sketches, 32 of 8", [&](const KernelSet& set) {
        set.sketch_distances(wide, sketches.data(), slots.data(), 32, *query, out.data());
    });
    print("rank_lists, 256", [&](const KernelSet& set) {
        set.rank_lists(lists.data(), floats.data(), floats.data(), groups, shape.quads(), *query, out.data());
    });
    print("l2_float",
          [&](const KernelSet& set) { kept = set.l2_float(floats.data(), query->reduced, padded); });
    print("l2_half", [&](const KernelSet& set) { kept = set.l2_half(floats.data(), halves, padded); });
    print("l2_bytes",
          [&](const KernelSet& set) { kept = float(set.l2_bytes(query->table, row.data(), padded)); });
    print("project, square", [&](const KernelSet& set) {
        set.project(fixed, reduced, padded, reinterpret_cast<const std::int16_t*>(halves), products.data());
    });
}

}  // namespace
}  // namespace outpace::ann::tests

int main() {
    for (const int reduced : {112, 240})
        for (const int scan_bits : {1, 2, 4}) outpace::ann::tests::compare(reduced, scan_bits);
}
