// File fuzz: damaged index files must be refused, or load as an index that can be searched and changed.
//
//     file_fuzz COUNT [FIRST]     inputs FIRST .. FIRST + COUNT - 1; prints what became of them, as JSON
//
// Input number i is made from i alone, so that `file_fuzz 1 i` repeats it. What goes wrong ends the program:
// by a sanitizer, by an exception of the wrong kind, or by an alarm where an input does not come to an end.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>

#include "../src/errors.hpp"
#include "../src/file.hpp"
#include "../src/index.hpp"
#include "image.hpp"
#include "samples.hpp"

// Both sanitizers abort, so that one handler can name the input.
extern "C" const char* __asan_default_options() {
    return "abort_on_error=1";
}
extern "C" const char* __ubsan_default_options() {
    return "abort_on_error=1:print_stacktrace=1";
}

namespace outpace::ann::tests {
namespace {

using namespace file_layout;

constexpr unsigned patience = 120;  // seconds for one input, which takes a few milliseconds

std::uint64_t input_number = 0;  // for the last words

void last_words() {
    std::fprintf(stderr, "input %llu: file_fuzz 1 %llu repeats it\n",
                 static_cast<unsigned long long>(input_number),
                 static_cast<unsigned long long>(input_number));
}

void on_signal(int signal) {
    if (signal == SIGALRM) std::fprintf(stderr, "it did not come to an end\n");
    last_words();
    _exit(1);
}

[[noreturn]] void broken(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    last_words();
    std::exit(1);
}

// ---- the files to damage

Bytes sample_image(const SampleShape& shape, std::size_t removed, std::size_t added, bool calibrated,
                   std::uint64_t seed) {
    Index index(sample_store(shape, seed), linked_slots(), "linked");
    Random random(seed + 1);
    if (removed) {
        std::vector<Id> going;
        for (const std::size_t i : random.sample(shape.count, removed)) going.push_back(Id(i));
        index.remove(going.data(), going.size(), 1);
    }
    if (added) {
        Rows rows = random_rows(shape.kind, added, shape.dimension, random);
        if (shape.kind == Scalar::f32 && shape.metric == Metric::ip)  // longer than any so far
            for (std::size_t at = 0; at < rows.bytes.size(); at += 4)
                reinterpret_cast<float*>(rows.bytes.data())[at / 4] *= 10;
        std::vector<Id> ids(added);
        std::iota(ids.begin(), ids.end(), Id(1000));
        index.add(rows.source, ids.data(), 1);
    }
    Calibration calibration;
    if (calibrated) {
        calibration.queries = 100;
        calibration.changed = seed;
        calibration.real.assign(3 * std::size_t(shape.dimension), float(seed));
        for (int i = 1; i <= 4; ++i)
            for (const Engine engine : {Engine::partitions, Engine::graph})
                calibration.points.push_back({{engine, 4 * i, 5 * i, 1.0f},
                                              i < 3 ? 1.0f : 0.1f,
                                              0.9f + 0.02f * float(i),
                                              0.88f + 0.02f * float(i),
                                              1e4f * float(i),
                                              1e-5f * float(i)});
        calibration.prepare();
    }
    return save_bytes(index.store(), calibration);
}

std::vector<Bytes> sample_images() {
    using enum Scalar;
    using enum Metric;
    return {
        sample_image({3, f32, l2, true, 90, 3}, 0, 0, true, 1),
        sample_image({3, u8, l2, false, 150, 4}, 20, 3, true, 2),
        sample_image({33, f16, cosine, true, 120, 4}, 9, 5, true, 3),
        sample_image({33, f32, ip, false, 100, 20}, 0, 6, false, 4),
        sample_image({33, u8, l2, true, 140, 3, false, 4, 20}, 15, 0, false, 5),
        sample_image({130, f32, l2, true, 100, 2, true}, 3, 0, true, 6),
        sample_image({130, f32, ip, false, 60, 17, false, 1}, 60, 0, true, 7),
        sample_image({130, u8, l2, true, 80, 5}, 80, 2, true, 8),
        sample_image({26, f32, l2, false, 130, 4, true, 0, 0, true}, 10, 4, true, 9),
        sample_image({26, f16, ip, false, 90, 3, true, 0, 0, true}, 0, 2, true, 10),
    };
}

// ---- the damage

template <class T>
void put(Bytes& image, std::size_t at, T value) {
    if (image.size() >= sizeof value && at <= image.size() - sizeof value)
        std::memcpy(image.data() + at, &value, sizeof value);
}

class Damage {
  public:
    Damage(const std::vector<Bytes>& originals, Random& random) : originals_(originals), random_(random) {}

