// Search: bring blocks (by scanning lists or walking the graph), filter them by their scan codes, order what
// is left by sketch, and hand the best to refinement.
#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "encode.hpp"
#include "exact.hpp"
#include "outpace/ann/slots.hpp"
#include "prepare.hpp"

namespace outpace::ann {

struct Scratch {
    std::vector<float> rank;          // distance to each list
    std::vector<Key> order;           // the lists to scan, or the pool of a walk
    std::vector<Key> kept;            // candidates with sketch distances
    std::vector<std::uint64_t> seen;  // one bit per slot; all zero between queries
    std::vector<Slot> marked;         // which bits of `seen` to clear
};

}  // namespace outpace::ann

namespace outpace::ann::OUTPACE_ISA {
namespace {

// f16 constants end at 65504; a limit above every finite estimate but below infinity keeps empty lanes out.
constexpr float no_limit = 6.5e4f;

// Ranked places that hold no point are at 1e30; no point is anywhere near this.
constexpr float far_away = 1e29f;

void fetch(const std::uint8_t* at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += line) prefetch(at + i);
}

// The least and the largest of the distances, places without a point (very far away) left out.
void range_of(const float* rank, std::size_t padded, float& least, float& most) {
    floats low = splat(far_away), high = splat(-far_away);
    for (std::size_t i = 0; i < padded; i += width) {
        const floats here = load(rank + i);
        low = here < low ? here : low;
        const floats near = here < far_away ? here : high;
        high = near > high ? near : high;
    }
    least = low[0];
    most = high[0];
    for (int j = 1; j < width; ++j) {
        least = std::min(least, low[j]);
        most = std::max(most, high[j]);
    }
}

// The nearest `wanted` ranked points, the first few in order, the others in none.
void nearest_points(const Ranking& ranking, const Shape& shape, const QueryCodes& query, std::size_t wanted,
                    Scratch& scratch) {
    const std::size_t padded = std::size_t(ranking.groups()) * 16;
    scratch.rank.resize(padded);
    float* rank = scratch.rank.data();
    rank_lists(ranking.codes, ranking.scale, ranking.constant, int(ranking.groups()), shape.quads(), query,
               rank);
    scratch.order.clear();
    if (!ranking.count) return;
    wanted = std::min<std::size_t>(wanted, ranking.count);
    // A histogram finds a threshold that lets little more than `wanted` pass: cheaper than selecting among
    // all. Its index is clamped both ways, and NaN becomes zero: a damaged file may hold any number.
    float least, most;
    range_of(rank, padded, least, most);
    constexpr int bins = 256;
    const float bin = float(bins - 1) / (most - least + 1e-20f);
    std::uint32_t counts[2][bins] = {};  // two, so that equal neighbours do not wait for each other
    for (std::size_t i = 0; i < padded; i += width) {
        // From here on a point is known by its place among the bins, in one arithmetic: a threshold worked
        // out in another would lose the points that lie on it.
        floats place = (load(rank + i) - least) * bin;
        std::memcpy(rank + i, &place, sizeof place);
        place = place > 0 ? place : floats{};
        place = place < float(bins - 1) ? place : splat(float(bins - 1));
        const ints whole = __builtin_convertvector(place, ints);
        for (int j = 0; j < width; ++j) ++counts[j & 1][whole[j]];
    }
    std::size_t passed = 0;
    int last = 0;
    for (; last < bins - 1; ++last) {
        passed += counts[0][last] + counts[1][last];
        if (passed >= wanted) break;
    }
    const float threshold = last == bins - 1 ? (most - least) * bin : float(last + 1);
    auto& order = scratch.order;
    for (std::size_t i = 0; i < padded; i += 16)
        for (std::uint32_t mask = at_most(rank + i, threshold); mask; mask &= mask - 1) {
            const std::size_t at = i + std::size_t(std::countr_zero(mask));
            // Padding is far away in every file that was saved, but a damaged one may say otherwise.
            if (at < ranking.count) order.push_back(make_key(rank[at], Slot(at)));
        }
    if (order.size() > wanted) {
        std::nth_element(order.begin(), order.begin() + std::ptrdiff_t(wanted), order.end());
        order.resize(wanted);
    }
    // Near lists first, since they tighten the limit for the others; beyond the first few, order buys
    // nothing.
    const std::size_t sorted = order.size() > 12 ? 6 : order.size();
    std::partial_sort(order.begin(), order.begin() + std::ptrdiff_t(sorted), order.end());
}

// Collects candidates by sketch distance and keeps the nearest `depth`, with a limit that tightens as it
// fills.
class Collector {
  public:
    Collector(const Ground& ground, const QueryCodes& query, std::size_t depth, Scratch& scratch,
              Counters& counters)
        : ground_(ground),
          query_(query),
          depth_(std::min<std::size_t>(depth, std::max<Slot>(ground.slots(), 1))),
          capacity_(std::max<std::size_t>(4 * depth_, 128)),
          scale_(ground.exact_scale * stretch(ground, query)),
          base_(ground.exact_scale / 2 * (1 + query_lengths * query_lengths) * ground.longest *
                ground.longest),
          row_(ground.shape.sketch_bits ? ground.sketches : ground.exact),
          row_bytes_(ground.shape.sketch_bits ? ground.shape.sketch_bytes() : ground.shape.exact_bytes()),
          kept_(scratch.kept),
          counters_(counters) {
        if (kept_.size() < capacity_ + batch) kept_.resize(capacity_ + batch);
    }

