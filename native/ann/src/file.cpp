#include "file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

#include "errors.hpp"
#include "file_layout.hpp"

namespace outpace::ann {
namespace {

using namespace file_layout;

// What a calibration holds, as a file holds it.
struct Measurements {
    Buffer points, real;
};

std::vector<const Buffer*> sections_of(const Store& store, const Measurements& measurements) {
    return {&store.block_codes,
            &store.next_block,
            &store.live,
            &store.dead,
            &store.sketches,
            &store.exact,
            &store.ids,
            &store.lists.codes,
            &store.lists.scale,
            &store.lists.constant,
            &store.centres,
            &store.first_block,
            &store.rows,
            &store.entries.codes,
            &store.entries.scale,
            &store.entries.constant,
            &store.entry_slots,
            &store.transform.matrix,
            &store.transform.row_scale,
            &store.transform.centre,
            &store.long_slots,
            &measurements.real,
            &measurements.points};
}

Header header_of(const Store& store, const Calibration& calibration,
                 const std::vector<const Buffer*>& sections) {
    Header header;
    std::memset(static_cast<void*>(&header), 0, sizeof header);
    std::memcpy(header.magic, magic, sizeof magic);
    header.version = file_version;
    header.header_bytes = sizeof header;
    header.shape = store.shape;
    header.noise = store.noise;
    header.unit = store.transform.unit;
    header.longest = store.transform.longest;
    header.blocks = store.blocks;
    header.lists = store.lists.count;
    header.entries = store.entries.count;
    header.points = std::uint32_t(calibration.points.size());
    header.queries = calibration.queries;
    header.seed = store.seed;
    header.count = store.count;
    header.dead_count = store.dead_count;
    header.repaired = store.repaired;
    header.build_seconds = store.build_seconds;
    header.changed = calibration.changed;
    header.long_slots = std::uint32_t(store.long_slots.size() / sizeof(Slot));
    header.real_queries = std::uint32_t(calibration.real.size() / std::size_t(store.shape.dimension));
    header.highest = store.highest;
    std::copy(std::begin(calibration.stretch), std::end(calibration.stretch), header.stretch);
    std::size_t offset = aligned(sizeof header);
    for (std::size_t i = 0; i < section_count; ++i) {
        header.place[i] = {offset, sections[i]->size(), checksum(sections[i]->data(), sections[i]->size())};
        offset = aligned(offset + sections[i]->size());
    }
    header.file_bytes = offset;
    header.checksum = header_checksum(header);
    return header;
}

template <class T>
Buffer buffer_of(const std::vector<T>& values) {
    Buffer buffer;
    buffer.resize(values.size() * sizeof(T));
    if (buffer.size()) std::memcpy(buffer.data(), values.data(), buffer.size());
    return buffer;
}

Measurements measurements_of(const Calibration& calibration) {
    return {buffer_of(calibration.points), buffer_of(calibration.real)};
}

[[noreturn]] void fail(const std::string& name, const std::string& why) {
    throw BadFile(name + ": " + why);
}

[[noreturn]] void fail_system(const std::string& doing, const std::string& path) {
    throw std::system_error(errno, std::generic_category(), doing + " " + path);
}

// Sizes that follow from the counts, and sections that lie where a save puts them: overlapping ones would
// change each other once the index changes.
void check_header(const Header& header, std::size_t size, const std::string& name) {
    const Shape& shape = header.shape;
    const auto within = [&](long value, long low, long high, const char* what) {
        if (value < low || value > high)
            fail(name, std::string("the file says ") + what + " = " + std::to_string(value) +
                           ", which no index has");
    };
    within(header.header_bytes, sizeof header, sizeof header, "header bytes");
    within(shape.dimension, 1, max_dimension, "dimension");
    within(shape.reduced, 1, std::min(max_reduced, shape.working()), "reduced");
    within(shape.scan_bits, 1, shape.scan_bits == 3 ? 2 : 4, "scan_bits");
    if (shape.sketch_bits != 0 && shape.sketch_bits != 4) within(shape.sketch_bits, 8, 8, "sketch_bits");
    if (!shape.sketch_bits && (header.place[rows].size || shape.reduced != shape.working()))
        fail(name, "the file has no sketches, which its graph or its projection needs");
    within(long(shape.exact), 0, 3, "exact");
    within(long(shape.metric), 0, 2, "metric");
    if (shape.metric != Metric::l2 && (shape.exact == Scalar::i8 || shape.exact == Scalar::u8))
        fail(name, "the file says that it holds bytes under another metric than l2, which no index does");
    within(header.blocks, 0, (1l << 31) / lanes, "blocks");
    within(header.lists, 1, 1l << 24, "lists");
    within(header.entries, 0, 1l << 24, "entries");
    within(header.points, 0, 1l << 20, "calibration points");
    within(header.real_queries, 0, 1l << 20, "real queries");
    for (const float stretch : header.stretch)
        if (!(stretch >= 1 && stretch <= most_stretch))
            fail(name, "its stretch is a number that no index has");
    if (!(header.noise >= 0 && header.noise < 1e6f && header.unit > 0 && header.unit < 1e30f &&
          header.longest >= 0 && header.longest < 1e30f && header.build_seconds >= 0 &&
          header.build_seconds < 1e30))
        fail(name, "its noise, unit, longest or build_seconds is a number that no index has");
    const std::uint64_t slots = std::uint64_t(header.blocks) * lanes, blocks = header.blocks;
    const std::uint64_t list_groups = (header.lists + 15) / 16, entry_groups = (header.entries + 15) / 16;
    const std::uint64_t quads = std::uint64_t(shape.quads()),
                        padded = std::uint64_t(round_up(shape.reduced, 16));
    const std::uint64_t width = std::uint64_t(round_up(shape.working(), 32));
    const std::uint64_t expected[section_count] = {
        blocks * shape.block_bytes(),
        blocks * 4,
        blocks * 4,
        blocks * 4,
        slots * shape.sketch_bytes(),
        slots * shape.exact_bytes(),
        slots * 8,
        list_groups * quads * 64,
        list_groups * 64,
        list_groups * 64,
        std::uint64_t(header.lists) * padded * 4,
        std::uint64_t(header.lists) * 4,
        header.place[rows].size ? slots * shape.graph_row_bytes() : 0,
        entry_groups * quads * 64,
        entry_groups * 64,
        entry_groups * 64,
        std::uint64_t(header.entries) * 4,
        std::uint64_t(shape.reduced) * width * 2,
        std::uint64_t(shape.reduced) * 4,
        std::uint64_t(shape.reduced) * 4,
        std::uint64_t(header.long_slots) * sizeof(Slot),
        std::uint64_t(header.real_queries) * std::uint64_t(shape.dimension) * 4,
        std::uint64_t(header.points) * sizeof(Measured)};
    std::uint64_t offset = aligned(sizeof header);
    for (std::size_t i = 0; i < section_count; ++i) {
        const Place& place = header.place[i];
        if (place.size != expected[i])
            fail(name, "section " + std::to_string(i) + " has " + std::to_string(place.size) +
                           " bytes where " + std::to_string(expected[i]) + " belong");
        if (place.offset != offset)
            fail(name, "section " + std::to_string(i) + " begins at byte " + std::to_string(place.offset) +
                           " where byte " + std::to_string(offset) + " belongs");
        offset = aligned(offset + place.size);
    }
    if (header.place[rows].size && !header.entries) fail(name, "its graph has no entry");
    if (offset != header.file_bytes)
        fail(name, "its sections end at byte " + std::to_string(offset) + " and its header says " +
                       std::to_string(header.file_bytes));
    if (size != header.file_bytes)
        fail(name, "it has " + std::to_string(size) + " bytes where its header says " +
                       std::to_string(header.file_bytes) + "; it was cut short or added to");
}

// A projection adds up integers that cannot overflow as long as no row is longer than this: a vector is
// `fixed_norm` long, give or take its rounding, and their product stays below 2^31 (Cauchy-Schwarz).
constexpr double longest_row = 66000;
static_assert(longest_row * (fixed_norm + max_dimension / 64) < 0x1p31);

void check_transform(const Transform& transform, const std::string& name) {
    const std::size_t width = std::size_t(transform.padded());
    for (int i = 0; i < transform.shape.reduced; ++i) {
        const std::int16_t* row = transform.matrix.as<std::int16_t>() + std::size_t(i) * width;
        double square = 0;
        for (std::size_t t = 0; t < width; ++t) square += double(row[t]) * row[t];
        if (square > longest_row * longest_row || !std::isfinite(transform.row_scale.as<float>()[i]) ||
            !std::isfinite(transform.centre.as<float>()[i]))
            fail(name, "its transform is damaged at row " + std::to_string(i));
    }
}

// What is small enough to be looked at whole, also where the file is mapped. The larger sections are not: a
// search bounds every index that it reads in them, and takes any number for a distance.
void check_numbers(const Saved& saved, const std::string& name) {
    const Store& store = saved.store;
    check_transform(store.transform, name);
    const std::uint32_t* live = store.live.as<std::uint32_t>();
    const std::uint32_t* dead = store.dead.as<std::uint32_t>();
    std::uint64_t live_count = 0, dead_count = 0;
    bool both = false;
    for (std::uint32_t b = 0; b < store.blocks; ++b) {
        live_count += std::uint64_t(std::popcount(live[b]));
        dead_count += std::uint64_t(std::popcount(dead[b]));
        both |= (live[b] & dead[b]) != 0;
    }
    if (live_count != store.count || dead_count != store.dead_count || both)
        fail(name, "it counts " + std::to_string(store.count) + " vectors and " +
                       std::to_string(store.dead_count) + " removed ones, and holds " +
                       std::to_string(live_count) + " and " + std::to_string(dead_count));
    for (const float x : saved.calibration.real)
        if (!std::isfinite(x)) fail(name, "its queries hold a number that is not finite");
    for (const Measured& point : saved.calibration.points) {
        const Settings& s = point.settings;
        if ((s.engine != Engine::partitions && s.engine != Engine::graph) || s.effort < 1 ||
            s.effort > (1 << 24) || s.depth < 1 || s.depth > (1 << 20) || !(s.slack >= 0 && s.slack < 1e3f) ||
            !(point.selectivity > 0 && point.selectivity <= 1) || !(point.recall >= 0 && point.recall <= 1) ||
            !(point.lower >= 0 && point.lower <= 1) || !(point.cost >= 1 && point.cost < 1e18f) ||
            !(point.seconds >= 0 && point.seconds < 1e6f))
            fail(name, "its calibration holds settings that no search has");
    }
}

}  // namespace

Saved load_bytes(std::shared_ptr<void> owner, std::uint8_t* data, std::size_t size, bool check,
                 const std::string& name) {
    Header header;
    if (size < sizeof header || std::memcmp(data, magic, sizeof magic) != 0)
        fail(name, "this is not an Outpace index (" + std::to_string(size) + " bytes)");
    std::memcpy(static_cast<void*>(&header), data, sizeof header);
    if (header.version != file_version)
        fail(name, "it has file version " + std::to_string(header.version) +
                       ", and this version of outpace reads version " + std::to_string(file_version) +
                       "; install the version that wrote it, or build the index again");
    if (header_checksum(header) != header.checksum) fail(name, "its header is damaged (checksum)");
    check_header(header, size, name);
    Saved saved;
    Store& store = saved.store;
    store.shape = header.shape;
    store.noise = header.noise;
    store.transform.shape = header.shape;
    store.transform.unit = header.unit;
    store.transform.longest = header.longest;
    store.blocks = header.blocks;
    store.lists.count = header.lists;
    store.entries.count = header.entries;
    store.seed = header.seed;
    store.count = header.count;
    store.dead_count = header.dead_count;
    store.repaired = header.repaired;
    store.build_seconds = header.build_seconds;
    store.highest = header.highest;
    std::copy(std::begin(header.stretch), std::end(header.stretch), saved.calibration.stretch);
    saved.calibration.queries = header.queries;
    saved.calibration.changed = header.changed;
    Measurements measurements;
    const auto sections = sections_of(store, measurements);
    for (std::size_t i = 0; i < section_count; ++i) {
        const Place& place = header.place[i];
        if (check && checksum(data + place.offset, place.size) != place.checksum)
            fail(name, "section " + std::to_string(i) + " is damaged (checksum)");
        *const_cast<Buffer*>(sections[i]) = Buffer::borrow(owner, data + place.offset, place.size);
    }
    saved.calibration.points.resize(header.points);
    if (header.points)
        std::memcpy(static_cast<void*>(saved.calibration.points.data()), measurements.points.data(),
                    measurements.points.size());
    const float* real = measurements.real.as<float>();
    saved.calibration.real.assign(real, real + measurements.real.size() / sizeof(float));
    check_numbers(saved, name);
    saved.calibration.prepare();
    return saved;
}

void own_sections(Store& store) {
    const Measurements none;
    for (const Buffer* section : sections_of(store, none)) {
        if (section == &none.points || section == &none.real) continue;
        Buffer copy;
        copy.resize(section->size());
        if (section->size()) std::memcpy(copy.data(), section->data(), section->size());
        *const_cast<Buffer*>(section) = std::move(copy);
    }
}

Saved load_file(const std::string& path, bool map) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail_system("cannot open", path);
    const std::shared_ptr<void> closer(nullptr, [file](void*) { close(file); });
    struct stat facts;
    if (fstat(file, &facts) != 0) fail_system("cannot read", path);
    const std::size_t size = std::size_t(facts.st_size);
    if (size < sizeof(Header))
        fail(path, "this is not an Outpace index (" + std::to_string(size) + " bytes)");
    // Without a reserve, or a file larger than memory could not be mapped, though little of it is ever
    // written.
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) fail_system("cannot map", path);
    Saved saved = load_bytes(std::shared_ptr<void>(at, [size](void* p) { munmap(p, size); }),
                             static_cast<std::uint8_t*>(at), size, !map, path);
    if (!map) own_sections(saved.store);
    return saved;
}