    Bytes next() {
        Bytes image = any_original();
        for (std::size_t left = 1 + random_.below(3); left; --left) once(image);
        return image;
    }

  private:
    const Bytes& any_original() { return originals_[random_.below(originals_.size())]; }
    std::size_t below(std::size_t bound) { return bound ? random_.below(bound) : 0; }
    bool chance(std::size_t one_in) { return random_.below(one_in) == 0; }

    void once(Bytes& image) {
        switch (random_.below(9)) {
            case 0:
                for (std::size_t flips = 1 + random_.below(8); flips; --flips)
                    if (!image.empty()) image[position(image, 1)] ^= std::uint8_t(1u << random_.below(8));
                break;
            case 1:
                resize(image);
                break;
            case 2:
                put(image, position(image, 4), integer(image));
                break;
            case 3:
                put(image, position(image, 8), std::uint64_t(integer(image)) << (chance(2) ? 0 : 32));
                break;
            case 4:
                for (std::size_t times = 1 + random_.below(40); times; --times)
                    put(image, position(image, 4), number());
                break;
            case 5:
                splice(image);
                break;
            case 6:
                fill(image);
                break;
            case 7:
                lead_astray(image);
                break;
            default:
                change_header(image);
        }
    }

    // Half of the time in the header or near the beginning of a section: small sections would be missed else.
    std::size_t position(const Bytes& image, std::size_t step) {
        std::size_t at = below(image.size());
        if (image.size() >= sizeof(Header)) {
            const Place place = any_place(image);
            if (chance(5))
                at = below(sizeof(Header));
            else if (chance(3))
                at = place.offset + below(std::min<std::size_t>(place.size, 256));
            else
                at = place.offset + below(place.size);
        }
        at = at / step * step;
        return at < image.size() ? at : 0;
    }

    Place any_place(const Bytes& image) {
        Place place = header_of_image(image).place[random_.below(section_count)];
        if (!lies_within(place, image.size())) place = {0, std::min(image.size(), sizeof(Header)), 0};
        return place;
    }

    std::uint32_t integer(const Bytes& image) {
        std::uint32_t values[] = {0,   1,       2,          15,         16,         31,
                                  32,  33,      255,        4096,       1u << 20,   1u << 24,
                                  ~0u, ~0u - 1, 0x7fffffff, 0x80000000, 0x7f800000, 0x7fc00000,
                                  0,   0,       0,          0,          0,          0};
        std::size_t count = 18;
        if (image.size() >= sizeof(Header)) {
            const Header header = header_of_image(image);
            for (const std::uint32_t own : {header.blocks, header.blocks - 1, header.blocks * lanes,
                                            header.blocks * lanes - 1, header.lists, header.entries})
                values[count++] = own;
        }
        return values[random_.below(count)];
    }

    float number() {
        static const float values[] = {NAN,    INFINITY, -INFINITY, 3e38f, -3e38f, 1e30f,  1e19f, -1e19f,
                                       1e-45f, -0.0f,    0,         65504, 65536,  -1e10f, 1,     -1};
        return values[random_.below(std::size(values))];
    }

    void resize(Bytes& image) {
        if (chance(4)) {
            image.resize(image.size() + 1 + below(3 * page));
        } else if (chance(2)) {
            image.resize(image.size() / page * page - page * below(image.size() / page));
        } else {
            image.resize(below(image.size()));
        }
        if (chance(2) && image.size() >= sizeof(Header)) {  // a header that knows of it
            Header header = header_of_image(image);
            header.file_bytes = image.size();
            set_header(image, header);
        }
    }

    // Bytes of one section, of this file or another, over another section.
    void splice(Bytes& image) {
        const Bytes& from = chance(2) ? any_original() : Bytes(image);
        const Place source = any_place(from), target = any_place(image);
        const std::size_t size = std::min(source.size, target.size);
        if (!size) return;
        const std::size_t length = chance(2) ? size : 1 + below(size), skip = below(size - length + 1);
        std::memcpy(image.data() + target.offset + skip, from.data() + source.offset + skip, length);
    }

    void fill(Bytes& image) {
        const Place place = any_place(image);
        const std::size_t from = chance(2) ? 0 : below(place.size), kind = random_.below(3);
        const float value = number();
        for (std::size_t i = from; i < place.size; ++i)
            image[place.offset + i] = kind == 0   ? std::uint8_t(random_.next())
                                      : kind == 1 ? std::uint8_t(std::uint32_t(random_.below(2)) * 0xff)
                                                  : reinterpret_cast<const std::uint8_t*>(&value)[i % 4];
    }

