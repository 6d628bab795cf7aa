#include "process.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace outpace {
namespace {

std::uint64_t nanoseconds(clockid_t clock) {
    timespec now{};
    if (clock_gettime(clock, &now) != 0) {
        return 0;
    }
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// The content of a small file of /proc; empty when it is gone.
std::string read_small(const std::string& path) {
    char text[4096];
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return {};
    }
    const ssize_t length = read(file, text, sizeof text);
    close(file);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace

std::uint64_t wall_clock() {
    return nanoseconds(CLOCK_MONOTONIC);
}

std::uint64_t cpu_clock(std::int32_t pid) {
    // ~pid << 3 | CPUCLOCK_SCHED; see clock_getcpuclockid(3).
    return nanoseconds((~pid << 3) | 2);
}

std::uint64_t own_cpu_clock() {
    return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

std::uint64_t run_delay(const std::string& process) {
    unsigned long long running = 0;
    unsigned long long waiting = 0;
    // A kernel without schedstats: waits count as the worker's own time, for both sides alike.
    std::sscanf(read_small("/proc/" + process + "/schedstat").c_str(), "%llu %llu", &running, &waiting);
    return waiting;
}

std::uint64_t resident_bytes(std::int32_t pid) {
    const std::string text = read_small("/proc/" + std::to_string(pid) + "/status");
    std::uint64_t kilobytes = 0;
    // At the start of a line: a process may give itself any name, but none with a newline.
    for (const char* name : {"\nRssAnon:", "\nRssShmem:"}) {
        const auto at = text.find(name);
        if (at != std::string::npos) {
            kilobytes += std::strtoull(text.c_str() + at + std::strlen(name), nullptr, 10);
        }
    }
    return kilobytes * 1024;
}

char state_of(const std::string& process) {
    const std::string text = read_small("/proc/" + process + "/stat");
    // Behind the name, which may itself hold any letter and bracket.
    const auto end = text.rfind(')');
    return end == std::string::npos || end + 2 >= text.size() ? '?' : text[end + 2];
}

}  // namespace outpace