    float limit() const { return limit_; }
    bool full() const { return count_ >= depth_; }

    void offer(std::uint32_t block, std::uint32_t mask) {
        while (mask) {
            const Slot slot = block * lanes + Slot(std::countr_zero(mask));
            mask &= mask - 1;
            waiting_[waits_++] = slot;
            fetch(row_ + slot * row_bytes_, row_bytes_);
        }
        if (waits_ >= 48) settle(16);
    }
    void settle_all() { settle(1); }

    std::size_t finish(const Key** out) {
        settle(1);
        if (count_ > depth_) {
            std::nth_element(kept_.begin(), kept_.begin() + std::ptrdiff_t(depth_ - 1),
                             kept_.begin() + std::ptrdiff_t(count_));
            count_ = depth_;
        }
        *out = kept_.data();
        return count_;
    }

  private:
    static constexpr std::size_t batch = 32;

    // Sketch distances of those that wait, as long as at least `least` do: the newest still travel from
    // memory.
    void settle(std::size_t least) {
        std::size_t done = 0;
        float distance[batch];
        while (waits_ - done >= least && done < waits_) {
            const std::size_t now = std::min(batch, waits_ - done);
            measure(waiting_ + done, now, distance);
            for (std::size_t i = 0; i < now; ++i)
                if (distance[i] < limit_) kept_[count_++] = make_key(distance[i], waiting_[done + i]);
            done += now;
            if (count_ >= capacity_) shrink();
        }
        counters_.sketches += done;
        waits_ -= done;
        std::memmove(waiting_, waiting_ + done, waits_ * sizeof(Slot));
    }
    // Squared distances in reduced coordinates, in which the limit is kept too.
    void measure(const Slot* slots, std::size_t count, float* distances) const {
        if (ground_.shape.sketch_bits)
            return sketch_distances(ground_.shape, ground_.sketches, slots, int(count), query_, distances);
        for (std::size_t i = 0; i < count; ++i)
            distances[i] = base_ + scale_ * distance(ground_.shape, query_, row_ + slots[i] * row_bytes_);
    }
    // Under inner product the stored vectors are of length L, the query of c L, and a distance is
    // (1 + c^2) L^2 - 2 <q, x>.
    static float stretch(const Ground& ground, const QueryCodes& query) {
        if (ground.shape.metric != Metric::ip) return 1;
        const int padded = round_up(ground.shape.dimension, 16);
        const float norm = std::sqrt(dot_float(query.exact, query.exact, padded));
        return norm > 0 ? query_lengths * ground.longest / norm : 0;
    }
    void shrink() {
        std::nth_element(kept_.begin(), kept_.begin() + std::ptrdiff_t(depth_ - 1),
                         kept_.begin() + std::ptrdiff_t(count_));
        limit_ = key_distance(kept_[depth_ - 1]);
        count_ = depth_;
    }