    // Indices that lie within their bounds and lead to wrong places: rings, joined lists, edges to empty
    // slots.
    void lead_astray(Bytes& image) {
        if (image.size() < sizeof(Header)) return;
        const Header header = header_of_image(image);
        static constexpr Section leading[] = {next_block, first_block, rows, entry_slots, live, dead, ids};
        const Section section = leading[random_.below(std::size(leading))];
        const Place place = header.place[section];
        if (!lies_within(place, image.size())) return;
        const std::size_t every = 1 + random_.below(6);
        const std::size_t step = section == ids ? 8 : 4;
        const std::size_t row = header.blocks ? place.size / lanes / header.blocks : 0;
        for (std::size_t i = 0; i + step <= place.size; i += step) {
            if (!chance(every) || (section == rows && row && i % row >= row_head)) continue;
            const std::size_t at = place.offset + i;
            if (section == next_block || section == first_block)
                put(image, at, std::uint32_t(below(header.blocks)));
            else if (section == rows || section == entry_slots)
                put(image, at, std::uint32_t(below(std::size_t(header.blocks) * lanes)));
            else if (section == ids)
                put(image, at, Id(below(20)));
            else
                put(image, at, std::uint32_t(random_.next()));
        }
        if (section == live || section == dead) recount(image);
    }

    // Counts that agree with the bits, as far as they can.
    void recount(Bytes& image) {
        Header header = header_of_image(image);
        std::uint64_t counts[2] = {};
        for (std::size_t i = 0; i + 4 <= std::min(header.place[live].size, header.place[dead].size); i += 4) {
            std::uint32_t alive, gone;
            if (header.place[live].offset + i + 4 > image.size() ||
                header.place[dead].offset + i + 4 > image.size())
                return;
            std::memcpy(&alive, image.data() + header.place[live].offset + i, 4);
            std::memcpy(&gone, image.data() + header.place[dead].offset + i, 4);
            gone &= ~alive;
            put(image, header.place[dead].offset + i, gone);
            counts[0] += std::uint64_t(std::popcount(alive));
            counts[1] += std::uint64_t(std::popcount(gone));
        }
        header.count = counts[0];
        header.dead_count = counts[1];
        set_header(image, header);
    }

    // Header fields that still fit each other, or nearly.
    void change_header(Bytes& image) {
        if (image.size() < sizeof(Header)) return;
        Header header = header_of_image(image);
        Place& one = header.place[random_.below(section_count)];
        Place& other = header.place[random_.below(section_count)];
        const int step = int(random_.below(5)) - 2;
        switch (random_.below(14)) {
            case 0:
                std::swap(one, other);
                break;
            case 1:
                one.offset = other.offset;
                break;
            case 2:
                one.size = integer(image);
                break;
            case 3:
                one.offset += page * std::uint64_t(std::int64_t(step));
                break;
            case 4:
                header.shape.metric = Metric(random_.below(4));
                break;
            case 5:
                header.shape.exact = Scalar(random_.below(5));
                break;
            case 6:
                header.shape.scan_bits += step;
                break;
            case 7:
                header.shape.sketch_bits = chance(3) ? 0 : chance(2) ? 4 : 8;
                break;
            case 8:
                header.shape.dimension += step;
                break;
            case 9:
                header.shape.reduced += step;
                break;
            case 10:
                header.lists += std::uint32_t(step);
                break;
            case 11:
                header.entries += std::uint32_t(step);
                break;
            case 12:
                header.place[rows].size = 0;
                break;  // without its graph
            default: {
                float* const numbers[] = {&header.noise, &header.unit, &header.longest};
                *numbers[random_.below(3)] = number();
            }
        }
        set_header(image, header);
    }

