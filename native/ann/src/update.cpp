// Update: vectors that come and go. A new one takes a free place in its list; a removed one stays in the
// graph as a step for walks until so many have gone that the rows are repaired around them (repair.cpp).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "errors.hpp"
#include "index.hpp"
#include "threads.hpp"
#include "workspace.hpp"

namespace outpace::ann {
namespace {

// Candidates that a new node chooses its neighbours from, and how many it takes. With 96 and 24, half of
// minilm replaced, effort 24 found 0.949 where a fresh index finds 0.959; with these it finds 0.955.
constexpr int walk_width = 192;
constexpr int forward_edges = lanes;
constexpr double most_dead = 0.2;  // of all nodes, before rows are repaired around them
constexpr float too_long = 1.1f;   // times the longest of the build

struct Node {
    Slot slot;
    float distance;
};

}  // namespace

void Index::add(const Source& vectors, const Id* ids, int threads, Scalar holder) {
    const std::lock_guard changes(writer_);
    ensure_table();
    std::unordered_set<Id> fresh;
    for (std::size_t i = 0; i < vectors.count; ++i) {
        if (table_.find(store_.ids.as<Id>(), ids[i]) != no_slot)
            throw BadId("id " + std::to_string(ids[i]) +
                        " is already in the index; remove it first, or give the new vector another id");
        if (!fresh.insert(ids[i]).second)
            throw BadId("id " + std::to_string(ids[i]) + " is named twice; nothing was added");
    }
    if (store_.slots() + vectors.count + std::size_t(store_.lists.count) * lanes > (std::size_t(1) << 31))
        throw BadArgument("an index holds at most 2^31 places; split the vectors over several indexes");
    if (holder != store_.shape.exact) widen(holder);
    // Places of removed vectors are used again, which first needs the graph to forget them.
    if (store_.dead_count * 20 > store_.count + store_.dead_count) consolidate(threads);
    Borrowed work(*this);
    work->given.resize(std::size_t(store_.shape.dimension));
    constexpr std::size_t at_once = 16;  // searches wait for this many at most
    for (std::size_t i = 0; i < vectors.count; i += at_once) {
        {
            const std::lock_guard guard(lock_);
            changed();  // first: memory may end at any of them, and those before it are in
            for (std::size_t j = i; j < std::min(vectors.count, i + at_once); ++j) {
                vectors.read(j, work->given.data());
                insert(work->given.data(), ids[j], *work);
            }
        }
        if (std::exchange(work->astray, false)) consolidate(threads);
    }
}

// The first block of a list with a free place, or none; `last` becomes the list's last block where there is
// none.
std::uint32_t Index::block_with_room(std::uint32_t list, std::uint32_t* last) const {
    const std::uint32_t* next = store_.next_block.as<std::uint32_t>();
    const std::uint32_t* live = store_.live.as<std::uint32_t>();
    const std::uint32_t* dead = store_.dead.as<std::uint32_t>();
    // Bounded, since a damaged file may hold a ring.
    std::uint32_t block = store_.first_block.as<std::uint32_t>()[list];
    for (std::uint32_t hops = 0; block < store_.blocks && hops <= store_.blocks; ++hops) {
        if ((live[block] | dead[block]) != ~0u) return block;
        *last = block;
        block = next[block];
    }
    return no_slot;
}

// What needs memory comes before the vector is live and counted, and what comes after cannot fail.
void Index::insert(const float* vector, Id id, Workspace& work) {
    const Shape& shape = store_.shape;
    if (table_.full())
        table_.build(store_.ids.as<Id>(), store_.live.as<std::uint32_t>(), store_.slots(), store_.count);
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
    std::vector<float> working(std::size_t(store_.transform.padded())), reduced(padded);
    store_.transform.working(vector, false, working.data());
    store_.transform.reduce(*slots_.construct, working.data(), reduced.data());
    for (float& x : reduced) x = within_reach(x);
    std::uint32_t list = 0, last = no_slot;
    const Ranking lists = store_.lists.view();
    slots_.construct->assign(&shape, &lists, reduced.data(), 1, &list);
    std::uint32_t block = block_with_room(list, &last);
    if (block == no_slot) {
        block = new_block();
        if (last == no_slot)
            store_.first_block.as<std::uint32_t>()[list] = block;
        else
            store_.next_block.as<std::uint32_t>()[last] = block;
    }
    const std::uint32_t taken =
        store_.live.as<std::uint32_t>()[block] | store_.dead.as<std::uint32_t>()[block];
    const int lane = std::countr_one(taken);
    const Slot slot = block * lanes + Slot(lane);
    slots_.search->encode_lane(&shape, reduced.data(),
                               store_.centres.as<float>() + std::size_t(list) * padded,
                               store_.block_codes.data() + block * shape.block_bytes(), lane);
    slots_.search->encode_sketch(&shape, reduced.data(),
                                 store_.sketches.data() + slot * shape.sketch_bytes());
    write_exact(shape, working.data(), store_.exact.data() + slot * shape.exact_bytes());
    store_.ids.as<Id>()[slot] = id;
    if (shape.metric == Metric::ip) note_length(slot, vector);
    if (store_.has_graph()) link(slot, reduced.data(), work);
    store_.live.as<std::uint32_t>()[block] |= 1u << lane;
    ++store_.count;
    ++calibration_.changed;
    store_.highest = std::max(store_.highest, id);
    table_.insert(store_.ids.as<Id>(), slot);
}

// Codes know no vector longer than the longest of the build: they take such a one for nearer the query's
// direction than it is, or, if it is much longer, for farther than all others.
void Index::note_length(Slot slot, const float* vector) {
    double square = 0;
    for (int i = 0; i < store_.shape.dimension; ++i) square += double(vector[i]) * vector[i];
    if (std::sqrt(square) <= double(too_long) * store_.transform.longest) return;
    const std::size_t count = store_.long_slots.size() / sizeof(Slot);
    const Slot* known = store_.long_slots.as<Slot>();
    if (std::find(known, known + count, slot) != known + count) return;  // a removed one was here
    store_.long_slots.resize((count + 1) * sizeof(Slot));
    store_.long_slots.as<Slot>()[count] = slot;
}

// Gives a new node its row, and its neighbours the edge back. Neighbours are known by their sketches: exact
// rows would have to be projected again, which costs more than the choice gains.
void Index::link(Slot slot, const float* reduced, Workspace& work) {
    const Shape& shape = store_.shape;
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16)), row_bytes = shape.graph_row_bytes();
    const auto read_sketch = [&](Slot s, float* out) {
        std::memset(out, 0, padded * 4);
        slots_.search->decode_sketch(&shape, store_.sketches.data() + s * shape.sketch_bytes(), out);
    };
    const auto choose = [&](const float* centre, const std::vector<Slot>& found, int degree,
                            std::vector<Slot>& kept) {
        std::vector<Key> keys;
        std::vector<float> rows(found.size() * padded), sorted(found.size() * padded),
            distances(found.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (found[i] == slot)
                std::memcpy(rows.data() + i * padded, reduced, padded * 4);
            else
                read_sketch(found[i], rows.data() + i * padded);
            float distance;
            slots_.construct->distances(centre, rows.data() + i * padded, int(padded), 1, &distance);
            keys.push_back(make_key(distance, Slot(i)));
        }
        std::sort(keys.begin(), keys.end());
        for (std::size_t i = 0; i < keys.size(); ++i) {
            distances[i] = key_distance(keys[i]);
            std::memcpy(sorted.data() + i * padded, rows.data() + key_slot(keys[i]) * padded, padded * 4);
        }
        std::uint32_t places[lanes];
        const std::size_t size = slots_.construct->prune(sorted.data(), distances.data(), int(padded),
                                                         keys.size(), degree, places);
        kept.clear();
        for (std::size_t i = 0; i < size; ++i) kept.push_back(found[key_slot(keys[places[i]])]);
    };
    const auto write_edge = [&](std::uint8_t* row, int lane, Slot to, const float* vector,
                                const float* anchor) {
        std::memcpy(row + 4 * lane, &to, 4);
        slots_.search->encode_lane(&shape, vector, anchor, row + row_head, lane);
    };

    std::memset(work.query->reduced, 0, sizeof work.query->reduced);
    std::memcpy(work.query->reduced, reduced, padded * 4);
    std::vector<Slot> found, kept, back;
    const auto look = [&](const Settings& settings) {
        const Ground ground = store_.ground();
        slots_.search->prepare(&ground, work.query.get());
        const Key* candidates;
        const std::size_t count = slots_.search->candidates(&ground, work.scratch, work.query.get(),
                                                            &settings, nullptr, &candidates, &work.counters);
        found.clear();
        for (std::size_t i = 0; i < count; ++i)
            if (key_slot(candidates[i]) != slot) found.push_back(key_slot(candidates[i]));
    };
    const auto too_few = [&] { return found.size() < std::min<std::size_t>(forward_edges, store_.count); };
    look({Engine::graph, walk_width, walk_width, 1.0f});
    if (too_few()) {
        // The walk ended among removed nodes, which take no edges, and a node tied to far ones alone would be
        // found by none. A scan of all lists is dear, so the graph forgets the removed before the next ones.
        work.astray = store_.dead_count > 0;
        look({Engine::partitions, std::int32_t(store_.lists.count), walk_width, 2.0f});
    }
    choose(reduced, found, forward_edges, kept);
    std::uint8_t* row = store_.rows.data() + slot * row_bytes;
    std::vector<float> neighbour(padded), other(padded);
    for (int lane = 0; lane < lanes; ++lane) {
        if (std::size_t(lane) < kept.size()) {
            read_sketch(kept[std::size_t(lane)], neighbour.data());
            write_edge(row, lane, kept[std::size_t(lane)], neighbour.data(), reduced);
        } else {
            const Slot none = no_slot;
            std::memcpy(row + 4 * lane, &none, 4);
            slots_.search->clear_lane(&shape, row + row_head, lane);
        }
    }
    for (const Slot v : kept) {
        std::uint8_t* theirs = store_.rows.data() + v * row_bytes;
        read_sketch(v, neighbour.data());
        found.clear();
        int free_lane = -1;
        for (int lane = 0; lane < lanes; ++lane) {
            Slot to;
            std::memcpy(&to, theirs + 4 * lane, 4);
            const bool gone =
                to >= store_.slots() || (store_.dead.as<std::uint32_t>()[to / lanes] >> (to % lanes) & 1);
            if (gone && free_lane < 0) free_lane = lane;
            if (!gone && to != slot) found.push_back(to);
        }
        if (free_lane >= 0) {
            write_edge(theirs, free_lane, slot, reduced, neighbour.data());
            continue;
        }
        found.push_back(slot);
        choose(neighbour.data(), found, lanes, back);
        if (std::find(back.begin(), back.end(), slot) == back.end()) continue;
        for (int lane = 0; lane < lanes; ++lane) {
            Slot to;
            std::memcpy(&to, theirs + 4 * lane, 4);
            if (std::find(back.begin(), back.end(), to) == back.end()) {
                write_edge(theirs, lane, slot, reduced, neighbour.data());
                break;
            }
        }
    }
    // A node without neighbours, or whom no neighbour took, becomes an entry of its own kind: the nearest
    // node must lead to it, whatever it held before.
    if (!kept.empty()) {
        bool led = false;
        for (const Slot v : kept)
            for (int lane = 0; lane < lanes && !led; ++lane) {
                Slot to;
                std::memcpy(&to, store_.rows.data() + v * row_bytes + 4 * lane, 4);
                led = to == slot;
            }
        if (!led) {
            read_sketch(kept[0], neighbour.data());
            write_edge(store_.rows.data() + kept[0] * row_bytes, lanes - 1, slot, reduced, neighbour.data());
        }
    } else if (store_.entries.count == 0 || store_.count == 0) {
        std::vector<float> point(reduced, reduced + padded);
        store_.entries.set(shape, *slots_.search, point);
        store_.entry_slots.resize(sizeof(Slot));
        store_.entry_slots.as<Slot>()[0] = slot;
    }
}

