// outpace-launch: the jail's inner half, and in the fallback jail its outer half too.
//
// Theory of operation. The judge starts this program inside a jail (bubblewrap's, or the one that
// --namespaces builds) with a socket and two shared regions. In this order it
//   1. closes every descriptor it was not told of and forgets the judge's signal settings and umask,
//   2. ties its life to its parent's,
//   3. builds namespaces if asked to; what follows happens in the innermost process,
//   4. sets limits, becomes the unprivileged user, gives up all capabilities,
//   5. installs a system call filter,
//   6. executes a program, or loads a library and serves its calls, or serves calls of a command.
// Until step 6 only trusted code and trusted arguments are involved, and every failure is one line on stderr
// and exit status 125. From step 6 on the candidate is assumed to own everything it can reach.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf.hpp"
#include "channel.hpp"
#include "devices.hpp"
#include "failure.hpp"
#include "filters.hpp"
#include "landlock.hpp"
#include "limits.hpp"
#include "namespaces.hpp"
#include "options.hpp"
#include "probe.hpp"
#include "serve.hpp"

namespace outpace {
namespace {

std::vector<int> named_descriptors(const Options& options) {
    std::vector<int> named;
    for (const int descriptor : {options.socket, options.input, options.output}) {
        if (descriptor >= 0) {
            named.push_back(descriptor);
        }
    }
    return named;
}

[[noreturn]] void execute(const Options& options) {
    for (const int descriptor : named_descriptors(options)) {
        if (fcntl(descriptor, F_SETFD, 0) != 0) {
            fail("cannot pass descriptor " + std::to_string(descriptor) + " on");
        }
    }
    const char* path = hide_path(options.target.front());
    if (!options.show_processes) {
        take_on(rules_that_hide_processes());
    }
    install(program_filter({.fork = options.allow_fork,
                            .threads = options.threads > 1,
                            .only_path = options.allow_fork ? nullptr : path}));
    if (options.socket >= 0) {
        Channel(options.socket).greet();
    }
    execve(path, options.target.data(), environ);
    fail(path);
}

[[noreturn]] void launch(const Options& options) {
    pid_t parent = getppid();
    std::vector<int> keep = named_descriptors(options);
    if (options.namespaces >= 0) {
        keep.push_back(options.namespaces);
    }
    close_other_descriptors(keep);
    reset_signals();
    umask(022);  // the judge's could make folders of the jail unreadable to the user inside
    die_with_parent(parent);
    if (options.namespaces >= 0) {
        enter_namespaces(options.namespaces);
        parent = getppid();
    }
    forbid_core_dumps();
    forget_device_times();
    // A command's limits hold for each call of it, not for the server that makes them all.
    if (options.mode != Mode::command) {
        apply_limits(options.limits);
    }
    drop_privileges(options.identity);
    if (options.folder != nullptr && chdir(options.folder) != 0) {
        fail("cannot enter " + std::string(options.folder));
    }
    die_with_parent(parent);
    switch (options.mode) {
        case Mode::function:
            become_unreadable();
            serve_function(options);
        case Mode::command:
            become_unreadable();
            serve_command(options);
        default:
            execute(options);
    }
}

}  // namespace
}  // namespace outpace

int main(int argc, char** argv) {
    const auto options = outpace::parse_options(argc, argv);
    if (options.mode == outpace::Mode::probe) {
        outpace::probe();
        return 0;
    }
    outpace::launch(options);
}
