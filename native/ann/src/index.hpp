// Index: a store with its slots, its calibration and its lock; what the Python class calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "build.hpp"
#include "calibration.hpp"
#include "id_table.hpp"
#include "lock.hpp"
#include "store.hpp"

namespace outpace::ann {

// Which vectors a search may return: what the user said, and the slots that it means at one moment of one
// index.
struct Filter {
    std::vector<bool> mask;  // by id; empty when `ids` says it
    std::vector<Id> ids;
    bool by_mask = false;
    std::uint64_t moment = ~std::uint64_t(0);  // of the index that `allowed` was made for
    std::vector<std::uint32_t> allowed;        // one word per block
    std::uint64_t count = 0, blocks = 0;       // slots allowed, and blocks that hold some
    std::shared_mutex lock;  // searches share it; the one that meets a new moment alone makes the slots again
};

// What is meant where nothing is said.
inline constexpr float usual_recall = 0.95f;

// How the caller says how hard to look: a recall to reach, or an effort.
struct Wanted {
    std::optional<float> recall;
    std::optional<int> effort;
    std::optional<int> depth;
    std::optional<Engine> engine;
};

struct MemoryUse {
    std::size_t codes = 0, sketches = 0, vectors = 0, graph = 0, lists = 0, ids = 0, other = 0;
    std::size_t total() const { return codes + sketches + vectors + graph + lists + ids + other; }
};

class Index {
  public:
    Index(Store store, Slots slots, std::string instruction_set);
    ~Index();

    // Answers in rows of k; places without an answer hold id -1 and an infinite distance.
    void search(const Source& queries, std::size_t k, const Wanted& wanted, Filter* filter, int threads,
                Id* ids, float* distances);

    // `holder`: what exact rows must be able to hold for these vectors; the index changes to it if they
    // cannot.
    void add(const Source& vectors, const Id* ids, int threads, Scalar holder);
    void add(const Source& vectors, const Id* ids, int threads) {
        add(vectors, ids, threads, store_.shape.exact);
    }
    void remove(const Id* ids, std::size_t count, int threads);
    bool contains(Id id);
    // Gives back what can be made again when it is needed: the way from ids to slots, and room for queries.
    void shrink();

    // Measures recall against effort with these queries. `stored`: they are vectors of the index, each of
    // which finds itself, which then does not count. `real`: they are the user's, and kept.
    void calibrate(const Source& queries, bool stored, bool real, int threads, const Progress& progress);
    // The vectors that were added last are part of what was measured, as those held out for it are.
    void forget_changes() {
        const std::scoped_lock both(writer_, lock_);
        calibration_.changed = 0;
    }

    // Exact nearest neighbours by comparing with every vector, in the store's own precision.
    void exact_search(const Source& queries, std::size_t k, const std::uint32_t* allowed, int threads,
                      Id* ids, float* distances, const Report& report = {});

    std::uint64_t count() const { return store_.count; }
    const Store& store() const { return store_; }
    const Calibration& calibration() const { return calibration_; }
    void set_calibration(Calibration calibration) { calibration_ = std::move(calibration); }
    const std::string& instruction_set() const { return instruction_set_; }
    MemoryUse memory() const;
    Counters counters() const;
    // For a short look, which a change waits for; searches that come after the change wait too.
    ReadWriteLock& lock() { return lock_; }
    // For a long look: changes wait, searches go on.
    [[nodiscard]] std::unique_lock<std::mutex> unchanging() { return std::unique_lock(writer_); }
    Settings settings_for(const Wanted& wanted, std::size_t k, const Filter* filter) const;
    // Settings that were measured for the nearest ten, for `near` of `there` vectors.
    Settings for_more(Settings settings, double near, double there, float stretch) const;
    void drop_graph();

  private:
    struct Workspace;
    struct Examination;
    class Borrowed;  // a workspace taken from the pool for the time of a call

    Measured measure(Workspace& work, const Examination& exam, const Settings& settings) const;
    // How much more than the rule of thumb the nearest hundred need of this engine.
    float stretch(Workspace& work, const Examination& exam, Engine engine, const Calibration& next) const;
    void sweep(Workspace& work, const Examination& exam, Engine engine, std::vector<Measured>& points,
               const Report& report) const;
    void prepare(Workspace& work, const Ground& ground, const float* query, std::size_t number) const;
    std::size_t search_one(Workspace& work, std::size_t k, const Settings& settings, float recall,
                           const Filter* filter, Id* ids, float* distances) const;
    std::size_t candidates(Workspace& work, const Ground& ground, std::size_t near, Settings settings,
                           float recall, const Filter* filter, const Key** out) const;
    std::size_t with_long(Workspace& work, const Filter* filter, const Key** kept, std::size_t count) const;
    bool lies_elsewhere(Workspace& work, const Ground& ground, const Filter& filter) const;
    std::shared_lock<std::shared_mutex> current(Filter& filter);
    void resolve(Filter& filter);
    void changed();
    void insert(const float* vector, Id id, Workspace& work);
    std::uint32_t block_with_room(std::uint32_t list, std::uint32_t* last) const;
    void note_length(Slot slot, const float* vector);
    void link(Slot slot, const float* reduced, Workspace& work);
    std::uint32_t new_block();
    void find_spare();
    void widen(Scalar kind);
    void consolidate(int threads);
    Buffer repaired_rows(int threads) const;
    void move_entries();
    void ensure_table();

    Store store_;
    const Slots slots_;
    const std::string instruction_set_;
    Calibration calibration_;
    std::vector<std::uint32_t> spare_;  // blocks that no list has
    bool thinned_ = true;               // since `spare_` was filled, blocks may have become empty
    IdTable table_;
    std::mutex table_lock_;  // for its first building alone; afterwards it changes as the store does
    ReadWriteLock lock_;
    std::mutex writer_;     // one change at a time, also between the short times it holds lock_
    std::uint64_t moment_;  // tells filters to look again; no two indexes share one
    mutable std::mutex pool_lock_;
    mutable std::vector<std::unique_ptr<Workspace>> pool_;
};

// The checks that every array of vectors passes; throws BadArgument.
// `first` is the number of the first row in what the user gave.
void check_vectors(const Source& source, Metric metric, const char* what, std::size_t first = 0);

}  // namespace outpace::ann
