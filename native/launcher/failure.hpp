// How the launcher gives up: one line on stderr and exit status 125, which no candidate has produced
// because none has been loaded yet.
#pragma once

#include <cerrno>
#include <string>

namespace outpace {

constexpr int exit_forbidden = 124;  // a trapped system call, after FORBIDDEN was sent
constexpr int exit_failure = 125;    // the launcher itself could not go on

// Prints "outpace-launch: WHAT: strerror(error)" and exits. With error 0 only WHAT is printed.
[[noreturn]] void fail(const std::string& what, int error = errno);

}  // namespace outpace
