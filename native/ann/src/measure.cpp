// Measure: recall against effort, on queries that are not in the index.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <shared_mutex>
#include <span>

#include "index.hpp"
#include "random.hpp"
#include "workspace.hpp"

namespace outpace::ann {
namespace {

constexpr std::size_t answers = 10;  // recall is measured on the nearest ten

// Every setting is measured on at least so many queries, and on more as long as they touch no more bytes than
// this: a limit on time would make what is measured depend on what else the machine does.
constexpr std::size_t fewest_queries = 200;
constexpr double most_bytes = 1e9;

struct Grid {
    int depth;
    float slack;
};
// Deeper refinement goes with more slack: whoever wants the last neighbour must not lose it to a rough
// estimate.
constexpr Grid grids[] = {{15, 0.8f}, {25, 1.0f}, {50, 1.0f}, {100, 1.5f}, {250, 2.0f}};
constexpr Grid filtered_grids[] = {{25, 1.0f}, {100, 1.5f}, {250, 2.0f}};

std::vector<int> efforts_of(Engine engine, std::uint32_t lists, double step) {
    std::vector<int> efforts;
    const double last = engine == Engine::graph ? 2000 : lists, first = engine == Engine::graph ? 10 : 1;
    for (double e = first; e < last; e *= step) efforts.push_back(int(e));
    efforts.push_back(int(last));
    efforts.erase(std::unique(efforts.begin(), efforts.end()), efforts.end());
    return efforts;
}

}  // namespace

void Index::calibrate(const Source& queries, bool stored, int threads) {
    // Nothing changes while this holds, so searches go on beside it without a lock of ours.
    const std::lock_guard changes(writer_);
    using clock = std::chrono::steady_clock;
    const std::size_t count = queries.count, own = stored ? 1 : 0, asked = answers + own;
    Calibration next;
    next.queries = std::uint32_t(count);
    std::vector<Id> truth(count * asked), ids(asked);
    std::vector<float> distances(count * asked), near(asked);
    const std::size_t dimension = std::size_t(store_.shape.dimension);
    std::vector<float> given(count * dimension);
    for (std::size_t i = 0; i < count; ++i) queries.read(i, given.data() + i * dimension);
    Random random(store_.seed ^ 0x63616c6962u);

    // Selectivities below these are compared one by one, or use the smallest that was measured.
    for (const float share : {1.0f, 0.5f, 0.1f, 0.01f, 0.001f}) {
        std::unique_ptr<Filter> filter;
        if (share < 1) {
            if (double(store_.count) * share < 2 * answers) break;
            filter = std::make_unique<Filter>();
            filter->allowed.assign(store_.blocks, 0);
            for (std::uint32_t b = 0; b < store_.blocks; ++b)
                for (std::uint32_t mask = store_.live.as<std::uint32_t>()[b]; mask; mask &= mask - 1)
                    if (random.uniform() < share) {
                        filter->allowed[b] |= mask & -mask;
                        ++filter->count;
                    }
        }
        const std::size_t used = share < 1 ? std::min<std::size_t>(count, 200) : count;
        Source some = queries;
        some.count = used;
        exact_search(some, asked, filter ? filter->allowed.data() : nullptr, threads, truth.data(),
                     distances.data());
        Borrowed work(*this);
        for (const Engine engine : {Engine::partitions, Engine::graph}) {
            if (engine == Engine::graph && (!store_.has_graph() || filter)) continue;
            const std::uint32_t ranked = engine == Engine::graph ? store_.entries.count : store_.lists.count;
            const std::span<const Grid> tried =
                filter ? std::span<const Grid>(filtered_grids) : std::span<const Grid>(grids);
            for (const auto& [depth, slack] : tried) {
                float before = -1;
                int still = 0;
                for (const int effort : efforts_of(engine, store_.lists.count, filter ? 1.6 : 1.3)) {
                    if (engine == Engine::graph && effort < depth) continue;
                    const Settings settings{engine, effort, depth, slack};
                    std::vector<float> recalls;
                    work->counters = Counters();
                    double seconds = 0;
                    std::size_t enough = used;
                    for (std::size_t i = 0; i < enough; ++i) {
                        const auto start = clock::now();
                        prepare(*work, store_.ground(), given.data() + i * dimension, i);
                        search_one(*work, asked, settings, filter.get(), ids.data(), near.data());
                        seconds += std::chrono::duration<double>(clock::now() - start).count();
                        const Id* right = truth.data() + i * asked;
                        const float* far = distances.data() + i * asked;
                        std::size_t hits = 0, possible = 0;
                        for (std::size_t j = 0; j < asked; ++j) {
                            possible += right[j] != -1;
                            // A vector as near as the last true neighbour is as good an answer as it.
                            hits += ids[j] != -1 && near[j] <= far[asked - 1];
                        }
                        if (own && possible) {
                            --possible;
                            hits -= hits && near[0] <= far[0];
                        }
                        recalls.push_back(possible ? float(std::min(hits, possible)) / float(possible) : 1);
                        if (i + 1 == fewest_queries) {
                            const float cost = cost_of(store_.shape, settings, work->counters, i + 1, ranked);
                            enough = std::min(used, std::max(i + 1, std::size_t(most_bytes / cost)));
                        }
                    }
                    const Bounded bound = bounded_mean(recalls);
                    next.points.push_back(
                        {settings, share, bound.mean, bound.lower,
                         cost_of(store_.shape, settings, work->counters, recalls.size(), ranked),
                         float(seconds / double(recalls.size()))});
                    // The depth caps recall: once more effort brings nothing, the next depth is due.
                    still = bound.mean <= before + 0.0002f ? still + 1 : 0;
                    before = std::max(before, bound.mean);
                    if (still >= 3 || bound.mean >= 0.99995f) break;
                }
            }
        }
        work->counters = Counters();
    }
    next.prepare();
    const std::lock_guard guard(lock_);
    calibration_ = std::move(next);
}

}  // namespace outpace::ann