std::vector<std::uint8_t> save_bytes(const Store& store, const Calibration& calibration) {
    const Measurements measurements = measurements_of(calibration);
    const auto sections = sections_of(store, measurements);
    const Header header = header_of(store, calibration, sections);
    std::vector<std::uint8_t> bytes(header.file_bytes, 0);
    std::memcpy(bytes.data(), &header, sizeof header);
    for (std::size_t i = 0; i < section_count; ++i)
        if (sections[i]->size())
            std::memcpy(bytes.data() + header.place[i].offset, sections[i]->data(), sections[i]->size());
    return bytes;
}

namespace {

// Where a path leads: through links, which stay, to the file that is replaced or made. Not realpath, for
// which a link to a file that is not there yet leads nowhere.
std::string followed(const std::string& given) {
    std::filesystem::path path = given;
    for (int links = 0; links < 40; ++links) {  // as many as Linux follows
        std::error_code none;
        const std::filesystem::path target = std::filesystem::read_symlink(path, none);
        if (none) return path.string();
        path = path.parent_path() / target;
    }
    errno = ELOOP;
    fail_system("cannot write", given);
}

// A new file beside the target, as readable to others as that one is. Whoever else saves to the same path,
// another thread, process or container, writes into another one.
std::pair<int, std::string> opened_beside(const std::string& path) {
    std::random_device chance;
    for (int tries = 0;; ++tries) {
        const std::string part = path + ".part-" + std::to_string(chance()) + std::to_string(chance());
        const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0) {
            struct stat facts;
            if (stat(path.c_str(), &facts) == 0 && fchmod(file, facts.st_mode & 0777) != 0) errno = 0;
            return {file, part};
        }
        if (errno != EEXIST || tries == 100) fail_system("cannot write", part);
    }
}

}  // namespace

