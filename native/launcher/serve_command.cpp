// Theory of operation: the command worker.
//
// The server makes each call in a folder of its own, under a filter and limits that only the child takes,
// and stays out of its reach: undumpable, with its socket closed and its regions unmapped in the child.
// Standard input and output are memfds, so no call can find those of another by name.
//
// The server inherits orphans: whatever a call leaves behind is killed and reaped before the answer is given.
// CPU time is what the kernel adds up for reaped children. A candidate that ignores SIGCHLD has its own
// children reaped unseen, and their time is missing from that sum: the judge must look at wall time, or at
// the cgroup's account, as well.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "bpf.hpp"
#include "channel.hpp"
#include "command_calls.hpp"
#include "failure.hpp"
#include "filters.hpp"
#include "landlock.hpp"
#include "process_tree.hpp"
#include "serve.hpp"

namespace outpace {
namespace {

std::uint64_t nanoseconds(const timeval& time) {
    return (static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec)) *
           1000;
}

std::uint64_t cpu_of_children() {
    rusage used{};
    getrusage(RUSAGE_CHILDREN, &used);
    return nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime);
}

std::uint64_t wall_clock() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// How long a process had to wait for a core, read when it has ended but is not yet reaped: the machine's
// doing, which the judge takes off the wall time. 0 where the kernel does not tell.
std::uint64_t run_delay_at_end(pid_t child) {
    siginfo_t ended{};
    while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    std::ifstream account("/proc/" + std::to_string(child) + "/schedstat");
    std::uint64_t running = 0;
    std::uint64_t waiting = 0;
    account >> running >> waiting;
    return account ? waiting : 0;
}

class CommandServer {
  public:
    explicit CommandServer(const Options& options)
        : options_(options),
          judge_(options.socket),
          input_(map_region(options.input, options.input_bytes, false)),
          output_(map_region(options.output, options.output_bytes, true)),
          path_(hide_path(options.target.front())),
          server_(getpid()) {
        // A child has no business with the regions, and copying their page tables would take time.
        madvise(input_.base, input_.bytes, MADV_DONTFORK);
        madvise(output_.base, output_.bytes, MADV_DONTFORK);
        allow_many_files();
    }

    [[noreturn]] void serve() {
        judge_.send(0, Status::hello);
        judge_.send(0, Status::ready);
        for (;;) {
            const Request request = judge_.receive();
            try {
                answer(request);
                judge_.send(request.nonce, Status::done);
            } catch (const Trouble& trouble) {
                calls_.clear();
                judge_.send(request.nonce, trouble.status, trouble.call, trouble.text);
            }
        }
    }

