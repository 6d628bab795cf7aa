#include "failure.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace outpace {

void fail(const std::string& what, int error) {
    const std::string reason = error == 0 ? "" : std::string(": ") + std::strerror(error);
    // One write, so that lines of several processes do not mix.
    dprintf(STDERR_FILENO, "outpace-launch: %s%s\n", what.c_str(), reason.c_str());
    _exit(exit_failure);
}

}  // namespace outpace
