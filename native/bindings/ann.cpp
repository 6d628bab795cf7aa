// Bindings: the Python face of the index; arrays in and out, errors by name, and no lock of Python's while it
// works.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <system_error>

#include "../ann/src/errors.hpp"
#include "../ann/src/file.hpp"
#include "../ann/src/index.hpp"
#include "../ann/src/modules.hpp"
#include "../ann/src/random.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace outpace::ann;

namespace {

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<nb::numpy, Id>;
using Distances = nb::ndarray<nb::numpy, float>;

// Rows of a one- or two-dimensional array. Kind and shape were made right by the Python side.
Source source_of(const AnyArray& array) {
    Source source;
    source.data = array.data();
    const nb::dlpack::dtype type = array.dtype();
    if (type.code == std::uint8_t(nb::dlpack::dtype_code::Float) && type.bits == 32)
        source.kind = Scalar::f32;
    else if (type.code == std::uint8_t(nb::dlpack::dtype_code::Float) && type.bits == 16)
        source.kind = Scalar::f16;
    else if (type.code == std::uint8_t(nb::dlpack::dtype_code::Int) && type.bits == 8)
        source.kind = Scalar::i8;
    else if (type.code == std::uint8_t(nb::dlpack::dtype_code::UInt) && type.bits == 8)
        source.kind = Scalar::u8;
    else
        throw BadArgument("vectors must be float32, float16, int8 or uint8");
    if (array.ndim() != 1 && array.ndim() != 2)
        throw BadArgument("vectors must be one row or a table of rows");
    source.count = array.ndim() == 1 ? 1 : array.shape(0);
    const std::size_t width = array.shape(array.ndim() - 1);
    if (width < 1 || width > max_dimension)
        throw BadArgument("vectors have " + std::to_string(width) + " coordinates; 1 to " +
                          std::to_string(max_dimension) + " are possible");
    source.dimension = int(width);
    return source;
}

void check_dimension(const Source& source, const Shape& shape, const char* what) {
    if (source.dimension != shape.dimension)
        throw BadArgument(std::string(what) + " have " + std::to_string(source.dimension) +
                          " coordinates, and the index " + std::to_string(shape.dimension));
}

template <class T>
nb::ndarray<nb::numpy, T> new_array(std::size_t rows, std::size_t columns, bool flat) {
    T* data = new T[rows * columns + 1];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    if (flat) return nb::ndarray<nb::numpy, T>(data, {columns}, owner);
    return nb::ndarray<nb::numpy, T>(data, {rows, columns}, owner);
}

// Before there is an array of them: their number may not even fit into 64 bits.
void check_answers(std::size_t queries, std::size_t k) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(queries, k, &bytes) || __builtin_mul_overflow(bytes, 32, &bytes))
        throw BadArgument("k=" + std::to_string(k) + " for " + std::to_string(queries) +
                          " queries makes more answers than memory has places for; ask for fewer");
}

struct Handle {
    std::unique_ptr<Index> index;
    std::string replaced;

    // Looks at the index while nothing changes it. Without Python's lock: whoever waits for the index with it
    // stops every thread of Python, also the one that the index waits for.
    template <class Look>
    auto look(const Look& look) {
        nb::gil_scoped_release unlocked;
        const std::shared_lock guard(index->lock());
        return look(*index);
    }
};

std::vector<Slot> live_slots(const Store& store) {
    std::vector<Slot> live;
    for (Slot s = 0; s < store.slots(); ++s)
        if (store.live.as<std::uint32_t>()[s / lanes] >> (s % lanes) & 1) live.push_back(s);
    return live;
}

Distances table_of(const std::vector<float>& values, std::size_t dimension) {
    Distances rows = new_array<float>(values.size() / dimension, dimension, false);
    if (!values.empty()) std::memcpy(rows.data(), values.data(), values.size() * sizeof(float));
    return rows;
}

std::string slots_folder() {
    return nb::cast<std::string>(nb::module_::import_("outpace.ann._slots").attr("folder")());
}

