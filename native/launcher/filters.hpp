// Which system calls are left to whom.
//
// program   what a compiler, a shell or a Python worker may do. Unlisted calls do not exist (ENOSYS, so that
//           C libraries fall back), hostile ones are refused (EPERM).
// loading   a function worker while the dynamic loader and the candidate's constructors run: may read files,
//           may not write, fork or execute. What is not listed is trapped and reported.
// calling   the same worker afterwards: memory, clocks, its open descriptors, nothing else.
//
// A constructor may never return and serve the judge itself, so `loading` is the boundary that holds against
// a hostile library; `calling` narrows it further for everybody whose constructors do return.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace outpace {

struct ProgramRights {
    bool fork;
    bool threads;
    // When set, execve works only with its path at this very address: once, by the launcher. The new
    // program has another address space and cannot guess it.
    const char* only_path = nullptr;
};

// Filters know the pid of the process they are made in, and must be installed there.
std::vector<sock_filter> program_filter(const ProgramRights& rights);
std::vector<sock_filter> loading_filter(bool threads);
std::vector<sock_filter> calling_filter(bool threads);

// A copy of `path` at an address that the program executed from it cannot know.
const char* hide_path(const char* path);

}  // namespace outpace