void save_file(const std::string& given, const Store& store, const Calibration& calibration) {
    const std::string path = followed(given);
    const Measurements measurements = measurements_of(calibration);
    const auto sections = sections_of(store, measurements);
    const Header header = header_of(store, calibration, sections);
    check_header(header, header.file_bytes, path);  // a file that no load would take must not replace one
    const std::pair<int, std::string> opened = opened_beside(path);
    const int file = opened.first;
    const std::string& part = opened.second;
    const auto put = [&](const void* data, std::size_t size, std::size_t offset) {
        const auto* bytes = static_cast<const std::uint8_t*>(data);
        for (std::size_t done = 0; done < size;) {
            const ssize_t wrote = pwrite(file, bytes + done, size - done, off_t(offset + done));
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote < 0) {
                const int why = errno;
                close(file);
                unlink(part.c_str());
                errno = why;
                fail_system("cannot write", part);
            }
            done += std::size_t(wrote);
        }
    };
    for (std::size_t i = 0; i < section_count; ++i)
        put(sections[i]->data(), sections[i]->size(), header.place[i].offset);
    put(&header, sizeof header, 0);
    const bool whole = ftruncate(file, off_t(header.file_bytes)) == 0 && fsync(file) == 0;
    const int why = errno;
    close(file);
    if (!whole || std::rename(part.c_str(), path.c_str()) != 0) {
        const int reason = whole ? errno : why;
        unlink(part.c_str());
        errno = reason;
        fail_system("cannot write", path);
    }
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        fsync(directory);  // so that the new name survives a power cut
        close(directory);
    }
}

}  // namespace outpace::ann
