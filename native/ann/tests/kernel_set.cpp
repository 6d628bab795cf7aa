// Compiled once per instruction set, with its flags, its name (OUTPACE_ISA) and its level
// (OUTPACE_ISA_LEVEL).
#include "kernel_set.hpp"

#include "../kernels/kernels.hpp"

OUTPACE_DECLARE_KERNEL_SET(OUTPACE_ISA)

const outpace::ann::KernelSet& outpace::ann::OUTPACE_ISA::kernel_set() {
    static constexpr KernelSet set = {scan_sums, scan_block,    sketch_distances, rank_lists,  prefetch,
                                      l2_half,   dot_half,      l2_bytes,         project,     l2_float,
                                      dot_float, half_to_float, float_to_half,    make_tables, make_bytes};
    return set;
}
