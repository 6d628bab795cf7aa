#include "index.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <shared_mutex>

#include "errors.hpp"
#include "threads.hpp"
#include "workspace.hpp"

namespace outpace::ann {
namespace {

constexpr float longest_square = 1e30f;  // of a vector; beyond it squares of differences overflow
constexpr float nowhere = std::numeric_limits<float>::infinity();

// Whether comparing with every match is cheaper than scanning with a filter, which ranks all lists, scans the
// nearest, and looks at some sketches for each vector that it refines. In the units of cost_of.
bool cheaper_to_compare(const Ground& ground, const Settings& settings, std::uint64_t matches) {
    const Shape& shape = ground.shape;
    const double lists = std::max<std::uint32_t>(ground.lists.count, 1),
                 row = 100 + double(shape.exact_bytes());
    const double ranked = lists * shape.reduced / 8;
    const double scanned =
        std::min(double(settings.effort), lists) * ground.blocks / lists * double(shape.block_bytes());
    const double sketched = 6 * double(settings.depth) * (300 + 2.5 * double(shape.sketch_bytes()));
    return double(matches) * row < ranked + scanned + sketched + settings.depth * row;
}

// Deeper refinement goes with more slack, as in the grids that a calibration measures: whoever looks at many
// must not have lost the last neighbour to a rough estimate, and whoever looks at few wants to be fast.
float slack_for(int depth, double near) {
    const double times = depth / std::max(near, 1.0);
    return times < 1.4 ? 0.8f : float(std::clamp(1 + 0.5 * std::log2(times / 5), 1.0, 2.0));
}

std::atomic<std::uint64_t> moments{0};

bool is_live(const Store& store, Slot slot) {
    return store.live.as<std::uint32_t>()[slot / lanes] >> (slot % lanes) & 1;
}

}  // namespace

void check_vectors(const Source& source, Metric metric, const char* what, std::size_t first) {
    std::vector<float> row(static_cast<std::size_t>(source.dimension));
    if (source.kind == Scalar::i8 || source.kind == Scalar::u8)
        if (metric != Metric::cosine) return;  // whole numbers are finite
    for (std::size_t i = 0; i < source.count; ++i) {
        source.read(i, row.data());
        double square = 0;
        for (int t = 0; t < source.dimension; ++t) {
            const float x = row[std::size_t(t)];
            if (!std::isfinite(x))
                throw BadArgument(std::string(what) + " " + std::to_string(first + i) + " holds " +
                                  (std::isnan(x) ? "NaN" : "infinity") + " at position " + std::to_string(t) +
                                  "; remove or replace such values first");
            square += double(x) * x;
        }
        if (metric == Metric::cosine && square == 0)
            throw BadArgument(
                std::string(what) + " " + std::to_string(first + i) +
                " is all zeros, which has no direction under metric='cosine'; remove it, or use "
                "metric='l2' or 'ip'");
        if (!(float(square) < longest_square))
            throw BadArgument(
                std::string(what) + " " + std::to_string(first + i) +
                " is longer than 1e15, beyond what single precision can compare; scale the vectors down");
    }
}

Index::Index(Store store, Slots slots, std::string instruction_set)
    : store_(std::move(store)), slots_(slots), instruction_set_(std::move(instruction_set)) {
    changed();
}

Index::~Index() = default;

void Index::changed() {
    moment_ = ++moments;
}

void Index::prepare(Workspace& work, const Ground& ground, const float* query, std::size_t number) const {
    const float square = slots_.search->ingest(&ground, query, work.query.get());
    if (square < longest_square && (square > 0 || store_.shape.metric != Metric::cosine)) return;
    // Only now is it worth finding out what is wrong, and where.
    check_vectors({query, Scalar::f32, 1, store_.shape.dimension}, store_.shape.metric, "query", number);
}

Settings Index::settings_for(const Wanted& wanted, std::size_t k, const Filter* filter) const {
    Settings settings;
    const double there = double(std::max<std::uint64_t>(store_.count, 1)), near = std::min(double(k), there);
    if (wanted.effort) {
        settings.engine = wanted.engine.value_or(store_.has_graph() ? Engine::graph : Engine::partitions);
        settings.effort = *wanted.effort;
        // With the effort, or it would cap recall whatever the effort is.
        settings.depth =
            int(std::min(there, std::max(2 * near, near + std::clamp(*wanted.effort / 4, 10, 250))));
        settings.slack = slack_for(wanted.depth.value_or(settings.depth), near);
    } else {
        const float recall = wanted.recall.value_or(usual_recall);
        const float share = filter ? float(double(filter->count) / there) : 1.0f;
        const bool walks = !filter && store_.has_graph() && wanted.engine != Engine::partitions;
        const Among among = !walks                           ? Among::partitions
                            : wanted.engine == Engine::graph ? Among::graph
                                                             : Among::either;
        settings = calibration_.choose(recall, share, among);
        if (near > 10)
            settings = for_more(settings, near, double(filter ? filter->count : store_.count),
                                calibration_.stretch[int(settings.engine)]);
    }
    if (wanted.depth) settings.depth = *wanted.depth;
    settings.depth = int(std::min(there, std::max({double(settings.depth), near, 1.0})));
    settings.effort = std::max(settings.effort, 1);
    return settings;
}

// More answers need more of everything. How much, is a rule of thumb times what was measured with a hundred;
// where vectors lie in clusters, whose own ten are near and whose next lie far off, that is much.
Settings Index::for_more(Settings settings, double near, double there, float stretch) const {
    const double part = std::min(1.0, std::log10(std::max(near, 10.0) / 10)), more = std::pow(stretch, part);
    const double most = double(std::max<std::uint64_t>(store_.count, 1));
    settings.depth =
        int(std::min(most, std::max<double>(settings.depth, near + more * settings.depth * near / 20)));
    if (settings.engine == Engine::graph) {
        settings.effort = int(std::max(more * settings.effort, double(settings.depth)));
    } else {
        // Their ball reaches into further lists, and they fill some by themselves.
        const double filled = near / std::max(1.0, there / store_.lists.count);
        const double effort = more * (settings.effort * std::pow(near / 10, 0.75) + 2 * filled);
        settings.effort = int(std::min<double>(store_.lists.count, effort));
    }
    return settings;
}

// Efforts were measured with filters that know nothing of the query. Where the vectors near it pass much more
// rarely than others do, its matches lie far off, at distances much alike, and only a scan of all lists finds
// them.
bool Index::lies_elsewhere(Workspace& work, const Ground& ground, const Filter& filter) const {
    const double share = double(filter.count) / double(std::max<std::uint64_t>(store_.count, 1));
    const double wanted = 10 / share;  // vectors, of which ten should pass
    const double in_list = double(store_.count) / ground.lists.count;
    const int effort = 1 + int(1.5 * wanted / std::max(in_list, 1.0));
    const Settings settings{Engine::partitions, std::min(effort, int(ground.lists.count)), int(wanted), 1.0f};
    const Key* near = nullptr;
    const std::size_t count = slots_.search->candidates(&ground, work.scratch, work.query.get(), &settings,
                                                        nullptr, &near, &work.counters);
    std::size_t passed = 0;
    for (std::size_t i = 0; i < count; ++i)
        passed += filter.allowed[key_slot(near[i]) / lanes] >> (key_slot(near[i]) % lanes) & 1;
    return double(passed) < 0.4 * share * double(count);
}

// At least `near` of them, which is no more than there are: where the settings bring fewer (a walk among
// removed vectors, nearly empty lists, a query far from everything) more lists are scanned, and at last every
// vector is compared. A walk that brings less than half of what it was to refine was among removed vectors
// too, and lists are scanned instead, as the recall wanted asks for.
std::size_t Index::candidates(Workspace& work, const Ground& ground, std::size_t near, Settings settings,
                              float recall, const Filter* filter, const Key** out) const {
    const std::uint32_t* allowed = filter ? filter->allowed.data() : nullptr;
    const auto look = [&] {
        return slots_.search->candidates(&ground, work.scratch, work.query.get(), &settings, allowed, out,
                                         &work.counters);
    };
    if (near == 0) return 0;
    // Calibration's own filters have no blocks: it measures the scan as it was set, for filters of any size.
    if (!filter || filter->blocks == 0 || !cheaper_to_compare(ground, settings, filter->count)) {
        const int lists = int(ground.lists.count);
        if (filter && filter->blocks && lies_elsewhere(work, ground, *filter)) {
            settings.effort = lists;
            settings.depth = int(std::min(double(ground.slots()), std::max(4.0 * settings.depth, 100.0)));
            settings.slack = std::max(settings.slack, 2.0f);
        }
        const bool walks = settings.engine == Engine::graph && ground.rows && !filter;
        const std::size_t there = std::min<std::size_t>(std::size_t(settings.depth), store_.count);
        std::size_t count = look();
        if (count >= (walks ? std::max(near, there / 2) : near) || (filter && filter->blocks == 0))
            return count;
        if (walks) {
            const int depth = settings.depth;
            settings = settings_for({recall, {}, {}, Engine::partitions}, near, nullptr);
            settings.depth = std::max(settings.depth, depth);
            count = look();
            if (count >= near) return count;
        }
        settings.engine = Engine::partitions;
        while (settings.effort < lists) {
            settings.effort *= 4;
            count = look();
            if (count >= near) return count;
        }
    }
    work.keys.clear();
    for (std::uint32_t b = 0; b < ground.blocks; ++b)
        for (std::uint32_t mask = (allowed ? allowed : ground.live)[b]; mask; mask &= mask - 1)
            work.keys.push_back(Key(b * lanes + std::uint32_t(std::countr_zero(mask))));
    *out = work.keys.data();
    return work.keys.size();
}

// The candidates, and the vectors that codes misplace.
std::size_t Index::with_long(Workspace& work, const Filter* filter, const Key** kept,
                             std::size_t count) const {
    std::vector<Slot>& known = work.slots;
    known.clear();
    for (std::size_t i = 0; i < count; ++i) known.push_back(key_slot((*kept)[i]));
    std::sort(known.begin(), known.end());
    work.joined.assign(*kept, *kept + count);
    const Slot* slots = store_.long_slots.as<Slot>();
    for (std::size_t i = 0; i < store_.long_slots.size() / sizeof(Slot); ++i) {
        const Slot slot = slots[i];  // a damaged file may name any
        if (slot >= store_.slots() || !is_live(store_, slot)) continue;
        if (filter && !(filter->allowed[slot / lanes] >> (slot % lanes) & 1)) continue;
        if (!std::binary_search(known.begin(), known.end(), slot)) work.joined.push_back(Key(slot));
    }
    *kept = work.joined.data();
    return work.joined.size();
}

std::size_t Index::search_one(Workspace& work, std::size_t k, const Settings& settings, float recall,
                              const Filter* filter, Id* ids, float* distances) const {
    const Ground ground = store_.ground();
    const std::size_t near = std::min<std::size_t>(k, filter ? filter->count : store_.count);
    const Key* kept = nullptr;
    std::size_t count = candidates(work, ground, near, settings, recall, filter, &kept);
    if (store_.long_slots.size()) count = with_long(work, filter, &kept, count);
    work.slots.resize(std::max<std::size_t>(near, 1));
    const std::size_t found =
        slots_.refine->refine(&ground, work.query.get(), kept, count, near, work.slots.data(), distances);
    work.counters.refined += count;
    for (std::size_t i = 0; i < found; ++i) ids[i] = ground.ids[work.slots[i]];
    for (std::size_t i = found; i < k; ++i) {
        ids[i] = -1;
        distances[i] = nowhere;
    }
    return found;
}

void Index::search(const Source& queries, std::size_t k, const Wanted& wanted, Filter* filter, int threads,
                   Id* ids, float* distances) {
    const auto some = [&](std::size_t begin, std::size_t end) {
        Borrowed work(*this);
        work->given.resize(std::size_t(store_.shape.dimension));
        for (std::size_t i = begin; i < end; ++i) {
            // Per query, not per call: a change waits for one query at most.
            const std::shared_lock guard(lock_);
            std::shared_lock<std::shared_mutex> unchanged;
            if (filter) unchanged = current(*filter);
            const Settings settings = settings_for(wanted, k, filter);
            prepare(*work, store_.ground(), queries.row(i, work->given.data()), i);
            search_one(*work, k, settings, wanted.recall.value_or(usual_recall), filter, ids + i * k,
                       distances + i * k);
        }
    };
    if (queries.count == 1)
        some(0, 1);
    else
        parallel(queries.count, threads, 16, some);
}

// The filter as it is for the index of this moment, which stays while the caller holds lock_.
std::shared_lock<std::shared_mutex> Index::current(Filter& filter) {
    for (;;) {
        std::shared_lock seen(filter.lock);
        if (filter.moment == moment_) return seen;
        seen.unlock();
        const std::lock_guard alone(filter.lock);
        if (filter.moment != moment_) resolve(filter);
    }
}

void Index::resolve(Filter& filter) {
    filter.allowed.assign(store_.blocks, 0);
    filter.count = 0;
    const Id* ids = store_.ids.as<Id>();
    if (filter.by_mask) {
        for (Slot s = 0; s < store_.slots(); ++s) {
            if (!is_live(store_, s)) continue;
            const Id id = ids[s];
            if (id >= 0 && std::uint64_t(id) < filter.mask.size() && filter.mask[std::size_t(id)]) {
                filter.allowed[s / lanes] |= 1u << (s % lanes);
                ++filter.count;
            }
        }
    } else {
        ensure_table();
        for (const Id id : filter.ids) {
            const Slot s = table_.find(ids, id);
            if (s == no_slot || (filter.allowed[s / lanes] >> (s % lanes) & 1)) continue;
            filter.allowed[s / lanes] |= 1u << (s % lanes);
            ++filter.count;
        }
    }
    filter.blocks = std::uint64_t(
        std::count_if(filter.allowed.begin(), filter.allowed.end(), [](auto word) { return word != 0; }));
    filter.moment = moment_;
}

void Index::exact_search(const Source& queries, std::size_t k, const std::uint32_t* allowed, int threads,
                         Id* ids, float* distances, const Report& report) {
    // So many slots at a time stay in the first caches, and a thread keeps nothing that grows with the index.
    constexpr std::size_t batch = 2048;
    parallel(queries.count, threads, 4, report, [&](std::size_t begin, std::size_t end) {
        Borrowed work(*this);
        work->given.resize(std::size_t(store_.shape.dimension));
        Slot some[batch];
        float near[batch];
        std::vector<std::pair<float, Slot>> best;  // a heap, the farthest first
        for (std::size_t i = begin; i < end; ++i) {
            // Per query, not per call: a change waits for one query at most, and searches for that change.
            const std::shared_lock guard(lock_);
            const Ground ground = store_.ground();
            prepare(*work, ground, queries.row(i, work->given.data()), i);
            best.clear();
            std::size_t count = 0;
            const auto compare = [&] {
                slots_.refine->distances(&ground, work->query.get(), some, count, near);
                for (std::size_t j = 0; j < count; ++j) {
                    const std::pair each(near[j], some[j]);
                    if (best.size() == k) {
                        if (!(each < best.front())) continue;
                        std::pop_heap(best.begin(), best.end());
                        best.pop_back();
                    }
                    best.push_back(each);
                    std::push_heap(best.begin(), best.end());
                }
                count = 0;
            };
            for (std::uint32_t b = 0; b < ground.blocks; ++b) {
                for (std::uint32_t mask = allowed ? ground.live[b] & allowed[b] : ground.live[b]; mask;
                     mask &= mask - 1)
                    some[count++] = b * lanes + Slot(std::countr_zero(mask));
                if (count + lanes > batch) compare();
            }
            compare();
            std::sort_heap(best.begin(), best.end());
            for (std::size_t j = 0; j < k; ++j) {
                ids[i * k + j] = j < best.size() ? ground.ids[best[j].second] : -1;
                distances[i * k + j] = j < best.size() ? best[j].first : nowhere;
            }
        }
    });
}

void Index::shrink() {
    const std::lock_guard changes(writer_);
    const std::lock_guard guard(lock_);
    table_.clear();
    const std::lock_guard idle(pool_lock_);
    pool_.clear();
}

void Index::ensure_table() {
    const std::lock_guard once(table_lock_);
    if (!table_.built())
        table_.build(store_.ids.as<Id>(), store_.live.as<std::uint32_t>(), store_.slots(), store_.count);
}

bool Index::contains(Id id) {
    const std::shared_lock guard(lock_);
    ensure_table();
    return table_.find(store_.ids.as<Id>(), id) != no_slot;
}

MemoryUse Index::memory() const {
    MemoryUse use;
    use.codes = store_.block_codes.reserved();
    use.sketches = store_.sketches.reserved();
    use.vectors = store_.exact.reserved();
    use.graph = store_.rows.reserved();
    use.lists = store_.lists.codes.reserved() + store_.lists.scale.reserved() +
                store_.lists.constant.reserved() + store_.centres.reserved() + store_.first_block.reserved() +
                store_.next_block.reserved();
    use.ids = store_.ids.reserved() + table_.bytes();
    use.other = store_.long_slots.reserved() + store_.live.reserved() + store_.dead.reserved() +
                store_.transform.matrix.reserved() + store_.entries.codes.reserved() +
                store_.entry_slots.reserved();
    return use;
}

Counters Index::counters() const {
    const std::lock_guard guard(pool_lock_);
    Counters sum;
    for (const auto& work : pool_) {
        sum.blocks += work->counters.blocks;
        sum.sketches += work->counters.sketches;
        sum.refined += work->counters.refined;
        sum.hops += work->counters.hops;
    }
    return sum;
}

}  // namespace outpace::ann
