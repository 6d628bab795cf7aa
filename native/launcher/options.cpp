#include "options.hpp"

#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "failure.hpp"

namespace outpace {
namespace {

constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();

std::uint64_t number(std::string_view name, const char* text, std::uint64_t most = any_number) {
    std::uint64_t value = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, value);
    if (error != std::errc{} || stop != end || text == end || value > most) {
        fail(std::string(name) + " wants a number up to " + std::to_string(most) + ", got '" + text + "'", 0);
    }
    return value;
}

int descriptor(std::string_view name, const char* text) {
    const auto value = static_cast<int>(number(name, text, std::numeric_limits<int>::max()));
    if (value < 3) {
        fail(std::string(name) + " must not be one of the standard descriptors 0 to 2", 0);
    }
    return value;
}

void require(bool condition, const char* what) {
    if (!condition) {
        fail(what, 0);
    }
}

Mode mode_named(std::string_view name) {
    if (name == "exec") {
        return Mode::exec;
    }
    if (name == "function") {
        return Mode::function;
    }
    if (name == "command") {
        return Mode::command;
    }
    if (name == "probe") {
        return Mode::probe;
    }
    fail("unknown mode '" + std::string(name) + "' (exec, function, command or probe)", 0);
}

void take_target(Options& options, int argc, char** argv, int next) {
    switch (options.mode) {
        case Mode::probe:
            require(next == argc, "probe takes no arguments");
            return;
        case Mode::function:
            require(next + 1 == argc, "function wants exactly one LIB");
            break;
        case Mode::exec:
        case Mode::command:
            require(next + 1 < argc && std::strcmp(argv[next], "--") == 0, "expected '-- PROGRAM ARGS...'");
            ++next;
            // Not searched for in PATH, and a command runs in another folder than the launcher's.
            require(argv[next][0] == '/', "PROGRAM must be an absolute path");
            break;
    }
    options.target.assign(argv + next, argv + argc);
    options.target.push_back(nullptr);
}

void check(const Options& options) {
    if (options.mode == Mode::function || options.mode == Mode::command) {
        require(options.socket >= 0, "a server needs --socket");
        require(options.input >= 0 && options.input_bytes > 0, "a server needs --input and --input-bytes");
        require(options.output >= 0 && options.output_bytes > 0,
                "a server needs --output and --output-bytes");
    }
    if (options.mode == Mode::function) {
        require(!options.allow_fork, "function does not take --allow-fork");
    }
    if (options.mode != Mode::exec) {
        require(!options.show_processes, "only exec takes --show-processes");
    }
    require(options.threads > 0, "--threads must be at least 1");
}

}  // namespace

Options parse_options(int argc, char** argv) {
    Options options;
    std::optional<uid_t> uid;
    std::optional<gid_t> gid;
    // The largest id is -1, which setresuid reads as "leave it alone".
    constexpr std::uint64_t largest_id = std::numeric_limits<uid_t>::max() - 1;
    int next = 1;
    while (next < argc && std::strncmp(argv[next], "--", 2) == 0) {
        const std::string_view name = argv[next++];
        if (name == "--allow-fork") {
            options.allow_fork = true;
            continue;
        }
        if (name == "--show-processes") {
            options.show_processes = true;
            continue;
        }
        if (next == argc) {
            fail("option " + std::string(name) + " is unknown or lacks its value", 0);
        }
        const char* value = argv[next++];
        if (name == "--namespaces") {
            options.namespaces = descriptor(name, value);
        } else if (name == "--uid") {
            uid = static_cast<uid_t>(number(name, value, largest_id));
        } else if (name == "--gid") {
            gid = static_cast<gid_t>(number(name, value, largest_id));
        } else if (name == "--cpu-seconds") {
            options.limits.cpu_seconds = number(name, value);
        } else if (name == "--address-space") {
            options.limits.address_space = number(name, value);
        } else if (name == "--file-size") {
            options.limits.file_size = number(name, value);
        } else if (name == "--processes") {
            options.limits.processes = number(name, value);
        } else if (name == "--open-files") {
            options.limits.open_files = number(name, value);
        } else if (name == "--stack") {
            options.limits.stack = number(name, value);
        } else if (name == "--chdir") {
            options.folder = value;
        } else if (name == "--threads") {
            options.threads = number(name, value);
        } else if (name == "--socket") {
            options.socket = descriptor(name, value);
        } else if (name == "--input") {
            options.input = descriptor(name, value);
        } else if (name == "--output") {
            options.output = descriptor(name, value);
        } else if (name == "--input-bytes") {
            options.input_bytes = number(name, value);
        } else if (name == "--output-bytes") {
            options.output_bytes = number(name, value);
        } else if (name == "--populate-input") {
            options.populate_input = number(name, value);
        } else if (name == "--populate-output") {
            options.populate_output = number(name, value);
        } else if (name == "--freed") {
            options.freed = number(name, value);
        } else {
            fail("unknown option " + std::string(name), 0);
        }
    }
    require(uid.has_value() == gid.has_value(), "--uid and --gid go together");
    if (uid) {
        options.identity = Identity{*uid, *gid};
    }
    require(next < argc, "no mode given (exec, function, command or probe)");
    options.mode = mode_named(argv[next]);
    take_target(options, argc, argv, next + 1);
    check(options);
    return options;
}

}  // namespace outpace
