#include "build.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "balance.hpp"
#include "errors.hpp"
#include "kmeans.hpp"
#include "random.hpp"
#include "threads.hpp"

namespace outpace::ann {
namespace {

constexpr std::size_t transform_sample = 10000;
constexpr double enough_quality = 0.97;

// Lists of about 80 vectors: two and a half blocks, so that a third of the last block is padding on average.
std::uint32_t choose_lists(std::size_t count, bool compact) {
    const double wanted = std::min(double(count) / (compact ? 160 : 80) + 1, 8192.0);
    return std::uint32_t(std::max(1.0, wanted));
}

// One line of sketch holds 56 coordinates of eight bits or 112 of four; two lines hold 240 of four.
constexpr int one_line = 112, two_lines = 240;

// Whether an index of this shape stays below the float32 vectors, places that lists leave empty included.
bool below_raw(const Shape& shape) {
    const std::size_t stored = shape.block_bytes() / lanes + shape.sketch_bytes() + shape.exact_bytes() + 16;
    return stored + stored / 16 < std::size_t(shape.dimension) * 4;
}

void set_codes(Shape& shape, int reduced, const BuildOptions& options) {
    shape.reduced = std::min(reduced, shape.working());
    shape.sketch_bits = shape.reduced <= 56 ? 8 : 4;
    // One bit per coordinate says too little when there are few coordinates.
    shape.scan_bits = options.scan_bits ? options.scan_bits : shape.reduced <= 56 ? 2 : 1;
    // Of fewer than 64 coordinates, a sketch is no less than half as large as the exact row that can stand in
    // for it.
    const bool spared = options.compact && (shape.working() < 64 || !below_raw(shape));
    if (spared && shape.reduced == shape.working()) shape.sketch_bits = 0;
}

// How much of the true nearest ten a sketch keeps among its nearest twenty, on vectors of the sample.
double sketch_quality(const Transform& transform, const Slots& slots, const std::vector<float>& sample) {
    const Shape& shape = transform.shape;
    const std::size_t stride = std::size_t(transform.padded()),
                      padded = std::size_t(round_up(shape.reduced, 16));
    const std::size_t count = sample.size() / stride, queries = std::min<std::size_t>(100, count / 4);
    if (!queries) return 1;
    std::vector<float> reduced(count * padded, 0), decoded(count * padded, 0), row(padded);
    std::vector<std::uint8_t> sketch(shape.sketch_bytes());
    for (std::size_t i = 0; i < count; ++i) {
        transform.reduce(*slots.construct, sample.data() + i * stride, reduced.data() + i * padded);
        slots.search->encode_sketch(&shape, reduced.data() + i * padded, sketch.data());
        slots.search->decode_sketch(&shape, sketch.data(), decoded.data() + i * padded);
    }
    std::vector<float> true_distance(count), sketch_distance(count);
    std::size_t kept = 0;
    for (std::size_t q = 0; q < queries; ++q) {
        slots.construct->distances(sample.data() + q * stride, sample.data() + queries * stride, int(stride),
                                   count - queries, true_distance.data());
        slots.construct->distances(reduced.data() + q * padded, decoded.data() + queries * padded,
                                   int(padded), count - queries, sketch_distance.data());
        const auto nearest = [&](const std::vector<float>& distance, std::size_t wanted) {
            std::vector<Key> keys;
            for (std::size_t i = 0; i < count - queries; ++i) keys.push_back(make_key(distance[i], Slot(i)));
            wanted = std::min(wanted, keys.size());
            std::partial_sort(keys.begin(), keys.begin() + std::ptrdiff_t(wanted), keys.end());
            keys.resize(wanted);
            std::vector<Slot> found;
            for (const Key key : keys) found.push_back(key_slot(key));
            return found;
        };
        const std::vector<Slot> right = nearest(true_distance, 10), guess = nearest(sketch_distance, 20);
        for (const Slot slot : right) kept += std::find(guess.begin(), guess.end(), slot) != guess.end();
    }
    return double(kept) / (10.0 * double(queries));
}

float longest_norm(const Source& source) {
    std::vector<float> row(static_cast<std::size_t>(source.dimension));
    double longest = 0;
    for (std::size_t i = 0; i < source.count; ++i) {
        source.read(i, row.data());
        double square = 0;
        for (const float x : row) square += double(x) * x;
        longest = std::max(longest, square);
    }
    return float(std::sqrt(longest));
}

// The spread of a scan estimate's error in units of factor * |q - anchor|: measured, since it depends on the
// bits per coordinate and on how much the vectors' directions were evened out by the rotation.
float measure_noise(const Store& store, const float* reduced, Random& random) {
    const Ground ground = store.ground();
    const Shape& shape = store.shape;
    const int padded = ground.padded_reduced(), per = shape.per_nibble(), bits = shape.scan_bits;
    const float top = float((1 << bits) - 1);
    double square = 0;
    std::size_t terms = 0;
    for (int trial = 0; trial < 4000; ++trial) {
        const Slot x = Slot(random.below(store.slots())), q = Slot(random.below(store.slots()));
        if (!(ground.live[x / lanes] >> (x % lanes) & 1) || !(ground.live[q / lanes] >> (q % lanes) & 1))
            continue;
        std::uint32_t list = no_slot;
        for (std::uint32_t l = 0; l + 1 < ground.lists.count; ++l)  // lists are packed in order at this point
            if (ground.first_block[l] != no_slot && ground.first_block[l] <= x / lanes) list = l;
        if (ground.lists.count == 1) list = 0;
        if (list == no_slot) continue;
        const std::uint8_t* block = ground.block_codes + std::size_t(x / lanes) * shape.block_bytes();
        const float* anchor = ground.centres + std::size_t(list) * std::size_t(padded);
        const float* query = reduced + std::size_t(q) * std::size_t(padded);
        const float* vector = reduced + std::size_t(x) * std::size_t(padded);
        double gap = 0, cross = 0, anchor_gap = 0, length = 0;
        for (int i = 0; i < shape.reduced; ++i) {
            const std::uint8_t byte = block[block_head + (i / per) * 16 + int(x % 16)];
            const int nibble = x % lanes < 16 ? byte & 15 : byte >> 4;
            const float level = 2 * float((nibble >> (i % per * bits)) & int(top)) - top;
            const double away = query[i] - anchor[i], r = vector[i] - anchor[i];
            cross += level * away;
            anchor_gap += away * away;
            gap += r * away;
            length += r * level;
        }
        double r_square = 0;
        for (int i = 0; i < shape.reduced; ++i)
            r_square += double(vector[i] - anchor[i]) * (vector[i] - anchor[i]);
        if (length <= 0 || anchor_gap <= 0) continue;
        const double factor = r_square / length;
        const double error = (factor * cross - gap) / (factor * std::sqrt(anchor_gap));
        square += error * error;
        ++terms;
    }
    return terms ? float(std::sqrt(square / double(terms))) : 0.6f;
}

}  // namespace

// What the codes have room for; anything else would write beyond its arrays.
static void check_options(const BuildOptions& options) {
    const auto refuse = [](const char* name, long value, const std::string& possible) {
        throw BadArgument(std::string(name) + "=" + std::to_string(value) + "; choose " + possible);
    };
    if (options.reduced < 0 || options.reduced > max_reduced)
        refuse("reduced", options.reduced, "0 (which chooses by itself) to " + std::to_string(max_reduced));
    const int bits = options.scan_bits;
    if (bits != 0 && bits != 1 && bits != 2 && bits != 4)
        refuse("scan_bits", bits, "0 (which chooses by itself), 1, 2 or 4");
    if (options.candidates < 1) refuse("candidates", options.candidates, "1 or more");
}

Store build_store(const Source& source, const Id* ids, const BuildOptions& options, const Slots& slots,
                  const Progress& progress) {
    check_options(options);
    const auto started = std::chrono::steady_clock::now();
    Store store;
    Shape& shape = store.shape;
    shape.dimension = source.dimension;
    shape.metric = options.metric;
    shape.exact = exact_kind(source.kind, options.metric, options.half);
    store.seed = options.seed;
    Random random(options.seed);
    const std::size_t count = source.count;

    progress("transform", 0);
    const float longest = options.metric == Metric::ip ? longest_norm(source) : 0;
    {
        Transform blank;
        set_codes(shape, one_line, options);
        blank.shape = shape;
        blank.longest = longest;
        const std::size_t stride = std::size_t(blank.padded());
        const std::vector<std::size_t> chosen = random.sample(count, transform_sample);
        std::vector<float> sample(chosen.size() * stride), row(stride);
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            source.read(chosen[i], row.data());
            blank.working(row.data(), false, sample.data() + i * stride);
        }
        const auto learn = [&](int reduced) {
            set_codes(shape, reduced, options);
            store.transform = learn_transform(shape, *slots.construct, sample.data(), chosen.size(), longest,
                                              options.seed, options.threads);
        };
        const int width = shape.working();
        learn(options.reduced ? options.reduced : std::min(width, one_line));
        // A second line of sketch costs a third of the speed; it is taken where the first loses too much.
        if (!options.reduced && width > one_line &&
            sketch_quality(store.transform, slots, sample) < enough_quality)
            learn(two_lines);
    }
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
    const std::size_t stride = std::size_t(store.transform.padded());
    Buffer coordinates;
    coordinates.resize(count * padded * 4);
    const auto reduce_all = [&](const Source& from, float* out, const Report& report) {
        parallel(from.count, options.threads, 1024, report, [&](std::size_t begin, std::size_t end) {
            std::vector<float> row(stride), working(stride);
            for (std::size_t i = begin; i < end; ++i) {
                from.read(i, row.data());
                store.transform.working(row.data(), false, working.data());
                store.transform.reduce(*slots.construct, working.data(), out + i * padded);
            }
        });
    };
    reduce_all(source, coordinates.as<float>(), stage_of(progress, "transform"));

