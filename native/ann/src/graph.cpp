// Graph: nearest neighbours found by scanning lists, thinned by the relative neighbourhood rule, with their
// reverses.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <queue>

#include "build.hpp"
#include "kmeans.hpp"
#include "random.hpp"
#include "threads.hpp"

namespace outpace::ann {
namespace {

constexpr std::size_t most_entries = 4096;

struct ScratchOwner {
    const SearchTable* search;
    Scratch* scratch;
    explicit ScratchOwner(const SearchTable* table) : search(table), scratch(table->make_scratch()) {}
    ~ScratchOwner() { search->free_scratch(scratch); }
    ScratchOwner(const ScratchOwner&) = delete;
    ScratchOwner& operator=(const ScratchOwner&) = delete;
};

// Neighbours by slot: `degree` places each.
struct Edges {
    int degree;
    std::vector<Slot> to;
    std::vector<std::uint8_t> count;

    Edges(std::size_t slots, int places) : degree(places), to(slots * std::size_t(places)), count(slots, 0) {}
    Slot* of(std::size_t slot) { return to.data() + slot * std::size_t(degree); }
    const Slot* of(std::size_t slot) const { return to.data() + slot * std::size_t(degree); }
};

// Chooses a node's neighbours among `found`, which may hold duplicates and the node itself.
class Chooser {
  public:
    Chooser(const float* reduced, int padded, const ConstructTable& construct)
        : reduced_(reduced), padded_(padded), construct_(construct) {}

    std::size_t choose(Slot node, std::vector<Slot>& found, int degree, Slot* out) {
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        found.erase(std::remove(found.begin(), found.end(), node), found.end());
        const float* center = reduced_ + std::size_t(node) * std::size_t(padded_);
        keys_.clear();
        for (const Slot slot : found) {
            float distance;
            construct_.distances(center, reduced_ + std::size_t(slot) * std::size_t(padded_), padded_, 1,
                                 &distance);
            keys_.push_back(make_key(distance, slot));
        }
        std::sort(keys_.begin(), keys_.end());
        rows_.resize(keys_.size() * std::size_t(padded_));
        distances_.resize(keys_.size());
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            distances_[i] = key_distance(keys_[i]);
            std::memcpy(rows_.data() + i * std::size_t(padded_),
                        reduced_ + std::size_t(key_slot(keys_[i])) * std::size_t(padded_),
                        std::size_t(padded_) * 4);
        }
        std::uint32_t kept[lanes];
        const std::size_t size =
            construct_.prune(rows_.data(), distances_.data(), padded_, keys_.size(), degree, kept);
        for (std::size_t i = 0; i < size; ++i) out[i] = key_slot(keys_[kept[i]]);
        return size;
    }