void Index::remove(const Id* ids, std::size_t count, int threads) {
    const std::lock_guard changes(writer_);
    ensure_table();
    std::unordered_set<Id> going;
    for (std::size_t i = 0; i < count; ++i) {
        if (table_.find(store_.ids.as<Id>(), ids[i]) == no_slot)
            throw BadId("id " + std::to_string(ids[i]) + " is not in the index; nothing was removed");
        if (!going.insert(ids[i]).second)
            throw BadId("id " + std::to_string(ids[i]) + " is named twice; nothing was removed");
    }
    {
        const std::lock_guard guard(lock_);
        const bool graph = store_.has_graph();
        for (std::size_t i = 0; i < count; ++i) {
            const Slot slot = table_.find(store_.ids.as<Id>(), ids[i]);
            table_.erase(store_.ids.as<Id>(), ids[i]);
            store_.live.as<std::uint32_t>()[slot / lanes] &= ~(1u << (slot % lanes));
            slots_.search->clear_lane(&store_.shape,
                                      store_.block_codes.data() + (slot / lanes) * store_.shape.block_bytes(),
                                      int(slot % lanes));
            if (graph) {
                store_.dead.as<std::uint32_t>()[slot / lanes] |= 1u << (slot % lanes);
                ++store_.dead_count;
            }
            --store_.count;
        }
        calibration_.changed += count;
        thinned_ = true;
        changed();
    }
    if (double(store_.dead_count) > most_dead * double(store_.count + store_.dead_count))
        consolidate(threads);
}

// The caller holds writer_ and not lock_: searches wait for the exchange alone.
void Index::widen(Scalar kind) {
    Buffer rows = store_.widened(kind);
    const std::lock_guard guard(lock_);
    store_.exact = std::move(rows);
    store_.shape.exact = store_.transform.shape.exact = kind;
    changed();
}

void Index::drop_graph() {
    const std::lock_guard changes(writer_);
    {
        const std::lock_guard guard(lock_);
        store_.rows = Buffer();
    }
    consolidate(1);
}

}  // namespace outpace::ann
