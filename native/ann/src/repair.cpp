// Repair: the graph forgets removed vectors, and their places are found for others.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "index.hpp"
#include "threads.hpp"

namespace outpace::ann {

// The caller holds writer_ and not lock_: the work reads what is there, and searches wait for the exchange
// alone.
void Index::consolidate(int threads) {
    if (!store_.dead_count) return;
    Buffer rows;
    if (store_.has_graph())
        rows = repaired_rows(threads);  // else it was dropped: nothing leads to the removed
    const std::lock_guard guard(lock_);
    if (store_.has_graph()) {
        store_.rows = std::move(rows);
        move_entries();
    }
    std::memset(store_.dead.data(), 0, store_.dead.size());
    store_.dead_count = 0;
    thinned_ = true;
    changed();
}

// Every row that leads to removed nodes chooses again among what is left and what those nodes led to (Singh
// et al. 2021).
Buffer Index::repaired_rows(int threads) const {
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
    return next;
}

// Entries that were removed move to a live neighbour of theirs, or to any live node.
void Index::move_entries() {
    const std::size_t row_bytes = store_.shape.graph_row_bytes();
    const std::uint32_t* live = store_.live.as<std::uint32_t>();
    const auto alive = [&](Slot s) { return s < store_.slots() && (live[s / lanes] >> (s % lanes) & 1); };
    Slot any = no_slot;
    for (Slot s = 0; s < store_.slots() && any == no_slot; ++s)
        if (alive(s)) any = s;
    Slot* entries = store_.entry_slots.as<Slot>();
    for (std::uint32_t e = 0; e < store_.entries.count; ++e) {
        if (alive(entries[e])) continue;
        Slot chosen = any;
        for (int lane = 0; lane < lanes && entries[e] < store_.slots(); ++lane) {
            Slot to;
            std::memcpy(&to, store_.rows.data() + entries[e] * row_bytes + 4 * lane, 4);
            if (alive(to)) {
                chosen = to;
                break;
            }
        }
        if (chosen != no_slot) entries[e] = chosen;
    }
}

// A block for a list that is full: one that no list needs any more, or a new one.
std::uint32_t Index::new_block() {
    if (spare_.empty() && thinned_) find_spare();
    if (spare_.empty()) {
        store_.grow_blocks(1);
        return store_.blocks - 1;
    }
    const std::uint32_t block = spare_.back();
    spare_.pop_back();
    store_.next_block.as<std::uint32_t>()[block] = no_slot;
    return block;
}

// Takes blocks whose vectors were all removed out of their lists, so that any list can have them.
void Index::find_spare() {
    std::uint32_t* next = store_.next_block.as<std::uint32_t>();
    const std::uint32_t* live = store_.live.as<std::uint32_t>();
    const std::uint32_t* dead = store_.dead.as<std::uint32_t>();
    std::vector<bool> used(store_.blocks, false);  // also ends a ring, which a damaged file may hold
    for (std::uint32_t list = 0; list < store_.lists.count; ++list) {
        std::uint32_t* link = store_.first_block.as<std::uint32_t>() + list;
        while (*link < store_.blocks && !used[*link]) {
            const std::uint32_t block = *link;
            if (live[block] | dead[block]) {
                used[block] = true;
                link = next + block;
            } else {
                *link = next[block];
                next[block] = no_slot;
            }
        }
    }
    for (std::uint32_t block = store_.blocks; block-- > 0;)
        if (!used[block] && !(live[block] | dead[block])) spare_.push_back(block);
    thinned_ = false;
}

}  // namespace outpace::ann