  private:
    // Each loaded call holds a few descriptors; the children's limit is set in the children.
    static void allow_many_files() {
        rlimit files{};
        if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
            files.rlim_cur = files.rlim_max;
            setrlimit(RLIMIT_NOFILE, &files);
        }
    }

    void answer(const Request& request) {
        switch (static_cast<Verb>(request.verb)) {
            case Verb::load:
                calls_.clear();
                folders_.clear();
                calls_ = load_command_calls(request, input_, output_, folders_);
                return;
            case Verb::go:
                if (calls_.empty()) {
                    throw Trouble{Status::fault, 0, "GO without a LOAD before it"};
                }
                for (std::uint32_t index = 0; index < calls_.size(); ++index) {
                    make_call(calls_[index], index);
                }
                calls_.clear();
                return;
            case Verb::quit:
                folders_.clear();
                _exit(0);
            case Verb::prepare:
                return;  // the regions are the server's alone here, and nobody gains by who touches them
                         // first
            case Verb::setup:
                break;
        }
        throw Trouble{Status::fault, 0, "a command worker knows LOAD, GO and QUIT"};
    }

    void make_call(const CommandCall& call, std::uint32_t index) {
        Descriptor captured;
        for (const auto& part : call.results) {
            if (part.kind == static_cast<std::uint32_t>(PartKind::standard_output)) {
                captured = Descriptor(memfd_create("stdout", MFD_CLOEXEC));
            }
        }
        std::vector<char*> arguments(options_.target.begin(), options_.target.end() - 1);
        for (const auto& argument : call.arguments) {
            arguments.push_back(const_cast<char*>(argument.c_str()));
        }
        arguments.push_back(nullptr);

        const std::uint64_t cpu_before = cpu_of_children();
        const std::uint64_t wall_before = wall_clock();
        const pid_t child = fork();
        if (child < 0) {
            throw Trouble{Status::call_failed, index, std::string("cannot fork: ") + std::strerror(errno)};
        }
        if (child == 0) {
            become_call(call, captured, arguments);
        }
        // With several processes orphans must be reaped meanwhile, and one delay would not tell the whole
        // story.
        const std::uint64_t delay = options_.allow_fork ? 0 : run_delay_at_end(child);
        const int status = processes_.wait_and_clear(child);
        // Taken when all of it is dead, so that nothing is gained by ending before the work does.
        const std::uint64_t usage[3] = {cpu_of_children() - cpu_before, wall_clock() - wall_before, delay};
        for (const auto& part : call.results) {
            give_result(part, call, captured, status, usage);
        }
    }

    [[noreturn]] void become_call(const CommandCall& call, const Descriptor& captured,
                                  const std::vector<char*>& arguments) {
        if (fchdir(call.folder.number()) != 0) {
            fail("cannot enter the call's folder");
        }
        if ((call.standard_input.open() && dup2(call.standard_input.number(), STDIN_FILENO) < 0) ||
            (captured.open() && dup2(captured.number(), STDOUT_FILENO) < 0)) {
            fail("cannot redirect standard input and output");
        }
        // Nothing may pass from one call to the next, so a call writes in its own folder alone.
        write_only_below(call.folder.number());
        setenv("TMPDIR", ".", 1);
        close_descriptors_from(3);
        apply_limits(options_.limits);
        die_with_parent(server_);
        install(program_filter({.fork = options_.allow_fork,
                                .threads = options_.threads > 1,
                                .only_path = options_.allow_fork ? nullptr : path_}));
        execve(path_, arguments.data(), environ);
        fail(path_);
    }

    void give_result(const Part& part, const CommandCall& call, const Descriptor& captured, int status,
                     const std::uint64_t (&usage)[3]) {
        std::byte* room = output_.base + part.out_offset;
        switch (static_cast<PartKind>(part.kind)) {
            case PartKind::standard_output:
                return give_content(captured, room, part.out_bytes);
            case PartKind::output_file: {
                const std::string name(reinterpret_cast<const char*>(input_.base + part.name_offset),
                                       part.name_bytes);
                // Non-blocking, or a FIFO under that name would keep the server waiting.
                const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
                return give_content(Descriptor(openat(call.folder.number(), name.c_str(), flags)), room,
                                    part.out_bytes);
            }
            case PartKind::exit_status: {
                const std::int64_t code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                std::memcpy(room, &code, sizeof code);
                return;
            }
            case PartKind::usage:
                std::memcpy(room, usage, sizeof usage);
                return;
            default:
                return;
        }
    }

    // The length and then the content of a regular file, or why there is none. Nobody is left to change it.
    static void give_content(const Descriptor& file, std::byte* room, std::uint64_t bytes) {
        std::byte* content = room + sizeof(std::uint64_t);
        const std::uint64_t most = bytes - sizeof(std::uint64_t);
        struct stat status = {};
        std::uint64_t length = output_missing;
        if (file.open() && fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode)) {
            length = static_cast<std::uint64_t>(status.st_size);
            if (length > most) {
                length = output_too_long;
            }
        }
        std::uint64_t done = 0;
        while (length < output_missing && done < length) {
            const ssize_t got = pread(file.number(), content + done, length - done, static_cast<off_t>(done));
            if (got > 0) {
                done += static_cast<std::uint64_t>(got);
            } else if (got == 0 || errno != EINTR) {
                length = output_missing;
            }
        }
        std::memcpy(room, &length, sizeof length);
    }

    const Options& options_;
    Channel judge_;
    Region input_;
    Region output_;
    const char* path_;
    pid_t server_;
    ProcessTree processes_;
    CallFolders folders_;
    std::vector<CommandCall> calls_;
};

}  // namespace

void serve_command(const Options& options) {
    CommandServer(options).serve();
}

}  // namespace outpace
