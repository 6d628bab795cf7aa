// Calibration: which settings reach which recall, measured on held-out queries; pure choice among measured
// points.
#pragma once

#include <cstdint>
#include <vector>

#include "outpace/ann/ground.hpp"

namespace outpace::ann {

// One measured setting. Plain data: it is stored in files as it is.
struct Measured {
    Settings settings;
    float selectivity = 1;  // share of vectors that a filter let through; 1: no filter
    float recall = 0;       // mean over the queries, of the nearest ten
    float lower = 0;        // one-sided 95% lower bound of that mean
    float cost = 0;         // bytes touched per query: the same on every run, unlike time
    float seconds = 0;      // per query, as measured when the index was built
};

struct Calibration {
    std::vector<Measured> points;
    std::uint32_t queries = 0;  // how many were measured; 0: never calibrated

    // Seconds per byte of cost for each engine: the median over its points. Choosing by cost times pace, not
    // by each point's own seconds, keeps the noise of one measurement out of the choice.
    float pace[2] = {1, 1};

    // What `choose` answers without a filter, from the cheapest on, with and without the graph: a search must
    // not spend its time on going through all points.
    struct Step {
        float reaches;
        Settings settings;
    };
    std::vector<Step> steps[2];

    // Fills both of these from `points`.
    void prepare();

    // The cheapest settings whose lower bound reaches `recall` at this selectivity; where none does, the best
    // there is.
    Settings choose(float recall, float selectivity, bool graph) const;
};

// What a setting costs, from the counters of a run: bytes touched.
float cost_of(const Shape& shape, const Settings& settings, const Counters& counters, std::size_t queries,
              std::uint32_t ranked);

// The mean and its one-sided 95% lower bound.
struct Bounded {
    float mean, lower;
};
Bounded bounded_mean(const std::vector<float>& values);

}  // namespace outpace::ann
