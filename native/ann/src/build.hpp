// Build: from vectors to a store, in stages: transform, lists, codes, and where it is wanted a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "store.hpp"
#include "threads.hpp"

namespace outpace::ann {

struct BuildOptions {
    Metric metric = Metric::l2;
    int threads = 1;
    std::uint64_t seed = 0;
    std::uint32_t lists = 0;  // 0: chosen from the number of vectors
    int reduced = 0;          // 0: chosen from the dimension and a sample
    int scan_bits = 0;        // 0: chosen from the dimension
    bool half = true;         // exact rows of float32 input in half precision
    bool compact = false;     // longer lists, and no sketches of few coordinates: less memory, slower
    bool graph = true;
    int degree = lanes;  // neighbours of a graph node, at most 32
    Source later;  // vectors that will be added once recall was measured with them: places are kept free
    int candidates = 256;  // nearest neighbours looked at for each node
};

// Called, often, with the name of the stage and how much of it is done, in [0, 1]; throws to stop the build.
using Progress = std::function<void(std::string_view stage, double done)>;

// The progress of one stage.
inline Report stage_of(const Progress& progress, std::string_view stage) {
    return [&progress, stage](double done) { progress(stage, done); };
}

Store build_store(const Source& source, const Id* ids, const BuildOptions& options, const Slots& slots,
                  const Progress& progress);

// Rows for every slot of a store whose lists are packed. `reduced` holds the slots' coordinates.
void build_graph(Store& store, const float* reduced, const BuildOptions& options, const Slots& slots,
                 const Progress& progress);

// About how many bytes a build takes at its peak, beside the vectors given; the codes are not chosen yet, so
// the larger ones are counted.
std::size_t estimate_peak(const Source& source, const BuildOptions& options);

}  // namespace outpace::ann