  private:
    const float* reduced_;
    const int padded_;
    const ConstructTable& construct_;
    std::vector<Key> keys_;
    std::vector<float> rows_, distances_;
};

// Every edge also backwards; nodes with more than they may hold choose again.
void add_reverses(Edges& edges, int degree, const float* reduced, int padded, const ConstructTable& construct,
                  int threads, const Report& report) {
    const std::size_t slots = edges.count.size();
    std::vector<std::size_t> start(slots + 1, 0);
    for (std::size_t s = 0; s < slots; ++s)
        for (int j = 0; j < edges.count[s]; ++j) ++start[edges.of(s)[j] + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<Slot> back(start[slots]);
    {
        std::vector<std::size_t> at(start.begin(), start.end() - 1);
        for (std::size_t s = 0; s < slots; ++s)
            for (int j = 0; j < edges.count[s]; ++j) back[at[edges.of(s)[j]]++] = Slot(s);
    }
    Edges next(slots, degree);
    parallel(slots, threads, 256, report, [&](std::size_t begin, std::size_t end) {
        Chooser chooser(reduced, padded, construct);
        std::vector<Slot> found;
        for (std::size_t s = begin; s < end; ++s) {
            found.assign(edges.of(s), edges.of(s) + edges.count[s]);
            found.insert(found.end(), back.begin() + std::ptrdiff_t(start[s]),
                         back.begin() + std::ptrdiff_t(start[s + 1]));
            if (found.empty()) continue;
            next.count[s] = std::uint8_t(chooser.choose(Slot(s), found, degree, next.of(s)));
        }
    });
    edges = std::move(next);
}

void set_entries(Store& store, const std::vector<Slot>& entry, const float* reduced, const Slots& slots) {
    const std::size_t padded = std::size_t(round_up(store.shape.reduced, 16));
    std::vector<float> points(entry.size() * padded);
    for (std::size_t e = 0; e < entry.size(); ++e)
        std::memcpy(points.data() + e * padded, reduced + std::size_t(entry[e]) * padded, padded * 4);
    store.entries.set(store.shape, *slots.search, points);
    store.entry_slots.resize(0);
    store.entry_slots.resize(entry.size() * sizeof(Slot));
    std::memcpy(store.entry_slots.data(), entry.data(), entry.size() * sizeof(Slot));
}

void choose_entries(Store& store, const float* reduced, const BuildOptions& options, const Slots& slots) {
    const Shape& shape = store.shape;
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
    // Entries are vectors near the middle of as many regions; ranking a thousand of them costs half a
    // microsecond.
    const std::uint32_t wanted = std::uint32_t(std::clamp<std::size_t>(store.count / 100, 1, 1024));
    std::vector<Slot> live;
    for (Slot s = 0; s < store.slots(); ++s)
        if (store.live.as<std::uint32_t>()[s / lanes] >> (s % lanes) & 1) live.push_back(s);
    Random random(options.seed ^ 0x656e747279u);
    const std::vector<std::size_t> chosen = random.sample(live.size(), std::size_t(wanted) * 32);
    std::vector<float> sample(chosen.size() * padded);
    for (std::size_t i = 0; i < chosen.size(); ++i)
        std::memcpy(sample.data() + i * padded, reduced + std::size_t(live[chosen[i]]) * padded, padded * 4);
    const std::vector<float> centres =
        k_means(shape, slots, sample.data(), chosen.size(), wanted, 6, 32, options.seed, options.threads);
    const std::vector<std::uint32_t> nearest =
        assign_all(shape, slots, sample.data(), chosen.size(), centres, options.threads);
    std::vector<Key> best(wanted, ~Key(0));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        float distance;
        slots.construct->distances(sample.data() + i * padded,
                                   centres.data() + std::size_t(nearest[i]) * padded, int(padded), 1,
                                   &distance);
        best[nearest[i]] = std::min(best[nearest[i]], make_key(distance, Slot(i)));
    }
    std::vector<Slot> entry;
    for (const Key key : best)
        if (key != ~Key(0)) entry.push_back(live[chosen[key_slot(key)]]);
    set_entries(store, entry, reduced, slots);
}

void pack_rows(Store& store, const Edges& edges, const float* reduced, const Slots& slots, int threads) {
    const Shape& shape = store.shape;
    const std::size_t bytes = shape.graph_row_bytes(), padded = std::size_t(round_up(shape.reduced, 16));
    store.rows.resize(std::size_t(store.slots()) * bytes);
    parallel(store.slots(), threads, 256, [&](std::size_t begin, std::size_t end) {
        for (std::size_t s = begin; s < end; ++s) {
            std::uint8_t* row = store.rows.data() + s * bytes;
            for (int lane = 0; lane < lanes; ++lane) {
                if (lane < edges.count[s]) {
                    const Slot to = edges.of(s)[lane];
                    std::memcpy(row + 4 * lane, &to, 4);
                    slots.search->encode_lane(&shape, reduced + std::size_t(to) * padded,
                                              reduced + s * padded, row + row_head, lane);
                } else {
                    const Slot none = no_slot;
                    std::memcpy(row + 4 * lane, &none, 4);
                    slots.search->clear_lane(&shape, row + row_head, lane);
                }
            }
        }
    });
}

// What cannot be reached from the entries is an island, far from everything: it gets an entry of its own,
// since an edge to it from elsewhere would lie on no walk. When there are very many, the later ones get an
// edge all the same: from a near node that is reached, into a free place, or in place of the farthest
// neighbour that others lead to as well.
std::size_t connect(Store& store, Edges& edges, const float* reduced, const Slots& slots) {
    const std::size_t count = edges.count.size(), padded = std::size_t(round_up(store.shape.reduced, 16));
    std::vector<std::uint32_t> leads(count, 0);
    for (std::size_t s = 0; s < count; ++s)
        for (int j = 0; j < edges.count[s]; ++j) ++leads[edges.of(s)[j]];
    std::vector<bool> reached(count, false);
    std::vector<Slot> stack;
    const auto spread = [&](Slot from) {
        reached[from] = true;
        stack.push_back(from);
        while (!stack.empty()) {
            const Slot s = stack.back();
            stack.pop_back();
            for (int j = 0; j < edges.count[s]; ++j) {
                const Slot to = edges.of(s)[j];
                if (!reached[to]) {
                    reached[to] = true;
                    stack.push_back(to);
                }
            }
        }
    };
    std::vector<Slot> entry(store.entry_slots.as<Slot>(), store.entry_slots.as<Slot>() + store.entries.count);
    const std::size_t chosen = entry.size();
    for (std::size_t e = 0; e < chosen; ++e)
        if (!reached[entry[e]]) spread(entry[e]);
    std::size_t repaired = 0;
    const std::uint32_t* live = store.live.as<std::uint32_t>();
    for (Slot s = 0; s < count; ++s) {
        if (reached[s] || !(live[s / lanes] >> (s % lanes) & 1)) continue;
        if (entry.size() < most_entries) {
            entry.push_back(s);
            ++repaired;
            spread(s);
            continue;
        }
        // Candidates: its own list's neighbourhood in slot order, then everything; the nearest reached one is
        // taken.
        Key best = ~Key(0);
        const auto consider = [&](Slot to) {
            if (!reached[to]) return;
            int free_or_spare = edges.count[to] < edges.degree;
            for (int j = 0; j < edges.count[to] && !free_or_spare; ++j)
                free_or_spare = leads[edges.of(to)[j]] > 1;
            if (!free_or_spare) return;
            float distance;
            slots.construct->distances(reduced + std::size_t(s) * padded, reduced + std::size_t(to) * padded,
                                       int(padded), 1, &distance);
            best = std::min(best, make_key(distance, to));
        };
        for (int j = 0; j < edges.count[s]; ++j) consider(edges.of(s)[j]);
        for (Slot near = s > 128 ? s - 128 : 0;
             best == ~Key(0) && near < std::min<std::size_t>(count, s + 128); ++near)
            consider(near);
        for (Slot any = 0; best == ~Key(0) && any < count; ++any) consider(any);
        if (best == ~Key(0)) continue;
        const Slot from = key_slot(best);
        Slot* to = edges.of(from);
        if (edges.count[from] < edges.degree) {
            to[edges.count[from]++] = s;
        } else {
            int place = edges.degree - 1;
            while (place > 0 && leads[to[place]] <= 1) --place;
            --leads[to[place]];
            to[place] = s;
        }
        ++leads[s];
        ++repaired;
        spread(s);
    }
    if (entry.size() > chosen) set_entries(store, entry, reduced, slots);
    return repaired;
}

}  // namespace

