// The processes that one call of a command starts, and the end of all of them.
#pragma once

#include <sys/types.h>

#include "descriptor.hpp"

namespace outpace {

class ProcessTree {
  public:
    // Makes this process the one that inherits orphans of its descendants. Exits if /proc cannot list
    // children.
    ProcessTree();

    // Waits for `child` and returns its wait status. Then kills and reaps everything it left behind: when
    // this returns, this process has no children at all.
    int wait_and_clear(pid_t child) const;

  private:
    bool kill_children() const;

    Descriptor children_;
};

}  // namespace outpace
