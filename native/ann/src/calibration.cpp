#include "calibration.hpp"

#include <algorithm>
#include <cmath>

namespace outpace::ann {

Bounded bounded_mean(const std::vector<float>& values) {
    if (values.empty()) return {0, 0};
    double sum = 0, square = 0;
    for (const float v : values) sum += v;
    const double mean = sum / double(values.size());
    for (const float v : values) square += (v - mean) * (v - mean);
    // A perfect sample still says only that misses are rarer than three in its size (the rule of three).
    const double error =
        values.size() > 1 ? std::sqrt(square / double(values.size() - 1) / double(values.size())) : 1;
    const double floor_error = 3.0 / (10.0 * double(values.size()));
    return {float(mean), float(std::max(0.0, mean - std::max(1.645 * error, floor_error)))};
}

float cost_of(const Shape& shape, const Settings& settings, const Counters& counters, std::size_t queries,
              std::uint32_t ranked) {
    const double share = 1.0 / double(std::max<std::size_t>(queries, 1));
    double bytes = double(ranked) * shape.reduced;
    bytes += double(counters.blocks) * share * double(shape.block_bytes());
    bytes += double(counters.hops) * share * double(shape.graph_row_bytes());
    // The pool of a walk is kept in order by moving its tail, on average a quarter of it for each row.
    if (settings.engine == Engine::graph)
        bytes += double(counters.hops) * share * double(settings.effort) * 2;
    // A line that is not next to the one before it costs about as much as two that are.
    bytes += 2 * double(counters.sketches) * share * double(shape.sketch_bytes());
    bytes += 2 * double(settings.depth) * double(shape.exact_bytes());
    return float(bytes);
}

void Calibration::prepare() {
    for (const Engine engine : {Engine::partitions, Engine::graph}) {
        std::vector<float> paces;
        for (const Measured& point : points)
            if (point.settings.engine == engine && point.selectivity == 1 && point.cost > 0)
                paces.push_back(point.seconds / point.cost);
        if (paces.empty()) continue;
        const auto middle = paces.begin() + std::ptrdiff_t(paces.size() / 2);
        std::nth_element(paces.begin(), middle, paces.end());
        pace[int(engine)] = *middle;
    }
    for (const bool graph : {false, true}) {
        std::vector<const Measured*> by_price;
        for (const Measured& point : points)
            if (point.selectivity == 1 && (graph || point.settings.engine == Engine::partitions))
                by_price.push_back(&point);
        const auto price = [this](const Measured* p) { return p->cost * pace[int(p->settings.engine)]; };
        std::stable_sort(by_price.begin(), by_price.end(),
                         [&](const Measured* a, const Measured* b) { return price(a) < price(b); });
        steps[graph].clear();
        const Measured* best = nullptr;
        for (const Measured* point : by_price) {
            if (steps[graph].empty() || point->lower > steps[graph].back().reaches)
                steps[graph].push_back({point->lower, point->settings});
            if (!best || point->recall > best->recall) best = point;
        }
        // Whatever is asked for beyond all lower bounds gets the best that was measured.
        if (best) steps[graph].push_back({2, best->settings});
    }
}

Settings Calibration::choose(float recall, float selectivity, bool graph) const {
    if (selectivity == 1)
        for (const Step& step : steps[graph])
            if (step.reaches >= recall) return step.settings;
    // The measured selectivity at or below the wanted one: fewer matches are harder, so the choice errs on
    // the safe side. A filter of one in ten lets a little more or less than that through.
    selectivity *= 1.2f;
    float at = 2, least = 2;
    for (const Measured& point : points) {
        least = std::min(least, point.selectivity);
        if (point.selectivity <= selectivity && (at > 1.5f || point.selectivity > at)) at = point.selectivity;
    }
    if (at > 1.5f) at = least;
    const Measured* chosen = nullptr;
    const Measured* best = nullptr;
    for (const Measured& point : points) {
        if (point.selectivity != at || (point.settings.engine == Engine::graph && !graph)) continue;
        const auto price = [this](const Measured& p) { return p.cost * pace[int(p.settings.engine)]; };
        if (!best || point.recall > best->recall ||
            (point.recall == best->recall && price(point) < price(*best)))
            best = &point;
        if (point.lower >= recall && (!chosen || price(point) < price(*chosen))) chosen = &point;
    }
    if (chosen) return chosen->settings;
    return best ? best->settings : Settings{};
}

}  // namespace outpace::ann
