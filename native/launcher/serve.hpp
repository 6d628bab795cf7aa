// The two servers. Each says HELLO, loads, says READY and answers questions until it is killed.
#pragma once

#include "options.hpp"

namespace outpace {

[[noreturn]] void serve_function(const Options& options);
[[noreturn]] void serve_command(const Options& options);

}  // namespace outpace
