// Measure: recall against effort, on queries that are not in the index.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <shared_mutex>
#include <span>

#include "index.hpp"
#include "random.hpp"
#include "workspace.hpp"

namespace outpace::ann {
namespace {

constexpr std::size_t answers = 10;     // recall is measured on the nearest ten,
constexpr std::size_t many = 100;       // and that it holds for more, on so many
constexpr std::size_t most_real = 500;  // of the user's queries, kept with the index

// Every setting is measured on at least so many queries, on more as long as they cost no more than this, and
// on all where so few misses are left that fewer would bound nothing. A limit on time would make what is
// measured depend on what else the machine does.
constexpr std::size_t fewest_queries = 200;
constexpr double most_cost = 2e8;
constexpr float few_misses = 0.99f;
// Recall from which on more effort is of no use to anyone.
constexpr float near_perfect = 0.9997f;

struct Grid {
    int depth;
    float slack;
    float from;  // begins at the effort with which the grid before it reached this recall
};
// Deeper refinement goes with more slack: whoever wants the last neighbour must not lose it to a rough
// estimate. Where little is found, the depth is not what keeps recall down, and a deeper grid brings nothing.
constexpr Grid plain_grids[] = {{12, 0.8f, 0},     {16, 1.0f, 0.7f},   {25, 1.0f, 0.8f},
                                {50, 1.0f, 0.92f}, {100, 1.5f, 0.98f}, {250, 2.0f, 0.99f}};
constexpr Grid filtered_grids[] = {{25, 1.0f, 0}, {100, 1.5f, 0.9f}, {250, 2.0f, 0.98f}};

// The mean time of a query, with those that took thrice the median, whatever came between, counted as the
// median.
float undisturbed_mean(const std::vector<float>& seconds) {
    std::vector<float> sorted = seconds;
    const auto middle = sorted.begin() + std::ptrdiff_t(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    const float median = *middle;
    double sum = 0;
    for (const float each : seconds) sum += each > 3 * median ? median : each;
    return float(sum / double(seconds.size()));
}

std::vector<int> efforts_of(Engine engine, std::uint32_t lists, double step) {
    std::vector<int> efforts;
    const double last = engine == Engine::graph ? 2000 : lists, first = engine == Engine::graph ? 10 : 1;
    for (double e = first; e < last; e *= step) efforts.push_back(int(e));
    efforts.push_back(int(last));
    efforts.erase(std::unique(efforts.begin(), efforts.end()), efforts.end());
    return efforts;
}

}  // namespace

// Queries with their true neighbours under one filter.
struct Index::Examination {
    const float* given;
    std::size_t queries, asked, own;  // own: each finds itself among the `asked`, which does not count
    std::vector<Id> truth;
    std::vector<float> distances;
    float share;
    std::unique_ptr<Filter> filter;  // none where `share` is 1

