// Update: vectors that come and go. A new one takes a free place in its list; a removed one stays in the
// graph as a step for walks until so many have gone that the rows are repaired around them (Singh et al.
// 2021).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "errors.hpp"
#include "index.hpp"
#include "threads.hpp"
#include "workspace.hpp"

namespace outpace::ann {
namespace {

constexpr int walk_width = 96;  // candidates looked at when a new node chooses its neighbours
constexpr int forward_edges = 24;
constexpr double most_dead = 0.2;  // of all nodes, before rows are repaired around them

struct Node {
    Slot slot;
    float distance;
};

}  // namespace

void Index::add(const Source& vectors, const Id* ids, int threads) {
    const std::lock_guard changes(writer_);
    ensure_table();
    std::unordered_set<Id> fresh;
    for (std::size_t i = 0; i < vectors.count; ++i)
        if (table_.find(store_.ids.as<Id>(), ids[i]) != no_slot || !fresh.insert(ids[i]).second)
            throw BadId("id " + std::to_string(ids[i]) +
                        " is already in the index; remove it first, or give the new vector another id");
    if (store_.slots() + vectors.count + std::size_t(store_.lists.count) * lanes > (std::size_t(1) << 31))
        throw BadArgument("an index holds at most 2^31 places; split the vectors over several indexes");
    // Places of removed vectors are used again, which first needs the graph to forget them.
    if (store_.dead_count * 20 > store_.count + store_.dead_count) {
        const std::lock_guard guard(lock_);
        consolidate(threads);
    }
    Borrowed work(*this);
    work->given.resize(std::size_t(store_.shape.dimension));
    constexpr std::size_t at_once = 16;  // searches wait for this many at most
    for (std::size_t i = 0; i < vectors.count; i += at_once) {
        const std::lock_guard guard(lock_);
        for (std::size_t j = i; j < std::min(vectors.count, i + at_once); ++j) {
            vectors.read(j, work->given.data());
            insert(work->given.data(), ids[j], *work);
        }
        changed();
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

void Index::insert(const float* vector, Id id, Workspace& work) {
    const Shape& shape = store_.shape;
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
        block = store_.blocks;
        store_.grow_blocks(1);
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
    if (store_.has_graph()) link(slot, reduced.data(), work);
    store_.live.as<std::uint32_t>()[block] |= 1u << lane;
    ++store_.count;
    if (!table_.insert(store_.ids.as<Id>(), slot))
        table_.build(store_.ids.as<Id>(), store_.live.as<std::uint32_t>(), store_.slots(), store_.count);
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
    if (too_few() && store_.dead_count) {
        // The walk ended among removed nodes, which take no edges: a node tied to far ones alone would be
        // found by none.
        consolidate(1);
        look({Engine::graph, walk_width, walk_width, 1.0f});
    }
    if (too_few()) look({Engine::partitions, std::int32_t(store_.lists.count), walk_width, 2.0f});
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

void Index::remove(const Id* ids, std::size_t count) {
    const std::lock_guard changes(writer_);
    ensure_table();
    std::unordered_set<Id> going;
    for (std::size_t i = 0; i < count; ++i) {
        if (table_.find(store_.ids.as<Id>(), ids[i]) == no_slot)
            throw BadId("id " + std::to_string(ids[i]) + " is not in the index; nothing was removed");
        if (!going.insert(ids[i]).second)
            throw BadId("id " + std::to_string(ids[i]) + " is named twice; nothing was removed");
    }
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
    changed();
    if (double(store_.dead_count) > most_dead * double(store_.count + store_.dead_count)) consolidate(1);
}

void Index::widen(Scalar kind) {
    const std::lock_guard changes(writer_);
    const std::lock_guard guard(lock_);
    store_.widen(kind);
    changed();
}

void Index::drop_graph() {
    const std::lock_guard changes(writer_);
    const std::lock_guard guard(lock_);
    store_.rows = Buffer();
    consolidate(1);
}

// Every row that leads to removed nodes chooses again among what is left and what those nodes led to.
void Index::consolidate(int threads) {
    if (!store_.dead_count) return;
    if (!store_.has_graph()) {  // it was dropped: nothing leads to the removed ones
        std::memset(store_.dead.data(), 0, store_.dead.size());
        store_.dead_count = 0;
        return;
    }
    const Shape& shape = store_.shape;
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16)), row_bytes = shape.graph_row_bytes();
    const std::uint32_t* live = store_.live.as<std::uint32_t>();
    const auto alive = [&](Slot s) { return s < store_.slots() && (live[s / lanes] >> (s % lanes) & 1); };
    const auto neighbours = [&](Slot s, int lane) {
        Slot to;
        std::memcpy(&to, store_.rows.data() + s * row_bytes + 4 * lane, 4);
        return to;
    };
    Buffer next;  // rows are read while others are rewritten, so they are written aside
    next.resize(store_.rows.size());
    std::memcpy(next.data(), store_.rows.data(), store_.rows.size());
    parallel(store_.slots(), threads, 256, [&](std::size_t begin, std::size_t end) {
        std::vector<Slot> found;
        std::vector<Key> keys;
        std::vector<float> centre(padded), rows, distances;
        for (std::size_t s = begin; s < end; ++s) {
            if (!alive(Slot(s))) continue;
            found.clear();
            bool touched = false;
            for (int lane = 0; lane < lanes; ++lane) {
                const Slot to = neighbours(Slot(s), lane);
                if (alive(to)) found.push_back(to);
                if (to >= store_.slots() || alive(to)) continue;
                touched = true;
                for (int other = 0; other < lanes; ++other)
                    if (const Slot beyond = neighbours(to, other); alive(beyond) && beyond != s)
                        found.push_back(beyond);
            }
            if (!touched) continue;
            std::sort(found.begin(), found.end());
            found.erase(std::unique(found.begin(), found.end()), found.end());
            const auto read_sketch = [&](Slot from, float* out) {
                std::memset(out, 0, padded * 4);
                slots_.search->decode_sketch(&shape, store_.sketches.data() + from * shape.sketch_bytes(),
                                             out);
            };
            read_sketch(Slot(s), centre.data());
            keys.clear();
            rows.resize(padded);
            for (const Slot to : found) {
                read_sketch(to, rows.data());
                float distance;
                slots_.construct->distances(centre.data(), rows.data(), int(padded), 1, &distance);
                keys.push_back(make_key(distance, to));
            }
            std::sort(keys.begin(), keys.end());
            rows.resize(keys.size() * padded);
            distances.resize(keys.size());
            for (std::size_t i = 0; i < keys.size(); ++i) {
                read_sketch(key_slot(keys[i]), rows.data() + i * padded);
                distances[i] = key_distance(keys[i]);
            }
            std::uint32_t kept[lanes];
            const std::size_t size =
                slots_.construct->prune(rows.data(), distances.data(), int(padded), keys.size(), lanes, kept);
            std::uint8_t* row = next.data() + s * row_bytes;
            for (int lane = 0; lane < lanes; ++lane) {
                const bool used = std::size_t(lane) < size;
                const Slot to = used ? key_slot(keys[kept[lane]]) : no_slot;
                std::memcpy(row + 4 * lane, &to, 4);
                if (used)
                    slots_.search->encode_lane(&shape, rows.data() + kept[lane] * padded, centre.data(),
                                               row + row_head, lane);
                else
                    slots_.search->clear_lane(&shape, row + row_head, lane);
            }
        }
    });
    store_.rows = std::move(next);
    // Entries that were removed move to a live neighbour of theirs, or to any live node.
    Slot any = no_slot;
    for (Slot s = 0; s < store_.slots() && any == no_slot; ++s)
        if (alive(s)) any = s;
    Slot* entries = store_.entry_slots.as<Slot>();
    for (std::uint32_t e = 0; e < store_.entries.count; ++e) {
        if (alive(entries[e])) continue;
        Slot chosen = any;
        for (int lane = 0; lane < lanes && entries[e] < store_.slots(); ++lane)
            if (const Slot to = neighbours(entries[e], lane); alive(to)) {
                chosen = to;
                break;
            }
        if (chosen != no_slot) entries[e] = chosen;
    }
    std::memset(store_.dead.data(), 0, store_.dead.size());
    store_.dead_count = 0;
    changed();
}

}  // namespace outpace::ann