    const Ground& ground_;
    const QueryCodes& query_;
    const std::size_t depth_, capacity_;
    const float scale_, base_;
    const std::uint8_t* const row_;  // sketches, or exact rows where there are none
    const std::size_t row_bytes_;
    std::vector<Key>& kept_;
    Counters& counters_;
    std::size_t count_ = 0, waits_ = 0;
    float limit_ = 1e30f;
    Slot waiting_[128];
};

template <bool filtered>
std::size_t scan_partitions(const Ground& ground, Scratch& scratch, const QueryCodes& query,
                            const Settings& settings, const std::uint32_t* allowed, const Key** out,
                            Counters& counters) {
    const Shape& shape = ground.shape;
    const std::size_t block_bytes = shape.block_bytes();
    const int chunks = shape.chunks(), padded = ground.padded_reduced();
    nearest_points(ground.lists, shape, query, std::size_t(settings.effort), scratch);
    Collector collector(ground, query, std::size_t(settings.depth), scratch, counters);
    const float forgiven = settings.slack * ground.noise;
    const auto& order = scratch.order;
    const std::uint32_t blocks = ground.blocks;
    const auto first_of = [&](std::size_t i) { return ground.first_block[key_slot(order[i])]; };
    std::uint32_t hops = 0;  // no block belongs to two lists, but a damaged file may hold a ring
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i + 1 < order.size() && first_of(i + 1) < blocks)
            fetch(ground.block_codes + first_of(i + 1) * block_bytes, 2 * block_bytes);
        const float to_anchor = l2_float(
            query.reduced, ground.centres + std::size_t(key_slot(order[i])) * std::size_t(padded), padded);
        const float offset = query.table_base + forgiven * std::sqrt(to_anchor);
        for (std::uint32_t block = first_of(i); block < blocks && hops < blocks; ++hops) {
            const std::uint8_t* codes = ground.block_codes + block * block_bytes;
            const std::uint32_t next = ground.next_block[block];
            if (next < blocks) fetch(ground.block_codes + next * block_bytes, block_bytes);
            std::uint32_t wanted = ~0u;
            if constexpr (filtered) wanted = allowed[block];
            if (wanted) {
                const float limit = std::min(collector.limit() - to_anchor, no_limit);
                const std::uint32_t mask =
                    scan_block(codes, query.table, chunks, query.table_step, offset, limit) & wanted;
                ++counters.blocks;
                if (mask) collector.offer(block, mask);
            }
            block = next;
        }
        if (!collector.full()) collector.settle_all();
    }
    return collector.finish(out);
}

// Best-first walk with a sorted pool. Bit 0 of a pool entry's slot half says that it was expanded.
std::size_t walk_graph(const Ground& ground, Scratch& scratch, const QueryCodes& query,
                       const Settings& settings, const Key** out, Counters& counters) {
    const Shape& shape = ground.shape;
    const std::size_t row_bytes = shape.graph_row_bytes(), sketch_bytes = shape.sketch_bytes();
    const int chunks = shape.chunks();
    const Slot slots = ground.slots();
    const std::size_t width =
        std::min<std::size_t>(std::size_t(std::max(settings.effort, settings.depth)), slots);
    const std::size_t words = (std::size_t(slots) + 63) / 64;
    if (scratch.seen.size() < words) scratch.seen.resize(words);
    scratch.marked.clear();
    std::uint64_t* seen = scratch.seen.data();
    auto& pool = scratch.order;

    if (const Slot slot = query.passed_by; slot < slots) {
        seen[slot >> 6] |= std::uint64_t(1) << (slot & 63);
        scratch.marked.push_back(slot);
    }

    nearest_points(ground.entries, shape, query, 2, scratch);
    Slot batch[2 * lanes];
    float distance[2 * lanes];
    std::size_t found = 0;
    for (const Key entry : pool) {
        const Slot slot = ground.entry_slots[key_slot(entry)];
        if (slot < slots && !(seen[slot >> 6] >> (slot & 63) & 1)) {
            seen[slot >> 6] |= std::uint64_t(1) << (slot & 63);
            scratch.marked.push_back(slot);
            batch[found++] = slot;
        }
    }
    if (pool.size() < width + 1) pool.resize(width + 1);
    Key* const entries = pool.data();
    std::size_t size = 0;
    // Keys hold the slot shifted by one, to leave room for the mark: slots are below 2^31.
    const auto insert = [&](float near, Slot slot) {
        const Key key = make_key(near, slot << 1);
        if (size == width && key >= entries[size - 1]) return width;
        std::size_t low = 0, high = size;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (entries[middle] < key)
                low = middle + 1;
            else
                high = middle;
        }
        std::memmove(entries + low + 1, entries + low, (std::min(size, width - 1) - low) * sizeof(Key));
        entries[low] = key;
        size += size < width;
        return low;
    };
    sketch_distances(shape, ground.sketches, batch, int(found), query, distance);
    for (std::size_t i = 0; i < found; ++i) insert(distance[i], batch[i]);

    const float forgiven = settings.slack * ground.noise;
    // Two rows at a time overlap their memory waits; it pays once the pool is long enough to hold two good
    // ones.
    const int beam = width >= 40 ? 2 : 1;
    std::size_t current = 0;
    found = 0;
    for (;;) {
        // The next nodes are picked, and their rows sent for, before the sketches of the last ones'
        // neighbours are looked at: the two travel from memory at the same time. The pick is a step behind,
        // which costs fewer hops than it hides waiting.
        const std::uint8_t* picked[2];
        float to_node[2];
        int picks = 0;
        for (; current < size && picks < beam; ++current) {
            if (entries[current] & 1) continue;
            entries[current] |= 1;
            to_node[picks] = key_distance(entries[current]);
            picked[picks] = ground.rows + std::size_t(key_slot(entries[current]) >> 1) * row_bytes;
            fetch(picked[picks++], row_bytes);
        }
        if (found) {
            sketch_distances(shape, ground.sketches, batch, int(found), query, distance);
            counters.sketches += found;
            for (std::size_t i = 0; i < found; ++i)
                current = std::min(current, insert(distance[i], batch[i]));
            found = 0;
        } else if (!picks) {
            break;
        }
        const float worst = key_distance(entries[size - 1]);
        for (int p = 0; p < picks; ++p) {
            ++counters.hops;
            std::uint32_t mask = scan_block(picked[p] + row_head, query.table, chunks, query.table_step,
                                            query.table_base + forgiven * std::sqrt(to_node[p]),
                                            size < width ? no_limit : std::min(worst - to_node[p], no_limit));
            while (mask) {
                Slot slot;
                std::memcpy(&slot, picked[p] + 4 * std::countr_zero(mask), 4);
                mask &= mask - 1;
                if (slot >= slots || (seen[slot >> 6] >> (slot & 63) & 1)) continue;
                seen[slot >> 6] |= std::uint64_t(1) << (slot & 63);
                scratch.marked.push_back(slot);
                batch[found++] = slot;
                fetch(ground.sketches + slot * sketch_bytes, sketch_bytes);
            }
        }
    }
    for (const Slot slot : scratch.marked) seen[slot >> 6] = 0;
    // Removed vectors still carry the walk; they are not answers.
    scratch.kept.clear();
    for (std::size_t i = 0; i < size && scratch.kept.size() < std::size_t(settings.depth); ++i) {
        const Slot slot = key_slot(entries[i]) >> 1;
        if (ground.live[slot / lanes] >> (slot % lanes) & 1)
            scratch.kept.push_back(make_key(key_distance(entries[i]), slot));
    }
    *out = scratch.kept.data();
    return scratch.kept.size();
}

