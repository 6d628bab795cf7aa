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
    float cost = 0;     // what a query touched, in bytes read in order: the same on every run, unlike time
    float seconds = 0;  // per query, as measured when the index was built
};

// What an engine's settings take: so much for every query, and so much for each unit of cost. Choosing by
// this rather than by each setting's own seconds keeps the noise of one measurement out of the choice, and
// makes the choice among one engine's settings the same in every build.
struct Tariff {
    float overhead = 0, pace = 1;
    float seconds(float cost) const { return overhead + pace * cost; }
};

// The tariff that fits measured points best.
Tariff fit_tariff(const std::vector<const Measured*>& points);

inline constexpr float most_stretch = 16;

// The engines that a choice may be among.
enum class Among { partitions, graph, either };
inline bool is_among(Engine engine, Among among) {
    return among == Among::either || (engine == Engine::graph) == (among == Among::graph);
}

struct Calibration {
    std::vector<Measured> points;
    std::uint32_t queries = 0;  // how many were measured; 0: never calibrated
    std::uint64_t changed = 0;  // vectors that came or went since
    std::vector<float> real;    // the user's own queries, to measure with again; empty: stored vectors serve
    float stretch[2] = {1, 1};  // by engine: how much more than usual a hundred neighbours need

    Tariff tariff[2];  // by engine
    float price(const Measured& point) const {
        return tariff[int(point.settings.engine)].seconds(point.cost);
    }

    // What `choose` answers without a filter, from the cheapest on: a search must not spend its time on going
    // through all points.
    struct Step {
        float reaches;
        Settings settings;
    };
    std::vector<Step> steps[3];  // by what the choice is among

    // Fills these from `points`.
    void prepare();

    // The cheapest settings whose lower bound reaches `recall` at this selectivity; where none does, the best
    // there is.
    Settings choose(float recall, float selectivity, Among among) const;
};

// What a setting costs, from the counters of a run.
float cost_of(const Shape& shape, const Settings& settings, const Counters& counters, std::size_t queries);

// The mean and its one-sided 95% lower bound.
struct Bounded {
    float mean, lower;
};
Bounded bounded_mean(const std::vector<float>& values);

}  // namespace outpace::ann
