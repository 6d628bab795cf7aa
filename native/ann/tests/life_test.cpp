// Life test: searches go on while vectors come and go; for the thread sanitizer, and right without it.
//
//     life_test ROUNDS     what the changing thread does ROUNDS times, while the others search
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "../src/file.hpp"
#include "../src/index.hpp"
#include "check.hpp"
#include "samples.hpp"

namespace outpace::ann::tests {
namespace {

constexpr SampleShape shape{24, Scalar::f32, Metric::l2, true, 300, 6, true};  // in half precision at first
constexpr std::uint64_t shape_seed = 5;
constexpr Id first_passing = 10000;  // ids of vectors that come and go; those below always stay

// One thread's searches, until the changes are over.
void keep_searching(Index& index, Filter& by_id, Filter& by_mask, std::uint64_t seed,
                    const std::atomic<bool>& over) {
    Random random(seed);
    constexpr std::size_t k = 10;
    do {
        const Rows queries = random_rows(shape.kind, 3, shape.dimension, random);
        std::vector<Id> ids(queries.source.count * k);
        std::vector<float> distances(ids.size());
        Wanted wanted;
        if (random.below(4)) wanted.effort = int(1 + random.below(60));
        wanted.engine = random.below(2) ? Engine::graph : Engine::partitions;
        Filter* const filters[] = {nullptr, &by_id, &by_mask};
        Filter* const filter = filters[random.below(3)];
        index.search(queries.source, k, wanted, filter, 1, ids.data(), distances.data());
        if (!filter && !random.below(8))
            index.exact_search(queries.source, k, nullptr, 1, ids.data(), distances.data());
        for (std::size_t i = 0; i < ids.size(); ++i) {
            // A stayer or one that was there at some time; under a filter, stayers alone.
            CHECK(ids[i] >= 0 && (ids[i] < Id(shape.count) || (!filter && ids[i] >= first_passing)),
                  "answer %zu is id %lld", i, static_cast<long long>(ids[i]));
            CHECK(i % k == 0 || distances[i - 1] <= distances[i], "answer %zu is nearer than the one before",
                  i);
        }
        CHECK(index.contains(Id(random.below(shape.count))), "a vector that stays was not there");
    } while (!over);
}

void change(Index& index, int rounds) {
    Random random(7);
    std::vector<Id> passing;
    Id next = first_passing;
    for (int round = 0; round < rounds; ++round) {
        const Rows rows = random_rows(shape.kind, 1 + random.below(40), shape.dimension, random);
        std::vector<Id> ids(rows.source.count);
        std::iota(ids.begin(), ids.end(), next);
        next += Id(ids.size());
        // In the middle come some that half precision cannot hold, as far as the index is told.
        const Scalar holder = round < rounds / 2 ? index.store().shape.exact : Scalar::f32;
        index.add(rows.source, ids.data(), 1 + round % 2, holder);
        passing.insert(passing.end(), ids.begin(), ids.end());
        const std::size_t going = random.below(passing.size() + 1);
        index.remove(passing.data(), going, 1);
        passing.erase(passing.begin(), passing.begin() + std::ptrdiff_t(going));
        CHECK(index.store().count == shape.count + passing.size(), "%zu are there",
              std::size_t(index.store().count));
    }
    index.remove(passing.data(), passing.size(), 1);
}

void keep_saving(Index& index, const std::atomic<bool>& over) {
    do {
        std::shared_ptr<std::vector<std::uint8_t>> bytes;
        {
            const auto still = index.unchanging();
            bytes =
                std::make_shared<std::vector<std::uint8_t>>(save_bytes(index.store(), index.calibration()));
        }
        Buffer aligned;
        aligned.resize(bytes->size());
        std::memcpy(aligned.data(), bytes->data(), bytes->size());
        const Saved saved = load_bytes(bytes, aligned.data(), aligned.size(), true, "saved");
        CHECK(saved.store.count >= shape.count, "%zu were saved", std::size_t(saved.store.count));
        index.counters();
    } while (!over);
}

// Each vector that stayed is its own nearest neighbour, by either engine.
void check_stayers(Index& index) {
    Random random(shape_seed);
    const Rows rows = random_rows(shape.kind, shape.count, shape.dimension, random);
    for (const Engine engine : {Engine::partitions, Engine::graph}) {
        Wanted wanted;
        wanted.engine = engine;
        wanted.effort = 200;
        std::vector<Id> ids(shape.count);
        std::vector<float> distances(shape.count);
        index.search(rows.source, 1, wanted, nullptr, 1, ids.data(), distances.data());
        std::size_t right = 0;
        for (std::size_t i = 0; i < ids.size(); ++i) right += ids[i] == Id(i);
        CHECK(right == shape.count, "engine %d finds %zu of %zu", int(engine), right, shape.count);
    }
}

void run(int rounds) {
    Index index(sample_store(shape, shape_seed), linked_slots(), "linked");
    Filter by_id, by_mask;  // shared by the threads, as one of a user's is
    for (Id id = 0; id < Id(shape.count); id += 2) by_id.ids.push_back(id);
    by_mask.by_mask = true;
    by_mask.mask.assign(shape.count, true);
    std::atomic<bool> over{false};
    std::vector<std::thread> others;
    for (std::uint64_t i = 0; i < 3; ++i)
        others.emplace_back([&, i] { keep_searching(index, by_id, by_mask, i, over); });
    others.emplace_back([&] { keep_saving(index, over); });
    change(index, rounds);
    over = true;
    for (std::thread& other : others) other.join();
    check_stayers(index);
    index.drop_graph();
    change(index, 2);
    CHECK(index.store().count == shape.count, "%zu are left", std::size_t(index.store().count));
}

}  // namespace
}  // namespace outpace::ann::tests

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: life_test ROUNDS\n");
        return 64;
    }
    outpace::ann::tests::run(std::atoi(argv[1]));
    return outpace::ann::tests::verdict();
}
