// Threads: run a pure function over ranges; results never depend on how many threads there were.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace outpace::ann {

// Calls work(begin, end) for chunks of [0, count). What a chunk writes may depend on its items alone.
template <class Work>
void parallel(std::size_t count, int threads, std::size_t chunk, const Work& work) {
    const std::size_t chunks = (count + chunk - 1) / chunk;
    const std::size_t workers = std::min<std::size_t>(std::size_t(std::max(threads, 1)), chunks);
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex lock;
    const auto run = [&] {
        try {
            for (std::size_t i; (i = next.fetch_add(1)) < chunks;)
                work(i * chunk, std::min(count, (i + 1) * chunk));
        } catch (...) {
            next = chunks;
            const std::lock_guard guard(lock);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < workers; ++i) {
        try {
            helpers.emplace_back(run);
        } catch (...) {
            break;  // fewer threads than asked for is slower, not wrong
        }
    }
    run();
    for (auto& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace outpace::ann
