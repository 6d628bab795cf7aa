// Landlock: takes from a process and its children the right to write anywhere but below one folder.
#pragma once

namespace outpace {

// For the calling thread, for good. Where the kernel has no Landlock nothing changes; `probe` tells the
// judge.
void write_only_below(int folder);

}  // namespace outpace