    const std::uint32_t lists = options.lists ? std::uint32_t(std::min<std::size_t>(options.lists, count))
                                              : choose_lists(count, options.compact);
    std::vector<float> centres = k_means(shape, slots, coordinates.as<float>(), count, lists, 6, 40,
                                         options.seed, options.threads, stage_of(progress, "lists"));
    std::vector<std::uint32_t> nearest =
        assign_all(shape, slots, coordinates.as<float>(), count, centres, options.threads);
    std::vector<std::uint32_t> reserved(lists, 0);
    if (const Source& later = options.later; later.count) {
        std::vector<float> others(later.count * padded);
        reduce_all(later, others.data(), {});
        for (const std::uint32_t list :
             assign_all(shape, slots, others.data(), later.count, centres, options.threads))
            ++reserved[list];
    }
    fill_blocks(shape, slots, coordinates.as<float>(), centres, reserved, options.threads, nearest);
    std::vector<std::uint32_t> sizes;
    move_centres(int(padded), coordinates.as<float>(), nearest, options.threads, centres, sizes);

    std::vector<std::uint32_t> first(lists + 1, 0);
    for (std::uint32_t l = 0; l < lists; ++l)
        first[l + 1] = first[l] + (sizes[l] + reserved[l] + lanes - 1) / lanes;
    store.grow_blocks(first[lists]);
    store.centres.resize(centres.size() * 4);
    std::memcpy(store.centres.data(), centres.data(), centres.size() * 4);
    store.first_block.resize(std::size_t(lists) * 4);
    std::vector<std::uint32_t> slot_of(count);
    {
        std::vector<std::uint32_t> filled(lists, 0);
        for (std::size_t i = 0; i < count; ++i) slot_of[i] = first[nearest[i]] * lanes + filled[nearest[i]]++;
    }
    for (std::uint32_t l = 0; l < lists; ++l) {
        store.first_block.as<std::uint32_t>()[l] = first[l] < first[l + 1] ? first[l] : no_slot;
        for (std::uint32_t b = first[l]; b + 1 < first[l + 1]; ++b)
            store.next_block.as<std::uint32_t>()[b] = b + 1;
    }
    std::vector<std::uint32_t> from(store.slots(), no_slot);
    for (std::size_t i = 0; i < count; ++i) from[slot_of[i]] = std::uint32_t(i);
    Buffer by_slot;  // coordinates in slot order, for the graph and the measurements
    by_slot.resize(std::size_t(store.slots()) * padded * 4);
    const Report coding = stage_of(progress, "codes");
    parallel(store.blocks, options.threads, 16, coding, [&](std::size_t begin, std::size_t end) {
        std::vector<float> row(stride), working(stride);
        for (std::size_t b = begin; b < end; ++b)
            for (int lane = 0; lane < lanes; ++lane) {
                const std::size_t slot = b * lanes + std::size_t(lane);
                const std::uint32_t i = from[slot];
                if (i == no_slot) continue;
                const float* x = coordinates.as<float>() + std::size_t(i) * padded;
                std::memcpy(by_slot.as<float>() + slot * padded, x, padded * 4);
                slots.search->encode_lane(&shape, x,
                                          store.centres.as<float>() + std::size_t(nearest[i]) * padded,
                                          store.block_codes.data() + b * shape.block_bytes(), lane);
                slots.search->encode_sketch(&shape, x, store.sketches.data() + slot * shape.sketch_bytes());
                source.read(i, row.data());
                store.transform.working(row.data(), false, working.data());
                write_exact(shape, working.data(), store.exact.data() + slot * shape.exact_bytes());
                store.ids.as<Id>()[slot] = ids ? ids[i] : Id(i);
                store.live.as<std::uint32_t>()[b] |= 1u << lane;
            }
    });
    store.count = count;
    for (std::size_t i = 0; i < count; ++i) store.highest = std::max(store.highest, ids ? ids[i] : Id(i));
    coordinates = Buffer();