    const std::vector<Bytes>& originals_;
    Random& random_;
};

// ---- what must hold for whatever loads

void search_all_ways(Index& index, const Source& queries, Filter* filter) {
    for (const std::size_t k : {std::size_t(1), std::size_t(10)})
        for (const Engine engine : {Engine::partitions, Engine::graph})
            for (const int effort : {1, 100, 0}) {
                Wanted wanted;
                wanted.engine = engine;
                if (effort) wanted.effort = effort;
                std::vector<Id> ids(queries.count * k, -2);
                std::vector<float> distances(queries.count * k);
                index.search(queries, k, wanted, filter, 1, ids.data(), distances.data());
                const std::size_t there = filter ? filter->count : index.store().count;
                if (there == 0 && ids[0] != -1) broken("a search found something in nothing");
            }
}

void live_with(Saved saved, Random& random) {
    const Shape shape = saved.store.shape;
    Index index(std::move(saved.store), linked_slots(), "linked");
    index.set_calibration(std::move(saved.calibration));
    const Scalar kind = shape.metric == Metric::l2 && shape.exact != Scalar::i8 ? shape.exact : Scalar::f32;
    const Rows queries = random_rows(kind, 1, shape.dimension, random);
    Filter some, masked;
    for (int i = 0; i < 30; ++i) some.ids.push_back(Id(random.below(160)));
    masked.by_mask = true;
    for (int i = 0; i < 200; ++i) masked.mask.push_back(random.below(2) == 0);
    const auto search = [&] {
        search_all_ways(index, queries.source, nullptr);
        search_all_ways(index, queries.source, &some);
        search_all_ways(index, queries.source, &masked);
        std::vector<Id> ids(10);
        std::vector<float> distances(10);
        index.exact_search(queries.source, 10, nullptr, 1, ids.data(), distances.data());
    };
    search();
    const Rows fresh = random_rows(kind, 10 + random.below(40), shape.dimension, random);
    std::vector<Id> names;
    for (Id id = 5000; names.size() < fresh.source.count; ++id)
        if (!index.contains(id)) names.push_back(id);
    index.add(fresh.source, names.data(), 1);
    std::vector<Id> going(names.begin(), names.begin() + std::ptrdiff_t(names.size() / 2));
    for (Id id = 0; id < 160; id += 2)
        if (index.contains(id)) going.push_back(id);
    index.remove(going.data(), going.size(), 1);
    const Rows last = random_rows(kind, 3, shape.dimension, random);
    index.add(last.source, going.data(), 1);
    search();
    // What was loaded once can be saved, and loads again.
    const Bytes again = save_bytes(index.store(), index.calibration());
    const std::shared_ptr<std::uint8_t> data = paged(again);
    load_bytes(data, data.get(), again.size(), true, "again");
}

// The reason without its numbers, so that like is counted with like.
std::string reason_of(const std::string& message) {
    std::string reason;
    for (const char c : message.substr(message.find(": ") + 2)) {
        const bool digit = std::isdigit(static_cast<unsigned char>(c));
        if (digit && !reason.empty() && reason.back() == '#') continue;
        reason += digit ? '#' : c;
    }
    return reason;
}

struct Outcome {
    std::uint64_t loaded_checked = 0, loaded_unchecked = 0;
    std::map<std::string, std::uint64_t> refused;
};

void feed(const Bytes& image, Random& random, Outcome& outcome) {
    const std::shared_ptr<std::uint8_t> data = paged(image);
    for (const bool check : {true, false}) {
        Saved saved;
        try {
            saved = load_bytes(data, data.get(), image.size(), check, "input");
        } catch (const BadFile& error) {
            if (!check) ++outcome.refused[reason_of(error.what())];
            continue;
        }
        ++(check ? outcome.loaded_checked : outcome.loaded_unchecked);
        forbid_gaps(data.get(), image);
        live_with(std::move(saved), random);
        return;
    }
}

std::string quoted(const std::string& words) {
    std::string out = "\"";
    for (const char c : words) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

int run(std::uint64_t count, std::uint64_t first) {
    const std::vector<Bytes> originals = sample_images();
    Outcome outcome;
    for (const Bytes& image : originals) {
        Random random(0);
        feed(image, random, outcome);
    }
    if (outcome.loaded_checked != originals.size()) broken("an undamaged file was refused");
    outcome = {};
    for (std::uint64_t i = first; i < first + count; ++i) {
        input_number = i;
        alarm(patience);
        Random random(i);
        Bytes image = Damage(originals, random).next();
        if (i % 2) seal(image);
        try {
            feed(image, random, outcome);
        } catch (const std::exception& error) {
            broken(std::string("an index that loaded threw: ") + error.what());
        }
    }
    alarm(0);
    std::printf("{\"inputs\": %llu, \"loaded_checked\": %llu, \"loaded_unchecked\": %llu, \"refused\": {",
                static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(outcome.loaded_checked),
                static_cast<unsigned long long>(outcome.loaded_unchecked));
    const char* comma = "";
    for (const auto& [reason, times] : outcome.refused) {
        std::printf("%s%s: %llu", comma, quoted(reason).c_str(), static_cast<unsigned long long>(times));
        comma = ", ";
    }
    std::printf("}}\n");
    return 0;
}

}  // namespace
}  // namespace outpace::ann::tests

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: file_fuzz COUNT [FIRST]\n");
        return 64;
    }
    std::signal(SIGALRM, outpace::ann::tests::on_signal);
    std::signal(SIGABRT, outpace::ann::tests::on_signal);
    return outpace::ann::tests::run(std::strtoull(argv[1], nullptr, 10),
                                    argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
}