    // The part of the true neighbours that an answer holds; `met`: the answer may hold the query itself.
    float recall(std::size_t query, const Id* ids, const float* near, bool met) const {
        const Id* right = truth.data() + query * asked;
        const float* far = distances.data() + query * asked;
        std::size_t hits = 0, possible = 0;
        for (std::size_t j = 0; j < asked; ++j) {
            possible += right[j] != -1;
            // A vector as near as the last true neighbour is as good an answer as it.
            hits += ids[j] != -1 && near[j] <= far[asked - 1];
        }
        if (own && possible) {
            --possible;
            hits -= met && hits && near[0] <= far[0];
        }
        return possible ? float(std::min(hits, possible)) / float(possible) : 1;
    }
};

Measured Index::measure(Workspace& work, const Examination& exam, const Settings& settings) const {
    using clock = std::chrono::steady_clock;
    std::vector<Id> ids(exam.asked);
    std::vector<float> near(exam.asked), recalls, seconds;
    work.counters = Counters();
    std::size_t enough = exam.queries;
    const bool met = !(exam.own && settings.engine == Engine::graph);
    for (std::size_t i = 0; i < enough; ++i) {
        if (!met) work.query->passed_by = table_.find(store_.ids.as<Id>(), exam.truth[i * exam.asked]);
        const auto start = clock::now();
        prepare(work, store_.ground(), exam.given + i * std::size_t(store_.shape.dimension), i);
        search_one(work, exam.asked, settings, usual_recall, exam.filter.get(), ids.data(), near.data());
        seconds.push_back(std::chrono::duration<float>(clock::now() - start).count());
        recalls.push_back(exam.recall(i, ids.data(), near.data(), met));
        if (i + 1 == fewest_queries && bounded_mean(recalls).mean < few_misses) {
            const float cost = cost_of(store_.shape, settings, work.counters, i + 1);
            enough = std::min(exam.queries, std::max(i + 1, std::size_t(most_cost / cost)));
        }
    }
    work.query->passed_by = no_slot;
    const Bounded bound = bounded_mean(recalls);
    const float cost = cost_of(store_.shape, settings, work.counters, recalls.size());
    return {settings, exam.share, bound.mean, bound.lower, cost, undisturbed_mean(seconds)};
}

void Index::sweep(Workspace& work, const Examination& exam, Engine engine, std::vector<Measured>& points,
                  const Report& report) const {
    const std::span<const Grid> grids = exam.filter ? std::span<const Grid>(filtered_grids) : plain_grids;
    const std::vector<int> efforts = efforts_of(engine, store_.lists.count, exam.filter ? 1.6 : 1.3);
    std::size_t begin = 0;
    float dearest = std::numeric_limits<float>::infinity();  // what a nearly perfect setting costs
    for (std::size_t g = 0; g < grids.size(); ++g) {
        float best = -1;
        int still = 0;
        std::optional<std::size_t> next_begin;
        for (std::size_t e = begin; e < efforts.size(); ++e) {
            if (engine == Engine::graph && efforts[e] < grids[g].depth) continue;
            report(double(g) / double(grids.size()));
            points.push_back(measure(work, exam, {engine, efforts[e], grids[g].depth, grids[g].slack}));
            const auto& [recall, cost] = std::pair(points.back().recall, points.back().cost);
            if (recall >= near_perfect) dearest = std::min(dearest, cost);
            if (g + 1 < grids.size() && recall >= grids[g + 1].from && !next_begin) next_begin = e;
            // The depth caps recall: once more effort brings nothing, the next depth is due.
            still = recall <= best + 0.0002f ? still + 1 : 0;
            best = std::max(best, recall);
            if (still >= 3 || cost >= dearest) break;
        }
        begin = next_begin.value_or(begin);
    }
}

float Index::stretch(Workspace& work, const Examination& exam, Engine engine, const Calibration& next) const {
    constexpr float targets[] = {usual_recall, 0.99f};
    float stretch = 1;
    for (const float target : targets) {
        const Settings ten =
            next.choose(target, 1, engine == Engine::graph ? Among::graph : Among::partitions);
        for (; stretch < most_stretch; stretch *= 1.5f) {
            const Settings settings = for_more(ten, double(many), double(store_.count), stretch);
            if (measure(work, exam, settings).lower >= target) break;
        }
    }
    return std::min(stretch, most_stretch);
}

void Index::calibrate(const Source& queries, bool stored, bool real, int threads, const Progress& progress) {
    // Nothing changes while this holds, so searches go on beside it without a lock of ours.
    const std::lock_guard changes(writer_);
    const std::size_t own = stored ? 1 : 0, asked = answers + own;
    const std::size_t dimension = std::size_t(store_.shape.dimension);
    Calibration next;
    next.queries = std::uint32_t(queries.count);
    std::vector<float> given(queries.count * dimension);
    for (std::size_t i = 0; i < queries.count; ++i) queries.read(i, given.data() + i * dimension);
    if (real)
        next.real.assign(given.begin(),
                         given.begin() + std::ptrdiff_t(std::min(most_real, queries.count) * dimension));
    Random random(store_.seed ^ 0x63616c6962u);
    if (stored && store_.has_graph()) ensure_table();

    // Selectivities below these are compared one by one, or use the smallest that was measured.
    // Filters have few settings; most of the time goes into the sweeps without one.
    constexpr double filtered_part = 0.05;
    constexpr float shares[] = {1.0f, 0.5f, 0.1f, 0.01f, 0.001f};
    double done = 0;
    const auto examine = [&](Workspace& work, const Examination& exam, Engine engine, double part) {
        sweep(work, exam, engine, next.points, [&](double of) { progress("recall", done + part * of); });
        done += part;
    };
    for (const float share : shares) {
        if (share < 1 && double(store_.count) * share < 2 * answers) break;
        Source some = queries;
        if (share < 1) some.count = std::min<std::size_t>(queries.count, fewest_queries);
        Examination exam{given.data(), some.count, asked, own, {}, {}, share, {}};
        if (share < 1) {
            exam.filter = std::make_unique<Filter>();
            exam.filter->allowed.assign(store_.blocks, 0);
            for (std::uint32_t b = 0; b < store_.blocks; ++b)
                for (std::uint32_t mask = store_.live.as<std::uint32_t>()[b]; mask; mask &= mask - 1)
                    if (random.uniform() < share) {
                        exam.filter->allowed[b] |= mask & -mask;
                        ++exam.filter->count;
                    }
        }
        exam.truth.resize(some.count * asked);
        exam.distances.resize(some.count * asked);
        exact_search(some, asked, exam.filter ? exam.filter->allowed.data() : nullptr, threads,
                     exam.truth.data(), exam.distances.data(), [&](double) { progress("recall", done); });
        Borrowed work(*this);
        const bool walks = store_.has_graph() && !exam.filter;
        const double part = exam.filter ? filtered_part : 1 - filtered_part * double(std::size(shares) - 1);
        examine(*work, exam, Engine::partitions, walks ? part / 2 : part);
        if (walks) examine(*work, exam, Engine::graph, part / 2);
        work->counters = Counters();
    }
    next.prepare();
    if (store_.count >= 2 * many) {
        const std::size_t wide = many + own;
        Source some = queries;
        some.count = std::min<std::size_t>(queries.count, fewest_queries);
        Examination exam{given.data(), some.count, wide, own, {}, {}, 1.0f, {}};
        exam.truth.resize(some.count * wide);
        exam.distances.resize(some.count * wide);
        exact_search(some, wide, nullptr, threads, exam.truth.data(), exam.distances.data(),
                     [&](double) { progress("recall", done); });
        Borrowed work(*this);
        for (const Engine engine : {Engine::partitions, Engine::graph})
            if (engine == Engine::partitions || store_.has_graph())
                next.stretch[int(engine)] = stretch(*work, exam, engine, next);
        work->counters = Counters();
    }
    const std::lock_guard guard(lock_);
    calibration_ = std::move(next);
}

}  // namespace outpace::ann
