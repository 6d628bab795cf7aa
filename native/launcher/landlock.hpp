// Landlock: takes from a process and its children the right to write anywhere but below one folder, and to
// read about processes. Where the kernel has no Landlock nothing changes; `probe` tells the judge.
#pragma once

#include "descriptor.hpp"

namespace outpace {

// For the calling thread, for good.
void write_only_below(int folder);

// Rules under which nothing below /proc can be read but cpuinfo. The mount table and the first process's
// command line tell of folders outside the jail and of the judge's pid; the rest tells what other processes
// do.
Descriptor rules_that_hide_processes();

// Takes rules on, for the calling thread and for good.
void take_on(const Descriptor& rules);

}  // namespace outpace