void build_graph(Store& store, const float* reduced, const BuildOptions& options, const Slots& slots,
                 const Progress& progress) {
    const Shape& shape = store.shape;
    const int padded = round_up(shape.reduced, 16);
    const Ground ground = store.ground();
    // Fewer forward edges than places leave room for the reverses of others. Candidates from few lists halve
    // the build and double the hops at recall 0.99 (minilm: 126 from a hundredth of the lists and 64
    // candidates, 62 from these).
    const int forward = std::min(options.degree, 24);
    Edges edges(store.slots(), forward);
    const int scanned = std::clamp(int(store.lists.count / 16), 4, 160);
    const Settings settings{Engine::partitions, scanned, options.candidates, 1.0f};
    const Report looking = stage_of(progress, "neighbours");
    parallel(store.slots(), options.threads, 64, looking, [&](std::size_t begin, std::size_t end) {
        const ScratchOwner scratch(slots.search);
        const auto query = std::make_unique<QueryCodes>();
        std::memset(query->reduced, 0, sizeof query->reduced);
        Chooser chooser(reduced, padded, *slots.construct);
        std::vector<Slot> found;
        Counters counters;
        for (std::size_t s = begin; s < end; ++s) {
            if (!(ground.live[s / lanes] >> (s % lanes) & 1)) continue;
            std::memcpy(query->reduced, reduced + s * std::size_t(padded), std::size_t(padded) * 4);
            slots.search->prepare(&ground, query.get());
            const Key* keys;
            const std::size_t size = slots.search->candidates(&ground, scratch.scratch, query.get(),
                                                              &settings, nullptr, &keys, &counters);
            found.clear();
            for (std::size_t i = 0; i < size; ++i) found.push_back(key_slot(keys[i]));
            edges.count[s] = std::uint8_t(chooser.choose(Slot(s), found, forward, edges.of(s)));
        }
    });
    add_reverses(edges, options.degree, reduced, padded, *slots.construct, options.threads,
                 stage_of(progress, "graph"));
    choose_entries(store, reduced, options, slots);
    store.repaired = connect(store, edges, reduced, slots);
    pack_rows(store, edges, reduced, slots, options.threads);
}

}  // namespace outpace::ann
