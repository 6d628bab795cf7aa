// The launcher's command line. All of it comes from the trusted parent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "limits.hpp"

namespace outpace {

enum class Mode { exec, function, command, probe };

struct Options {
    Mode mode = Mode::probe;
    int namespaces = -1;  // descriptor of the jail's description
    std::optional<Identity> identity;
    Limits limits;
    std::uint64_t threads = 1;
    const char* folder = nullptr;  // where the program starts, as seen from inside the jail
    bool allow_fork = false;
    bool show_processes = false;  // leave /proc readable, for a program that is trusted
    int socket = -1;
    int input = -1;
    int output = -1;
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    std::uint64_t populate_input = 0;  // how much of the regions to map before anything stands in them
    std::uint64_t populate_output = 0;
    std::uint64_t freed = 0;  // the largest block that callers make and free, as malloc is to know
    // The program and its arguments, ending in nullptr; or the library alone.
    std::vector<char*> target;
};

// Exits with a message when the command line cannot be understood.
Options parse_options(int argc, char** argv);

}  // namespace outpace