    // Under cosine a list is ranked by its centre's direction: members' norms are all one, the centre's is
    // not.
    std::vector<float> ranked = centres;
    if (options.metric == Metric::cosine) {
        const float* mean = store.transform.centre.as<float>();
        for (std::uint32_t l = 0; l < lists; ++l) {
            float* point = ranked.data() + std::size_t(l) * padded;
            double square = 0;
            for (int t = 0; t < shape.reduced; ++t)
                square += double(point[t] + mean[t]) * (point[t] + mean[t]);
            const float norm = float(std::sqrt(square)) * store.transform.unit;
            if (norm > 0)
                for (int t = 0; t < shape.reduced; ++t) point[t] = (point[t] + mean[t]) / norm - mean[t];
        }
    }
    store.lists.set(shape, *slots.search, ranked);
    for (std::uint32_t l = 0; l < lists; ++l)
        if (!sizes[l]) store.lists.constant.as<float>()[l] = 1e30f;
    store.noise = measure_noise(store, by_slot.as<float>(), random);

    if (options.graph) build_graph(store, by_slot.as<float>(), options, slots, progress);
    store.build_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    progress("done", 1);
    return store;
}

std::size_t estimate_peak(const Source& source, const BuildOptions& options) {
    Shape shape;
    shape.dimension = source.dimension;
    shape.metric = options.metric;
    shape.exact = exact_kind(source.kind, options.metric, options.half);
    set_codes(shape, options.reduced ? options.reduced : two_lines, options);
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
    const std::size_t slots = source.count + source.count / 8 + lanes;
    const std::size_t stored = shape.block_bytes() / lanes + shape.sketch_bytes() + shape.exact_bytes() + 16 +
                               (options.graph ? shape.graph_row_bytes() + 2 * 4 * lanes : 0);
    // Coordinates are held twice for a moment, in the order given and in the order of slots.
    return slots * (stored + 2 * padded * 4);
}

}  // namespace outpace::ann
