// What the kernel tells of a worker: its clocks, its memory and whether it runs.
#pragma once

#include <cstdint>
#include <string>

namespace outpace {

// Nanoseconds.
std::uint64_t wall_clock();

// CPU time of a process, all of its threads together; 0 when it is gone.
std::uint64_t cpu_clock(std::int32_t pid);

// CPU time of the calling thread.
std::uint64_t own_cpu_clock();

// How long a process or thread, as /proc names it, had to wait for a core.
std::uint64_t run_delay(const std::string& process);

// Memory of its own. Pages of files are not: a worker could map a system file, which costs next to nothing,
// and give its pages back while it leaks others.
std::uint64_t resident_bytes(std::int32_t pid);

// The letter of its state; '?' when it is gone.
char state_of(const std::string& process);

}  // namespace outpace
