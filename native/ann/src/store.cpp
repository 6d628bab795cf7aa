#include "store.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include "half.hpp"

namespace outpace::ann {

void Ranked::set(const Shape& shape, const SearchTable& search, const std::vector<float>& points) {
    const std::size_t padded = std::size_t(round_up(shape.reduced, 16));
    count = std::uint32_t(points.size() / padded);
    const std::size_t groups = (count + 15) / 16;
    codes.resize(0);
    codes.resize(groups * std::size_t(shape.quads()) * 64);
    scale.resize(0);
    scale.resize(groups * 64);
    constant.resize(0);
    constant.resize(groups * 64);
    for (std::uint32_t i = 0; i < groups * 16; ++i) {
        if (i >= count) {
            constant.as<float>()[i] = 1e30f;  // never the nearest
            continue;
        }
        const float* point = points.data() + i * padded;
        search.encode_ranked(&shape, point, i, codes.data(), scale.as<float>() + i);
        float square = 0;
        for (int t = 0; t < shape.reduced; ++t) square += point[t] * point[t];
        constant.as<float>()[i] = square;
    }
}

Ground Store::ground() const {
    Ground g;
    g.shape = shape;
    g.projection = {transform.matrix.as<std::int16_t>(), transform.row_scale.as<float>(),
                    transform.centre.as<float>(), transform.padded()};
    g.noise = noise;
    g.blocks = blocks;
    g.block_codes = block_codes.data();
    g.next_block = next_block.as<std::uint32_t>();
    g.live = live.as<std::uint32_t>();
    g.sketches = sketches.data();
    g.exact = exact.data();
    const float square = 1 / (transform.unit * transform.unit);
    g.exact_scale = shape.metric == Metric::l2 ? square : 2 * square;
    g.longest = transform.longest;
    g.ids = ids.as<Id>();
    g.lists = lists.view();
    g.centres = centres.as<float>();
    g.first_block = first_block.as<std::uint32_t>();
    g.rows = has_graph() ? rows.data() : nullptr;
    g.entries = entries.view();
    g.entry_slots = entry_slots.as<Slot>();
    return g;
}

void Store::grow_blocks(std::uint32_t more) {
    const std::size_t before = blocks, after = before + more, slots_after = after * lanes;
    const std::pair<Buffer*, std::size_t> sizes[] = {
        {&block_codes, after * shape.block_bytes()},
        {&next_block, after * 4},
        {&live, after * 4},
        {&dead, after * 4},
        {&sketches, slots_after * shape.sketch_bytes()},
        {&exact, slots_after * shape.exact_bytes()},
        {&ids, slots_after * sizeof(Id)},
        {&rows, has_graph() ? slots_after * shape.graph_row_bytes() : 0},
    };
    // Room for all first: where memory ends, none has grown, and the index is as it was.
    for (const auto& [buffer, size] : sizes) buffer->make_room(size);
    for (const auto& [buffer, size] : sizes) buffer->resize(size);
    for (std::size_t b = before; b < after; ++b) {
        next_block.as<std::uint32_t>()[b] = no_slot;
        std::uint16_t* constants =
            reinterpret_cast<std::uint16_t*>(block_codes.data() + b * shape.block_bytes() + 64);
        for (int lane = 0; lane < lanes; ++lane) constants[lane] = 0x7c00;  // infinite: no vector here
    }
    blocks = std::uint32_t(after);
}

void Source::read(std::size_t row, float* out) const {
    const std::size_t at = row * std::size_t(dimension);
    switch (kind) {
        case Scalar::f32:
            std::memcpy(out, static_cast<const float*>(data) + at, std::size_t(dimension) * 4);
            break;
        case Scalar::f16:
            for (int i = 0; i < dimension; ++i)
                out[i] = from_half(static_cast<const std::uint16_t*>(data)[at + std::size_t(i)]);
            break;
        case Scalar::i8:
            for (int i = 0; i < dimension; ++i)
                out[i] = static_cast<const std::int8_t*>(data)[at + std::size_t(i)];
            break;
        case Scalar::u8:
            for (int i = 0; i < dimension; ++i)
                out[i] = static_cast<const std::uint8_t*>(data)[at + std::size_t(i)];
            break;
    }
}

Scalar exact_kind(Scalar input, Metric metric, bool half) {
    if (metric == Metric::l2 && (input == Scalar::i8 || input == Scalar::u8)) return input;
    // Bytes are whole numbers below 2048, which half precision holds without loss, unless they are
    // normalised.
    return half || input != Scalar::f32 ? Scalar::f16 : Scalar::f32;
}

void write_exact(const Shape& shape, const float* working, std::uint8_t* row) {
    const int dimension = shape.dimension;
    std::memset(row, 0, shape.exact_bytes());
    switch (shape.exact) {
        case Scalar::f32:
            std::memcpy(row, working, std::size_t(dimension) * 4);
            break;
        case Scalar::f16:
            for (int i = 0; i < dimension; ++i)
                reinterpret_cast<std::uint16_t*>(row)[i] = to_half(working[i]);
            break;
        case Scalar::i8:  // moved by 128, which leaves distances as they are
            for (int i = 0; i < dimension; ++i) row[i] = std::uint8_t(int(working[i]) + 128);
            break;
        case Scalar::u8:
            for (int i = 0; i < dimension; ++i) row[i] = std::uint8_t(working[i]);
            break;
    }
}

void read_exact(const Shape& shape, const std::uint8_t* row, float* out) {
    for (int i = 0; i < shape.dimension; ++i) switch (shape.exact) {
            case Scalar::f32:
                std::memcpy(out + i, row + 4 * i, 4);
                break;
            case Scalar::f16:
                out[i] = from_half(reinterpret_cast<const std::uint16_t*>(row)[i]);
                break;
            case Scalar::i8:
                out[i] = float(int(row[i]) - 128);
                break;
            case Scalar::u8:
                out[i] = row[i];
                break;
        }
}

Buffer Store::widened(Scalar kind) const {
    Shape wide = shape;
    wide.exact = kind;
    Buffer rows;
    rows.resize(std::size_t(slots()) * wide.exact_bytes());
    std::vector<float> vector(static_cast<std::size_t>(shape.dimension));
    for (Slot s = 0; s < slots(); ++s) {
        read_exact(shape, exact.data() + s * shape.exact_bytes(), vector.data());
        write_exact(wide, vector.data(), rows.data() + s * wide.exact_bytes());
    }
    return rows;
}

}  // namespace outpace::ann
