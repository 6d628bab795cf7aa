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

// The weights are nanoseconds on a Zen 4, from least squares over four data sets, over 0.05 ns, which is what
// a byte costs that is read in order: a line of a random row costs eight that come one after the other, and
// a sketch costs mostly its arrival. Only their proportions matter; `prepare` fits the rest to this machine.
float cost_of(const Shape& shape, const Settings& settings, const Counters& counters, std::size_t queries) {
    const double share = 1.0 / double(std::max<std::size_t>(queries, 1));
    double bytes = double(counters.blocks) * share * double(shape.block_bytes());
    bytes += double(counters.hops) * share * 8 * double(shape.graph_row_bytes());
    bytes += double(counters.sketches) * share *
             (300 + 2.5 * double(shape.sketch_bits ? shape.sketch_bytes() : shape.exact_bytes()));
    bytes += double(settings.depth) * (100 + double(shape.exact_bytes()));
    return float(bytes);
}

Tariff fit_tariff(const std::vector<const Measured*>& points) {
    Tariff tariff;
    std::vector<double> trust(points.size(), 1.0);
    // Relative errors are made small, since cheap settings must be right too; settings that were disturbed
    // while they were timed stand out after the first fit and count for less in the next ones.
    for (int round = 0; round < 4; ++round) {
        double w = 0, wc = 0, ws = 0, wcc = 0, wcs = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double c = points[i]->cost, t = std::max(double(points[i]->seconds), 1e-9);
            const double weight = trust[i] / (t * t);
            w += weight;
            wc += weight * c;
            ws += weight * t;
            wcc += weight * c * c;
            wcs += weight * c * t;
        }
        const double spread = w * wcc - wc * wc;
        if (!(w > 0) || !(spread > 1e-9 * wc * wc)) break;
        double pace = (w * wcs - wc * ws) / spread, overhead = (ws - pace * wc) / w;
        if (overhead < 0) overhead = 0, pace = wcs / wcc;
        if (!(pace > 0)) break;
        tariff = {float(overhead), float(pace)};
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double error = std::abs(tariff.seconds(points[i]->cost) / points[i]->seconds - 1);
            trust[i] = error > 0.05 ? 0.05 / error : 1;
        }
    }
    return tariff;
}

void Calibration::prepare() {
    for (const Engine engine : {Engine::partitions, Engine::graph}) {
        std::vector<const Measured*> timed;
        for (const Measured& point : points)
            if (point.settings.engine == engine && point.selectivity == 1 && point.seconds > 0)
                timed.push_back(&point);
        tariff[int(engine)] = fit_tariff(timed);
    }
    for (const Among among : {Among::partitions, Among::graph, Among::either}) {
        std::vector<Step>& steps_here = steps[int(among)];
        std::vector<const Measured*> by_price;
        for (const Measured& point : points)
            if (point.selectivity == 1 && is_among(point.settings.engine, among)) by_price.push_back(&point);
        std::stable_sort(by_price.begin(), by_price.end(),
                         [&](const Measured* a, const Measured* b) { return price(*a) < price(*b); });
        steps_here.clear();
        const Measured* best = nullptr;
        for (const Measured* point : by_price) {
            if (steps_here.empty() || point->lower > steps_here.back().reaches)
                steps_here.push_back({point->lower, point->settings});
            if (!best || point->recall > best->recall) best = point;
        }
        // Whatever is asked for beyond all lower bounds gets the best that was measured.
        if (best) steps_here.push_back({2, best->settings});
    }
}

Settings Calibration::choose(float recall, float selectivity, Among among) const {
    if (selectivity == 1)
        for (const Step& step : steps[int(among)])
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
        if (point.selectivity != at || !is_among(point.settings.engine, among)) continue;
        if (!best || point.recall > best->recall ||
            (point.recall == best->recall && price(point) < price(*best)))
            best = &point;
        if (point.lower >= recall && (!chosen || price(point) < price(*chosen))) chosen = &point;
    }
    if (chosen) return chosen->settings;
    return best ? best->settings : Settings{};
}

}  // namespace outpace::ann