Scratch* make_scratch() {
    return new Scratch;
}
void free_scratch(Scratch* scratch) {
    delete scratch;
}

void prepare(const Ground* ground, QueryCodes* query) {
    make_tables(ground->shape, *query);
    make_bytes(ground->shape, *query);
}

std::size_t candidates(const Ground* ground, Scratch* scratch, const QueryCodes* query,
                       const Settings* settings, const std::uint32_t* allowed, const Key** out,
                       Counters* counters) {
    if (settings->engine == Engine::graph && ground->rows && !allowed)
        return walk_graph(*ground, *scratch, *query, *settings, out, *counters);
    return allowed ? scan_partitions<true>(*ground, *scratch, *query, *settings, allowed, out, *counters)
                   : scan_partitions<false>(*ground, *scratch, *query, *settings, allowed, out, *counters);
}

constexpr SearchTable table = {
    slot_version,
    make_scratch,
    free_scratch,
    [](const Ground* ground, const float* given, QueryCodes* query) {
        return ingest(*ground, given, *query);
    },
    prepare,
    candidates,
    [](const Shape* shape, const float* vector, const float* anchor, std::uint8_t* block, int lane) {
        encode_lane(*shape, vector, anchor, block, lane);
    },
    [](const Shape* shape, std::uint8_t* block, int lane) { clear_lane(*shape, block, lane); },
    [](const Shape* shape, const float* vector, std::uint8_t* sketch) {
        encode_sketch(*shape, vector, sketch);
    },
    [](const Shape* shape, const float* point, std::uint32_t index, std::uint8_t* codes, float* scale) {
        encode_ranked(*shape, point, index, codes, scale);
    },
    [](const Shape* shape, const std::uint8_t* sketch, float* vector) {
        decode_sketch(*shape, sketch, vector);
    },
};

}  // namespace
}  // namespace outpace::ann::OUTPACE_ISA

OUTPACE_ANN_EXPORT const outpace::ann::SearchTable* outpace_ann_search() {
    return &outpace::ann::OUTPACE_ISA::table;
}
