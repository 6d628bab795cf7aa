// Threads: run a pure function over ranges; results never depend on how many threads there were.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace outpace::ann {

// Told how much is done, in [0, 1], always by the thread that called; throws to stop the work.
using Report = std::function<void(double done)>;

// Calls work(begin, end) for chunks of [0, count). What a chunk writes may depend on its items alone.
template <class Work>
void parallel(std::size_t count, int threads, std::size_t chunk, const Report& report, const Work& work) {
    const std::size_t chunks = (count + chunk - 1) / chunk;
    const std::size_t workers = std::min<std::size_t>(std::size_t(std::max(threads, 1)), chunks);
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex lock;
    const auto run = [&](bool reports) {
        try {
            for (std::size_t i; (i = next.fetch_add(1)) < chunks;) {
                if (reports) report(double(i) / double(chunks));
                work(i * chunk, std::min(count, (i + 1) * chunk));
            }
        } catch (...) {
            next = chunks;
            const std::lock_guard guard(lock);
            if (!failure) failure = std::current_exception();
        }
    };
    // Helpers may have taken every chunk before this thread takes its first: a stage is named all the same.
    if (report && count != 0) report(0.0);
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < workers; ++i) {
        try {
            helpers.emplace_back(run, false);
        } catch (...) {
            break;  // fewer threads than asked for is slower, not wrong
        }
    }
    run(bool(report));
    for (auto& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

template <class Work>
void parallel(std::size_t count, int threads, std::size_t chunk, const Work& work) {
    parallel(count, threads, chunk, Report(), work);
}

}  // namespace outpace::ann