// The queries where they lie, if they are float32 rows already; anything else goes through the Python side's
// conversion.
AnyArray queries_of(nb::handle given) {
    nb::ndarray<const float, nb::ro, nb::c_contig, nb::device::cpu> plain;
    if (nb::try_cast(given, plain, false) && (plain.ndim() == 1 || plain.ndim() == 2)) return AnyArray(plain);
    return nb::cast<AnyArray>(nb::module_::import_("outpace.ann.arrays").attr("rows")(given, "queries"));
}

std::optional<Engine> engine_of(std::string_view name) {
    if (name == "auto") return std::nullopt;
    if (name == "partitions") return Engine::partitions;
    if (name == "graph") return Engine::graph;
    throw BadArgument("engine='" + std::string(name) + "' is unknown; choose auto, graph or partitions");
}

// Without Python's lock while a search runs. Python's own way to take the lock again sleeps where another
// thread has it, and to be woken takes longer than a quick search. If that thread is between two searches of
// its own, it gives the lock back within microseconds: then it is awaited here, awake, but not for long,
// since it may have gone to do something else.
class Unlocked {
  public:
    Unlocked() : thread_(PyEval_SaveThread()) { between_searches.store(false, std::memory_order_relaxed); }
    ~Unlocked() {
        if (between_searches.load(std::memory_order_relaxed)) {
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(10);
            while (between_searches.load(std::memory_order_relaxed) &&
                   std::chrono::steady_clock::now() < end) {
            }
        }
        PyEval_RestoreThread(thread_);
        between_searches.store(true, std::memory_order_relaxed);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

  private:
    static inline std::atomic<bool> between_searches = false;
    PyThreadState* thread_;
};

nb::tuple search(Handle& self, nb::handle given, Py_ssize_t k, std::optional<float> recall,
                 std::optional<int> effort, std::optional<int> depth, const char* engine, Filter* filter,
                 int threads) {
    const AnyArray queries = queries_of(given);
    const Source source = source_of(queries);
    check_dimension(source, self.index->store().shape, "queries");
    const Wanted wanted{recall, effort, depth, engine_of(engine)};
    if (k < 1) throw BadArgument("k=" + std::to_string(k) + "; at least one neighbour must be asked for");
    if (recall && !(*recall > 0 && *recall <= 1))
        throw BadArgument("recall=" + nb::cast<std::string>(nb::str(nb::cast(*recall))) +
                          " is not in (0, 1]");
    if (effort && *effort < 1) throw BadArgument("effort=" + std::to_string(*effort) + " is below 1");
    if (depth && *depth < 1) throw BadArgument("depth=" + std::to_string(*depth) + " is below 1");
    if (threads < 1) throw BadArgument("threads=" + std::to_string(threads) + " is below 1");
    check_answers(source.count, std::size_t(k));
    if (wanted.engine == Engine::graph && !self.index->store().has_graph())
        throw BadArgument(
            "engine='graph', and this index has none; build it with engine='graph' or 'auto' and "
            "profile='fast'");
    const bool flat = queries.ndim() == 1;
    Ids ids = new_array<Id>(source.count, std::size_t(k), flat);
    Distances distances = new_array<float>(source.count, std::size_t(k), flat);
    {
        const Unlocked unlocked;
        self.index->search(source, std::size_t(k), wanted, filter, threads, ids.data(), distances.data());
    }
    return nb::make_tuple(ids, distances);
}

// Progress for Python: each stage once, then ten times a second, since a call takes the lock that other
// threads wait for. It is also where Ctrl-C is noticed.
Progress told_to(const nb::object& progress) {
    using clock = std::chrono::steady_clock;
    return [&progress, last = std::string(), next = clock::time_point()](std::string_view stage,
                                                                         double done) mutable {
        const clock::time_point now = clock::now();
        if (stage == last && now < next) return;
        last = stage;
        next = now + std::chrono::milliseconds(100);
        nb::gil_scoped_acquire locked;
        if (PyErr_CheckSignals()) throw nb::python_error();
        if (!progress.is_none()) progress(last, done);
    };
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The native half of outpace.ann.";
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const BadArgument& e) {
            PyErr_SetString(PyExc_ValueError, e.what());
        } catch (const BadId& e) {
            PyErr_SetString(PyExc_KeyError, e.what());
        } catch (const std::system_error& e) {
            errno = e.code().value();
            nb::object error = nb::borrow(PyExc_OSError)(e.code().value(), e.what());
            PyErr_SetObject(PyExc_OSError, error.ptr());
        }
    });
    nb::exception<BadFile>(m, "IndexFileError", PyExc_ValueError);

    nb::class_<Filter>(m, "Filter")
        .def_static("of_mask",
                    [](nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu, bool, nb::ndim<1>> mask) {
                        auto filter = std::make_unique<Filter>();
                        filter->by_mask = true;
                        filter->mask.assign(mask.data(), mask.data() + mask.size());
                        return filter;
                    })
        .def_static("of_ids", [](nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu, Id, nb::ndim<1>> ids) {
            auto filter = std::make_unique<Filter>();
            filter->ids.assign(ids.data(), ids.data() + ids.size());
            return filter;
        });

    nb::class_<Handle>(m, "Handle")
        .def_static(
            "build",
            [](const AnyArray& vectors,
               std::optional<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu, Id, nb::ndim<1>>> ids,
               std::optional<AnyArray> later, int metric, int threads, std::uint64_t seed,
               std::uint32_t lists, int reduced, int scan_bits, bool half, bool compact, bool graph,
               int candidates, const std::string& instruction_set, const std::string& modules,
               nb::object progress) {
                const Source source = source_of(vectors);
                BuildOptions options;
                options.metric = Metric(metric);
                options.threads = threads;
                options.seed = seed;
                options.lists = lists;
                options.reduced = reduced;
                options.scan_bits = scan_bits;
                options.half = half;
                options.compact = compact;
                options.graph = graph;
                options.candidates = candidates;
                if (later) options.later = source_of(*later);
                const Id* names = ids ? ids->data() : nullptr;
                LoadedSlots loaded = load_slots(slots_folder(), instruction_set, modules);
                auto self = std::make_unique<Handle>();
                self->replaced = loaded.replaced;
                nb::gil_scoped_release unlocked;
                check_vectors(source, options.metric, "vector");
                if (later) check_vectors(options.later, options.metric, "vector");
                Store store = build_store(source, names, options, loaded.slots, told_to(progress));
                self->index = std::make_unique<Index>(std::move(store), loaded.slots, loaded.instruction_set);
                return self;
            },
            "vectors"_a, "ids"_a.none(), "later"_a.none(), "metric"_a, "threads"_a, "seed"_a, "lists"_a,
            "reduced"_a, "scan_bits"_a, "half"_a, "compact"_a, "graph"_a, "candidates"_a, "instruction_set"_a,
            "modules"_a, "progress"_a.none())
        .def_static("estimate_peak",
                    [](const AnyArray& vectors, int metric, int reduced, bool half, bool graph) {
                        BuildOptions options;
                        options.metric = Metric(metric);
                        options.reduced = reduced;
                        options.half = half;
                        options.graph = graph;
                        return estimate_peak(source_of(vectors), options);
                    })
        .def_static("load",
                    [](const std::string& path, bool map, const std::string& instruction_set,
                       const std::string& modules) {
                        LoadedSlots loaded = load_slots(slots_folder(), instruction_set, modules);
                        auto self = std::make_unique<Handle>();
                        self->replaced = loaded.replaced;
                        nb::gil_scoped_release unlocked;
                        Saved saved = load_file(path, map);
                        self->index = std::make_unique<Index>(std::move(saved.store), loaded.slots,
                                                              loaded.instruction_set);
                        self->index->set_calibration(std::move(saved.calibration));
                        return self;
                    })
        .def_static("from_bytes",
                    [](nb::bytes data, const std::string& instruction_set) {
                        LoadedSlots loaded = load_slots(slots_folder(), instruction_set, "");
                        auto copy = std::make_shared<Buffer>();
                        copy->resize(data.size());
                        std::memcpy(copy->data(), data.data(), data.size());
                        std::uint8_t* bytes = copy->data();
                        Saved saved = load_bytes(copy, bytes, copy->size(), true, "these bytes");
                        auto self = std::make_unique<Handle>();
                        self->index = std::make_unique<Index>(std::move(saved.store), loaded.slots,
                                                              loaded.instruction_set);
                        self->index->set_calibration(std::move(saved.calibration));
                        return self;
                    })
        .def("to_bytes",
             [](Handle& self) {
                 std::vector<std::uint8_t> bytes;
                 {
                     nb::gil_scoped_release unlocked;
                     const auto still = self.index->unchanging();
                     bytes = save_bytes(self.index->store(), self.index->calibration());
                 }
                 return nb::bytes(bytes.data(), bytes.size());
             })
        .def("save",
             [](Handle& self, const std::string& path) {
                 nb::gil_scoped_release unlocked;
                 const auto still = self.index->unchanging();
                 save_file(path, self.index->store(), self.index->calibration());
             })
        .def("search", &search, "queries"_a.none(), "k"_a, "recall"_a.none(), "effort"_a.none(),
             "depth"_a.none(), "engine"_a, "filter"_a.none(), "threads"_a)
        .def("exact",
             [](Handle& self, const AnyArray& queries, std::size_t k, int threads) {
                 const Source source = source_of(queries);
                 check_dimension(source, self.index->store().shape, "queries");
                 check_answers(source.count, k);
                 const bool flat = queries.ndim() == 1;
                 Ids ids = new_array<Id>(source.count, k, flat);
                 Distances distances = new_array<float>(source.count, k, flat);
                 {
                     nb::gil_scoped_release unlocked;
                     check_vectors(source, self.index->store().shape.metric, "query");
                     self.index->exact_search(source, k, nullptr, threads, ids.data(), distances.data());
                 }
                 return nb::make_tuple(ids, distances);
             })
        .def("add",
             [](Handle& self, const AnyArray& vectors,
                nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu, Id, nb::ndim<1>> ids, int threads,
                int holder) {
                 const Source source = source_of(vectors);
                 check_dimension(source, self.index->store().shape, "vectors");
                 nb::gil_scoped_release unlocked;
                 check_vectors(source, self.index->store().shape.metric, "vector");
                 self.index->add(source, ids.data(), threads, Scalar(holder));
             })
        .def("remove",
             [](Handle& self, nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu, Id, nb::ndim<1>> ids,
                int threads) {
                 nb::gil_scoped_release unlocked;
                 self.index->remove(ids.data(), ids.size(), threads);
             })
        .def("contains",
             [](Handle& self, Id id) {
                 nb::gil_scoped_release unlocked;
                 return self.index->contains(id);
             })
        .def(
            "calibrate",
            [](Handle& self, const AnyArray& queries, bool stored, bool real, int threads,
               nb::object progress) {
                const Source source = source_of(queries);
                check_dimension(source, self.index->store().shape, "queries");
                nb::gil_scoped_release unlocked;
                check_vectors(source, self.index->store().shape.metric, "query");
                self.index->calibrate(source, stored, real, threads, told_to(progress));
            },
            "queries"_a, "stored"_a, "real"_a, "threads"_a, "progress"_a.none())
        .def("forget_changes",
             [](Handle& self) {
                 nb::gil_scoped_release unlocked;
                 self.index->forget_changes();
             })
        .def("shrink",
             [](Handle& self) {
                 nb::gil_scoped_release unlocked;
                 self.index->shrink();
             })
        .def("drop_graph",
             [](Handle& self) {
                 nb::gil_scoped_release unlocked;
                 self.index->drop_graph();
             })
        .def("ids",
             [](Handle& self) {
                 const std::vector<Id> found = self.look([](Index& index) {
                     std::vector<Id> ids;
                     for (const Slot s : live_slots(index.store()))
                         ids.push_back(index.store().ids.as<Id>()[s]);
                     return ids;
                 });
                 Ids ids = new_array<Id>(1, found.size(), true);
                 std::copy(found.begin(), found.end(), ids.data());
                 return ids;
             })
        .def("sample",
             [](Handle& self, std::size_t most, std::uint64_t seed) {
                 const std::size_t dimension = std::size_t(self.index->store().shape.dimension);
                 return table_of(self.look([&](Index& index) {
                     const Store& store = index.store();
                     const std::vector<Slot> live = live_slots(store);
                     const std::vector<std::size_t> chosen = Random(seed).sample(live.size(), most);
                     std::vector<float> rows(chosen.size() * dimension);
                     for (std::size_t i = 0; i < chosen.size(); ++i)
                         read_exact(store.shape,
                                    store.exact.data() + live[chosen[i]] * store.shape.exact_bytes(),
                                    rows.data() + i * dimension);
                     return rows;
                 }),
                                 dimension);
             })
        .def("real_queries",
             [](Handle& self) {
                 return table_of(self.look([](Index& index) { return index.calibration().real; }),
                                 std::size_t(self.index->store().shape.dimension));
             })
        .def("highest",
             [](Handle& self) { return self.look([](Index& index) { return index.store().highest; }); })
        .def("__len__", [](Handle& self) { return self.look([](Index& index) { return index.count(); }); })
        .def("changed",
             [](Handle& self) { return self.look([](Index& index) { return index.calibration().changed; }); })
        .def("exact_kind",
             [](Handle& self) {
                 return self.look([](Index& index) { return int(index.store().shape.exact); });
             })
        .def("points",
             [](Handle& self) {
                 const Calibration calibration = self.look([](Index& index) { return index.calibration(); });
                 nb::list points;
                 for (const Measured& p : calibration.points)
                     points.append(nb::make_tuple(int(p.settings.engine), p.settings.effort, p.settings.depth,
                                                  p.settings.slack, p.selectivity, p.recall, p.lower,
                                                  p.seconds, calibration.price(p)));
                 return points;
             })
        .def("facts", [](Handle& self) {
            struct Numbers {
                Shape shape;
                std::uint64_t count, places, removed, repaired, seed, changed, measured;
                std::uint32_t lists, entries;
                std::size_t longer;
                bool graph;
                double build_seconds;
                float noise;
                MemoryUse use;
                Counters counters;
            };
            const Numbers n = self.look([](Index& index) {
                const Store& store = index.store();
                return Numbers{store.shape,
                               store.count,
                               store.slots(),
                               store.dead_count,
                               store.repaired,
                               store.seed,
                               index.calibration().changed,
                               index.calibration().queries,
                               store.lists.count,
                               store.entries.count,
                               store.long_slots.size() / sizeof(Slot),
                               store.has_graph(),
                               store.build_seconds,
                               store.noise,
                               index.memory(),
                               index.counters()};
            });
            nb::dict d;
            d["count"] = n.count;
            d["dimension"] = n.shape.dimension;
            d["metric"] = int(n.shape.metric);
            d["exact"] = int(n.shape.exact);
            d["reduced"] = n.shape.reduced;
            d["scan_bits"] = n.shape.scan_bits;
            d["sketch_bits"] = n.shape.sketch_bits;
            d["lists"] = n.lists;
            d["graph"] = n.graph;
            d["entries"] = n.entries;
            d["places"] = n.places;
            d["removed"] = n.removed;
            d["repaired"] = n.repaired;
            d["longer"] = n.longer;
            d["seed"] = n.seed;
            d["build_seconds"] = n.build_seconds;
            d["noise"] = n.noise;
            d["instruction_set"] = self.index->instruction_set();
            d["modules"] = self.replaced;
            d["calibration_queries"] = n.measured;
            d["changed"] = n.changed;
            nb::dict memory;
            memory["codes"] = n.use.codes;
            memory["sketches"] = n.use.sketches;
            memory["vectors"] = n.use.vectors;
            memory["graph"] = n.use.graph;
            memory["lists"] = n.use.lists;
            memory["ids"] = n.use.ids;
            memory["other"] = n.use.other;
            memory["total"] = n.use.total();
            d["memory"] = memory;
            nb::dict work;
            work["blocks"] = n.counters.blocks;
            work["sketches"] = n.counters.sketches;
            work["refined"] = n.counters.refined;
            work["hops"] = n.counters.hops;
            d["counters"] = work;
            return d;
        });
    m.def("instruction_sets", &usable_instruction_sets);
}
