// The outer half of the fallback jail: namespaces and a file system of its own.
#pragma once

namespace outpace {

// Builds the jail that the file behind `description` tells of and returns in a process inside it, the only
// child of its pid 1. The calling process never returns: it waits and exits as the inner one does.
void enter_namespaces(int description);

}  // namespace outpace
