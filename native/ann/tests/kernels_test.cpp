// Kernels test: one instruction set (OUTPACE_TESTED) against the scalar kernels, on random and on extreme
// inputs.
//
// Integers must be equal. Floats may differ by `tolerance` of the magnitude that was added up. Where a
// kernel's integers end in a float, its scales are chosen so that the float holds them exactly, and then it
// must be equal too.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "../src/random.hpp"
#include "check.hpp"
#include "exact_buffer.hpp"
#include "kernel_set.hpp"

OUTPACE_DECLARE_KERNEL_SET(scalar)
OUTPACE_DECLARE_KERNEL_SET(OUTPACE_TESTED)

namespace outpace::ann::tests {
namespace {

constexpr double tolerance = 1e-5;

const KernelSet& truth = scalar::kernel_set();
const KernelSet& tested = OUTPACE_TESTED::kernel_set();

bool near(float a, float b, double magnitude) {
    return std::fabs(double(a) - double(b)) <= tolerance * magnitude;
}

float between(Random& random, float low, float high) {
    return low + (high - low) * float(random.uniform());
}

std::uint8_t any_byte(Random& random) {
    return std::uint8_t(random.next());
}

// How the bytes of an input are chosen: at random, or so that sums are as large as they can be, of either
// sign.
enum class Fill { random, highest, lowest };
constexpr Fill fills[] = {Fill::random, Fill::highest, Fill::lowest};

// Halves

float half_value(std::uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double magnitude = exponent == 31 ? (fraction ? std::numeric_limits<double>::quiet_NaN() : INFINITY)
                             : exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(1024 + fraction, exponent - 25);
    return float(std::copysign(magnitude, half & 0x8000 ? -1.0 : 1.0));
}

void halves_become_floats_exactly(const KernelSet& set) {
    for (std::uint32_t half = 0; half < 65536; ++half) {
        const float expected = half_value(std::uint16_t(half)), got = set.half_to_float(std::uint16_t(half));
        const bool equal = std::isnan(expected)
                               ? std::isnan(got) && std::signbit(got) == bool(half & 0x8000)
                               : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected);
        CHECK(equal, "half %#x became %g, not %g", half, double(got), double(expected));
    }
}

void floats_become_the_nearest_half(const KernelSet& set) {
    const auto expect = [&set](float value, std::uint16_t magnitude) {
        CHECK(set.float_to_half(value) == magnitude, "%a became %#x, not %#x", double(value),
              set.float_to_half(value), magnitude);
        CHECK(set.float_to_half(-value) == (magnitude | 0x8000), "%a became %#x, not %#x", double(-value),
              set.float_to_half(-value), magnitude | 0x8000);
    };
    for (std::uint16_t half = 0; half < 0x7c00; ++half) {
        const float here = half_value(half);
        // Beyond the largest half, ties are against the number that would come next: 65536.
        const float next = half == 0x7bff ? 65536.0f : half_value(std::uint16_t(half + 1));
        const float middle = (here + next) / 2;
        const std::uint16_t even = half & 1 ? std::uint16_t(half + 1) : half;
        expect(here, half);
        expect(std::nextafter(here, INFINITY), half);
        expect(std::nextafter(middle, 0.0f), half);
        expect(middle, even);
        expect(std::nextafter(middle, INFINITY), std::uint16_t(half + 1));
        expect(std::nextafter(next, 0.0f), std::uint16_t(half + 1));
    }
    for (const float large : {65536.0f, 65537.0f, 1e6f, 3e38f, std::numeric_limits<float>::max(), INFINITY})
        expect(large, 0x7c00);
    for (const float tiny :
         {0.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(), 1e-9f})
        expect(tiny, 0);
    const std::uint16_t none = set.float_to_half(std::numeric_limits<float>::quiet_NaN());
    CHECK((none & 0x7fff) > 0x7c00, "not-a-number became %#x", none);
}

// The conversions inside the kernels, which may be the processor's: every finite half through a dot product
// with one.
void halves_in_rows_are_exact(Placement placement) {
    ExactBuffer<float> query(32, placement);
    ExactBuffer<std::uint16_t> row(32, placement);
    for (std::size_t i = 0; i < 32; ++i) query[i] = 0, row[i] = 0;
    for (std::uint32_t half = 0; half < 65536; ++half) {
        if ((half & 0x7c00) == 0x7c00) continue;
        const std::size_t at = half % 32;
        query[at] = 1;
        row[at] = std::uint16_t(half);
        const float got = tested.dot_half(query.data(), row.data(), 32);
        CHECK(got == half_value(std::uint16_t(half)), "half %#x was read as %g", half, double(got));
        query[at] = 0;
        row[at] = 0;
    }
}

// Exact rows

void rows_agree(int padded, Random& random, Placement placement) {
    const std::size_t count = std::size_t(padded);
    ExactBuffer<float> a(count, placement), b(count, placement);
    ExactBuffer<std::uint16_t> row(count, placement);
    double l2 = 0, dot = 0, half_l2 = 0, half_dot = 0;
    for (std::size_t i = 0; i < count; ++i) {
        a[i] = float(random.normal());
        b[i] = float(random.normal());
        row[i] = truth.float_to_half(b[i]);
        const double x = a[i], y = b[i], z = truth.half_to_float(row[i]);
        l2 += (x - y) * (x - y);
        dot += std::fabs(x * y);
        half_l2 += (x - z) * (x - z);
        half_dot += std::fabs(x * z);
    }
    const auto agree = [&](const char* name, float got, float expected, double magnitude) {
        CHECK(near(got, expected, magnitude), "%s of %d: %.9g, not %.9g", name, padded, double(got),
              double(expected));
    };
    agree("l2_float", tested.l2_float(a.data(), b.data(), padded), truth.l2_float(a.data(), b.data(), padded),
          l2);
    agree("dot_float", tested.dot_float(a.data(), b.data(), padded),
          truth.dot_float(a.data(), b.data(), padded), dot);
    if (padded % 16) return;
    agree("l2_half", tested.l2_half(a.data(), row.data(), padded),
          truth.l2_half(a.data(), row.data(), padded), half_l2);
    agree("dot_half", tested.dot_half(a.data(), row.data(), padded),
          truth.dot_half(a.data(), row.data(), padded), half_dot);
    if (padded % 64) return;
    ExactBuffer<std::uint8_t> query_bytes(count, placement), row_bytes(count, placement);
    for (const Fill fill : fills) {
        for (std::size_t i = 0; i < count; ++i) {
            query_bytes[i] = fill == Fill::random ? any_byte(random) : fill == Fill::highest ? 255 : 0;
            row_bytes[i] = fill == Fill::random ? any_byte(random) : fill == Fill::highest ? 0 : 255;
        }
        const std::int32_t got = tested.l2_bytes(query_bytes.data(), row_bytes.data(), padded);
        const std::int32_t expected = truth.l2_bytes(query_bytes.data(), row_bytes.data(), padded);
        CHECK(got == expected, "l2_bytes of %d: %d, not %d", padded, got, expected);
    }
}

// Rows and query as transforms make them: of norm 32000, or nearly.
void fill_fixed(std::int16_t* out, int padded, Fill fill, Random& random) {
    std::vector<double> x(static_cast<std::size_t>(padded));
    double square = 0;
    for (double& value : x) {
        value = fill == Fill::random ? random.normal() : fill == Fill::highest ? 1 : -1;
        square += value * value;
    }
    for (std::size_t i = 0; i < x.size(); ++i)
        out[i] = std::int16_t(std::lrint(x[i] * 32000 / std::sqrt(square)));
}

void projections_are_equal(int rows, int padded, Random& random, Placement placement) {
    ExactBuffer<std::int16_t> matrix(std::size_t(rows) * std::size_t(padded), placement);
    ExactBuffer<std::int16_t> query(std::size_t(padded), placement);
    ExactBuffer<std::int32_t> got(std::size_t(rows), placement), expected(std::size_t(rows), placement);
    const auto compare = [&] {
        tested.project(matrix.data(), rows, padded, query.data(), got.data());
        truth.project(matrix.data(), rows, padded, query.data(), expected.data());
        for (std::size_t i = 0; i < expected.size(); ++i)
            CHECK(got[i] == expected[i], "project of %d rows of %d: row %zu is %d, not %d", rows, padded, i,
                  got[i], expected[i]);
    };
    for (const Fill fill : fills) {
        for (int i = 0; i < rows; ++i)
            fill_fixed(matrix.data() + std::size_t(i) * std::size_t(padded), padded, fill, random);
        fill_fixed(query.data(), padded, fill, random);
        compare();
    }
    // All the length in one coordinate, a different one in each row.
    std::fill_n(matrix.data(), matrix.size(), std::int16_t(0));
    std::fill_n(query.data(), query.size(), std::int16_t(0));
    query[query.size() - 1] = -32000;
    for (int i = 0; i < rows; ++i)
        matrix[std::size_t((i + 1) * padded - 1 - i % 2)] = std::int16_t(i % 3 ? 32000 : -32000);
    compare();
}

// Scans

void scans_agree(int chunks, Fill fill, Random& random, Placement placement) {
    const std::size_t code_bytes = std::size_t(chunks) * line;
    ExactBuffer<std::uint8_t> block(block_head + code_bytes, placement), table(code_bytes, placement);
    ExactBuffer<std::int32_t> got(lanes, placement), expected(lanes, placement);
    const std::size_t top = 255 / std::size_t(chunks), peak = random.below(std::size_t(chunks));
    for (std::size_t i = 0; i < code_bytes; ++i) {
        // Sums over the chunks must stay within eight bits: equal shares, or one chunk takes all of it.
        block[block_head + i] = fill == Fill::highest ? 255 : any_byte(random);
        table[i] = fill == Fill::random    ? std::uint8_t(random.below(top + 1))
                   : fill == Fill::highest ? std::uint8_t(top)
                   : i / line == peak      ? 255
                                           : 0;
    }
    const auto set_lane = [&](std::size_t lane, float factor, float constant) {
        const std::uint16_t halves[2] = {truth.float_to_half(factor), truth.float_to_half(constant)};
        std::memcpy(block.data() + 2 * lane, &halves[0], 2);
        std::memcpy(block.data() + 64 + 2 * lane, &halves[1], 2);
    };
    const auto scan = [&](const KernelSet& set, float step, float offset, float limit) {
        return set.scan_block(block.data(), table.data(), chunks, step, offset, limit);
    };
    tested.scan_sums(block.data(), table.data(), chunks, got.data());
    truth.scan_sums(block.data(), table.data(), chunks, expected.data());
    for (std::size_t v = 0; v < lanes; ++v)
        CHECK(got[v] == expected[v], "sum %zu of %d chunks: %d, not %d", v, chunks, got[v], expected[v]);

    // Small whole numbers, which floats hold exactly: masks are equal even where an estimate meets the limit.
    // A lane of infinite constant is empty.
    for (std::size_t v = 0; v < lanes; ++v)
        set_lane(v, float(random.below(5)) - 2,
                 random.below(8) ? float(random.below(4096)) - 2048 : INFINITY);
    const float offset = -float(random.below(1000));
    const std::size_t chosen = random.below(lanes);
    const float factor = truth.half_to_float(std::uint16_t(block[2 * chosen] | block[2 * chosen + 1] << 8));
    const float constant =
        truth.half_to_float(std::uint16_t(block[64 + 2 * chosen] | block[65 + 2 * chosen] << 8));
    const float met = constant + factor * (float(expected[chosen]) + offset);
    for (const float limit : {met, 0.0f, 6.5e4f, -6.5e4f}) {
        const std::uint32_t mask = scan(tested, 1, offset, limit), right = scan(truth, 1, offset, limit);
        CHECK(mask == right, "mask of %d chunks at %g: %#x, not %#x", chunks, double(limit), mask, right);
    }

    for (std::size_t v = 0; v < lanes; ++v) set_lane(v, between(random, -1, 0), between(random, -2, 4));
    const float step = between(random, 0.001f, 0.1f), start = between(random, -20, 0),
                limit = between(random, -4, 8);
    const std::uint32_t mask = scan(tested, step, start, limit), right = scan(truth, step, start, limit);
    for (std::size_t v = 0; v < lanes; ++v) {
        std::uint16_t halves[2];
        std::memcpy(&halves[0], block.data() + 2 * v, 2);
        std::memcpy(&halves[1], block.data() + 64 + 2 * v, 2);
        const double scale = half_value(halves[0]), shift = half_value(halves[1]),
                     sum = double(expected[v]) * step;
        const double magnitude =
            std::fabs(shift) + std::fabs(scale) * (sum + std::fabs(start)) + std::fabs(limit);
        if (std::fabs(shift + scale * (sum + start) - limit) <= tolerance * magnitude) continue;
        CHECK((mask >> v & 1) == (right >> v & 1), "lane %zu of %d chunks passes %u, not %u", v, chunks,
              mask >> v & 1, right >> v & 1);
    }
}

// Sketches and lists

// A query as make_bytes leaves it, but of chosen bytes. What it does not promise to clear stays dirty.
void fill_query(const Shape& shape, Fill fill, Random& random, QueryCodes& query) {
    const std::size_t reduced = std::size_t(shape.reduced), half = std::size_t(shape.half());
    std::memset(query.bytes, 0, std::size_t(round_up(shape.reduced, 16) + line));
    std::memset(query.low, 0, shape.sketch_bytes());
    std::memset(query.high, 0, shape.sketch_bytes());
    query.byte_sum = 0;
    for (std::size_t i = 0; i < reduced; ++i) {
        query.bytes[i] = std::int8_t(fill == Fill::random    ? int(random.below(255)) - 127
                                     : fill == Fill::highest ? 127
                                                             : -127);
        query.byte_sum += query.bytes[i];
    }
    std::memcpy(query.low, query.bytes, half);
    std::memcpy(query.high, query.bytes + half, reduced - half);
}

// What the terms of such a distance can add up to.
double byte_magnitude(const Shape& shape, float step, float scale, float constant) {
    return 127.0 * 255 * shape.reduced * step * scale + constant;
}

void sketches_agree(const Shape& shape, int count, Fill fill, Random& random, Placement placement) {
    const std::size_t bytes = shape.sketch_bytes(), stored = 1 + random.below(40);
    ExactBuffer<std::uint8_t> sketches(stored * bytes, placement);
    ExactBuffer<Slot> slots(std::size_t(count), placement);
    ExactBuffer<QueryCodes> query(1, placement);
    ExactBuffer<float> got(slots.size(), placement), expected(slots.size(), placement);
    fill_query(shape, fill, random, query[0]);
    for (std::size_t i = 0; i < sketches.size(); ++i)
        sketches[i] = fill == Fill::random ? any_byte(random) : 255;
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = Slot(random.below(stored));
    slots[random.below(slots.size())] = Slot(stored - 1);
    const auto set_tail = [&](std::size_t slot, float scale, float norm) {
        std::memcpy(sketches.data() + (slot + 1) * bytes - 8, &scale, 4);
        std::memcpy(sketches.data() + (slot + 1) * bytes - 4, &norm, 4);
    };
    const auto compute = [&] {
        tested.sketch_distances(shape, sketches.data(), slots.data(), count, query[0], got.data());
        truth.sketch_distances(shape, sketches.data(), slots.data(), count, query[0], expected.data());
    };
    // With unit steps, scales of +-1 and no norms, distances are multiples of one half below 2^23: floats
    // hold them. Negative ones are cut to zero, hence both signs of scale.
    query[0].byte_step = 1;
    query[0].norm = 0;
    for (const float sign : {1.0f, -1.0f}) {
        for (std::size_t slot = 0; slot < stored; ++slot) set_tail(slot, slot % 2 ? sign : -sign, 0);
        compute();
        for (std::size_t i = 0; i < slots.size(); ++i)
            CHECK(got[i] == expected[i], "sketch %zu of %d (reduced %d, %d bits): %.9g, not %.9g", i, count,
                  shape.reduced, shape.sketch_bits, double(got[i]), double(expected[i]));
    }
    query[0].byte_step = between(random, 1e-4f, 1e-2f);
    query[0].norm = between(random, 0, 4);
    for (std::size_t slot = 0; slot < stored; ++slot)
        set_tail(slot, between(random, -1e-2f, -1e-4f), between(random, 0, 4));
    compute();
    for (std::size_t i = 0; i < slots.size(); ++i)
        CHECK(near(got[i], expected[i], byte_magnitude(shape, query[0].byte_step, 1e-2f, 8)),
              "sketch %zu of %d (reduced %d, %d bits): %.9g, not about %.9g", i, count, shape.reduced,
              shape.sketch_bits, double(got[i]), double(expected[i]));
}

void rankings_agree(const Shape& shape, int groups, Fill fill, Random& random, Placement placement) {
    const std::size_t points = std::size_t(groups) * 16;
    ExactBuffer<std::uint8_t> codes(std::size_t(groups) * std::size_t(shape.quads()) * 64, placement);
    ExactBuffer<float> scale(points, placement), constant(points, placement);
    ExactBuffer<float> got(points, placement), expected(points, placement);
    ExactBuffer<QueryCodes> query(1, placement);
    fill_query(shape, fill, random, query[0]);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = fill == Fill::random ? any_byte(random) : 255;
    const auto compute = [&] {
        tested.rank_lists(codes.data(), scale.data(), constant.data(), groups, shape.quads(), query[0],
                          got.data());
        truth.rank_lists(codes.data(), scale.data(), constant.data(), groups, shape.quads(), query[0],
                         expected.data());
    };
    // Held exactly, as with sketches.
    query[0].byte_step = 1;
    for (std::size_t i = 0; i < points; ++i) scale[i] = i % 2 ? 1 : -2, constant[i] = 0;
    compute();
    for (std::size_t i = 0; i < points; ++i)
        CHECK(got[i] == expected[i], "list %zu of %zu (reduced %d): %.9g, not %.9g", i, points, shape.reduced,
              double(got[i]), double(expected[i]));
    query[0].byte_step = between(random, 1e-4f, 1e-2f);
    for (std::size_t i = 0; i < points; ++i) {
        scale[i] = between(random, -1e-2f, -1e-4f);
        constant[i] = between(random, 0, 4);
    }
    compute();
    for (std::size_t i = 0; i < points; ++i)
        CHECK(near(got[i], expected[i], byte_magnitude(shape, query[0].byte_step, 1e-2f, 4)),
              "list %zu of %zu (reduced %d): %.9g, not about %.9g", i, points, shape.reduced, double(got[i]),
              double(expected[i]));
}

// Queries

// What the kernels count on, whichever set prepared the query; two sets may round a tie differently, by one
// unit.
void queries_are_prepared(const Shape& shape, Fill fill, Random& random, Placement placement) {
    ExactBuffer<QueryCodes> both(2, placement);
    for (QueryCodes* query : {&both[0], &both[1]}) {
        const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
        std::memset(query->reduced, 0, padded * 4);
        for (std::size_t i = 0; i < std::size_t(shape.reduced); ++i)
            query->reduced[i] = query == &both[1]      ? both[0].reduced[i]
                                : fill == Fill::random ? float(random.normal())
                                : fill == Fill::lowest ? 0
                                                       : 1e3f;
        const KernelSet& set = query == both.data() ? truth : tested;
        set.make_tables(shape, *query);
        set.make_bytes(shape, *query);
        for (int group = 0; group < 4; ++group) {
            int most = 0;
            for (int i = 0; i < shape.chunks(); ++i) {
                const std::uint8_t* entries = query->table + i * line + group * 16;
                most += *std::max_element(entries, entries + 16);
            }
            CHECK(most <= 255, "tables of %d coordinates in %d bits add up to %d", shape.reduced,
                  shape.scan_bits, most);
        }
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < padded + line; ++i) {
            CHECK(query->bytes[i] != -128 && (i < std::size_t(shape.reduced) || query->bytes[i] == 0),
                  "byte %zu of %d is %d", i, shape.reduced, query->bytes[i]);
            sum += query->bytes[i];
        }
        CHECK(sum == query->byte_sum, "bytes add up to %d, not %d", sum, query->byte_sum);
        const std::size_t half = std::size_t(shape.half()), reduced = std::size_t(shape.reduced);
        for (std::size_t i = 0; i < shape.sketch_bytes(); ++i) {
            const int low = i < half ? query->bytes[i] : 0,
                      high = i + half < reduced ? query->bytes[i + half] : 0;
            CHECK(query->low[i] == low && query->high[i] == high, "halves of %d at %zu: %d, %d, not %d, %d",
                  shape.reduced, i, query->low[i], query->high[i], low, high);
        }
    }
    const QueryCodes &right = both[0], &got = both[1];
    double square = 0;
    for (int i = 0; i < shape.reduced; ++i) square += double(right.reduced[i]) * right.reduced[i];
    CHECK(near(got.norm, right.norm, square), "norm of %d is %g, not %g", shape.reduced, double(got.norm),
          double(right.norm));
    CHECK(near(got.table_step, right.table_step, right.table_step) &&
              near(got.byte_step, right.byte_step, right.byte_step) &&
              near(got.table_base, right.table_base, -right.table_base),
          "steps of %d: %g, %g from %g, not %g, %g from %g", shape.reduced, double(got.table_step),
          double(got.byte_step), double(got.table_base), double(right.table_step), double(right.byte_step),
          double(right.table_base));
    int tables = 0, bytes = 0;
    for (int i = 0; i < shape.chunks() * line; ++i)
        tables = std::max(tables, std::abs(got.table[i] - right.table[i]));
    for (int i = 0; i < shape.reduced; ++i) bytes = std::max(bytes, std::abs(got.bytes[i] - right.bytes[i]));
    CHECK(tables <= 1 && bytes <= 1, "tables of %d differ by %d, bytes by %d", shape.reduced, tables, bytes);
}

void all_agree(Placement placement) {
    Random random(placement == Placement::heap ? 1 : 2);
    halves_in_rows_are_exact(placement);
    for (int padded = 16; padded <= 1024; padded += 16) rows_agree(padded, random, placement);
    rows_agree(max_dimension, random, placement);
    for (int rows = 1; rows <= 9; ++rows)
        for (const int padded : {32, 64, 96, 800, max_dimension + 32})
            projections_are_equal(rows, padded, random, placement);
    projections_are_equal(max_reduced, 128, random, placement);
    for (int chunks = 1; chunks <= max_chunks; ++chunks)
        for (const Fill fill : fills) scans_agree(chunks, fill, random, placement);
    for (const int sketch_bits : {4, 8})
        for (int reduced = 1; reduced <= max_reduced; ++reduced) {
            Shape shape{.dimension = reduced, .reduced = reduced, .sketch_bits = sketch_bits};
            for (const Fill fill : fills) {
                sketches_agree(shape, 1 + int(random.below(70)), fill, random, placement);
                if (sketch_bits == 8)
                    rankings_agree(shape, 1 + int(random.below(5)), fill, random, placement);
                for (const int scan_bits : {1, 2, 4}) {
                    shape.scan_bits = scan_bits;
                    queries_are_prepared(shape, fill, random, placement);
                }
            }
        }
    for (const int reduced : {1, 112, 240, 241, max_reduced})
        for (const int sketch_bits : {4, 8})
            for (int count = 1; count <= 70; ++count)
                sketches_agree({.dimension = reduced, .reduced = reduced, .sketch_bits = sketch_bits}, count,
                               Fill::random, random, placement);
}

}  // namespace
}  // namespace outpace::ann::tests

int main() {
    using namespace outpace::ann::tests;
    for (const auto* set : {&truth, &tested}) {
        halves_become_floats_exactly(*set);
        floats_become_the_nearest_half(*set);
    }
    all_agree(Placement::heap);
    all_agree(Placement::guarded);
    return verdict();
}
