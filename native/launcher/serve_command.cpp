// Theory of operation: the command worker.
//
// The server makes each call in a folder of its own, under a filter and limits that only the child takes,
// and stays out of its reach: undumpable, with its socket closed and its regions unmapped in the child.
// Standard input and output are memfds, so no call can find those of another by name; standard error is a
// pipe of its own, because what one call writes into a pipe the next one could read from it.
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
#include <atomic>
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

std::uint64_t read_clock(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t wall_clock() {
    return read_clock(CLOCK_MONOTONIC);
}

std::uint64_t own_cpu() {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

constexpr std::uint64_t nowhere = UINT64_MAX;

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
          input_(map_region(options.input, options.input_bytes, false, 0)),
          desk_(map_output(options.output, options.output_bytes, 0)),
          output_(desk_.answers),
          path_(hide_path(options.target.front())),
          server_(getpid()),
          hiding_(rules_that_hide_processes()) {
        // A child has no business with the regions, and copying their page tables would take time.
        madvise(input_.base, input_.bytes, MADV_DONTFORK);
        madvise(desk_.desk, options.output_bytes, MADV_DONTFORK);
        allow_many_files();
    }

    [[noreturn]] void serve() {
        judge_.greet();
        judge_.send(0, Status::ready);
        for (;;) {
            judge_.wait();
            const Request request = desk_.desk->question;
            try {
                answer(request);
                std::atomic_ref(desk_.desk->answered).store(request.nonce, std::memory_order_release);
                if ((request.flags & wants_reply) != 0) {
                    judge_.send(request.nonce, Status::done);
                }
            } catch (const Trouble& trouble) {
                folders_.clear();
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

    // The calls of a question are laid out together: they may know of each other. Nothing of them is left
    // when the answer is given.
    void answer(const Request& request) {
        if ((request.flags & is_setup) != 0) {
            throw Trouble{Status::fault, 0, "a command has no set-up"};
        }
        auto calls = load_command_calls(request, input_, folders_);
        given_ = 0;
        usage_at_ = nowhere;
        for (std::uint32_t index = 0; index < calls.size(); ++index) {
            make_call(calls[index], index);
        }
        // Whoever leaves files behind has them removed at his own cost.
        const std::uint64_t cpu_before = own_cpu();
        const std::uint64_t wall_before = wall_clock();
        calls.clear();  // what they were given goes only with our descriptors
        if (!folders_.clear()) {
            throw Trouble{Status::call_failed, 0, "a call left files behind that cannot be removed"};
        }
        charge(own_cpu() - cpu_before, wall_clock() - wall_before);
        desk_.desk->bytes = given_;
    }

    void charge(std::uint64_t cpu, std::uint64_t wall) {
        if (usage_at_ == nowhere) {
            return;
        }
        std::uint64_t usage[3];
        std::memcpy(usage, output_.base + usage_at_, sizeof usage);
        usage[0] += cpu;
        usage[1] += wall;
        std::memcpy(output_.base + usage_at_, usage, sizeof usage);
    }

    void make_call(const CommandCall& call, std::uint32_t index) {
        Descriptor captured;
        Descriptor written;
        for (const auto& part : call.results) {
            if (part.kind == static_cast<std::uint32_t>(PartKind::standard_output)) {
                captured = Descriptor(memfd_create("stdout", MFD_CLOEXEC));
                written = write_only(captured);
                if (!written.open()) {
                    throw Trouble{Status::call_failed, index,
                                  std::string("cannot make standard output: ") + std::strerror(errno)};
                }
            }
        }
        std::vector<char*> arguments(options_.target.begin(), options_.target.end() - 1);
        for (const auto& argument : call.arguments) {
            arguments.push_back(const_cast<char*>(argument.c_str()));
        }
        arguments.push_back(nullptr);

        int ends[2];
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
            throw Trouble{Status::call_failed, index,
                          std::string("cannot make a pipe: ") + std::strerror(errno)};
        }
        const Descriptor words(ends[0]);
        Descriptor errors(ends[1]);
        const std::uint64_t cpu_before = cpu_of_children();
        const std::uint64_t wall_before = wall_clock();
        const pid_t child = fork();
        if (child < 0) {
            throw Trouble{Status::call_failed, index, std::string("cannot fork: ") + std::strerror(errno)};
        }
        if (child == 0) {
            become_call(call, written, errors, arguments);
        }
        errors = {};
        // With several processes orphans must be reaped meanwhile, and one delay would not tell the whole
        // story.
        const std::uint64_t delay = options_.allow_fork ? 0 : run_delay_at_end(child);
        const int status = processes_.wait_and_clear(child);
        // Taken when all of it is dead, so that nothing is gained by ending before the work does.
        const std::uint64_t usage[3] = {cpu_of_children() - cpu_before, wall_clock() - wall_before, delay};
        pass_on(words);
        refuse_changes(call, index);
        for (const auto& part : call.results) {
            give_result(part, call, captured, status, usage);
        }
    }

    // A given file that a call changes is part of its answer, or it has spoiled what is its caller's.
    void refuse_changes(const CommandCall& call, std::uint32_t index) const {
        for (const auto& given : call.files) {
            const auto gives_it_back = [this, &given](const Part& part) {
                return part.kind == static_cast<std::uint32_t>(PartKind::output_file) &&
                       name_of(part) == given.name;
            };
            if (std::none_of(call.results.begin(), call.results.end(), gives_it_back) && !given.unchanged()) {
                throw Trouble{Status::call_failed, index,
                              "it changed its input file " + given.name + ", which is not among the outputs"};
            }
        }
    }

    std::string name_of(const Part& part) const {
        return {reinterpret_cast<const char*>(input_.base + part.name_offset), part.name_bytes};
    }

    // Standard output as a call gets it. It could not map a pipe or most files either.
    static Descriptor write_only(const Descriptor& file) {
        const std::string path = "/proc/self/fd/" + std::to_string(file.number());
        return Descriptor(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    }

    // What a call wrote to its standard error goes to ours, as much as the judge would show of it.
    static void pass_on(const Descriptor& words) {
        char text[4096];
        const ssize_t length = read(words.number(), text, sizeof text);
        if (length > 0 && write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {
            return;  // the judge has enough of them
        }
    }

    [[noreturn]] void become_call(const CommandCall& call, const Descriptor& written,
                                  const Descriptor& errors, const std::vector<char*>& arguments) {
        if (fchdir(call.folder.number()) != 0) {
            fail("cannot enter the call's folder");
        }
        // One of its own for each call: what is set or locked of an open file lives as long as that does.
        const Descriptor nothing(call.standard_input.open() ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC));
        const Descriptor& given = call.standard_input.open() ? call.standard_input : nothing;
        if (dup2(given.number(), STDIN_FILENO) < 0 ||
            (written.open() && dup2(written.number(), STDOUT_FILENO) < 0) ||
            dup2(errors.number(), STDERR_FILENO) < 0) {
            fail("cannot redirect standard input, output and error");
        }
        // Nothing may pass from one call to the next, so a call writes in its own folder alone.
        write_only_below(call.folder.number());
        take_on(hiding_);
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

    // Results lie one after another behind the desk, each on a multiple of 8.
    void give_result(const Part& part, const CommandCall& call, const Descriptor& captured, int status,
                     const std::uint64_t (&usage)[3]) {
        switch (static_cast<PartKind>(part.kind)) {
            case PartKind::standard_output:
                return give_content(captured, part.out_bytes, call, {});
            case PartKind::output_file: {
                const std::string name = name_of(part);
                return give_content(open_output(call.folder, name), part.out_bytes, call, name);
            }
            case PartKind::exit_status: {
                const std::int64_t code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                return give(&code, sizeof code);
            }
            case PartKind::usage:
                usage_at_ = given_;
                return give(usage, sizeof usage);
            default:
                return;
        }
    }

    // Whether bytes are missing that were never written, only jumped over or made room for. To make zeros of
    // them would be our work, or that of whoever reads the file, and a pipe would not have taken them.
    static bool has_a_hole(const Descriptor& file, off_t length) {
        return length > 0 && lseek(file.number(), 0, SEEK_HOLE) < length;
    }

    // No link is followed, whatever part of the name it stands in: a folder that is a link to another one
    // would make one file of two, or give out what lies outside.
    static Descriptor open_output(const Descriptor& top, std::string_view name) {
        Descriptor place;
        const Descriptor* from = &top;
        for (std::size_t slash; (slash = name.find('/')) != name.npos; name.remove_prefix(slash + 1)) {
            const std::string step(name.substr(0, slash));
            place = Descriptor(
                openat(from->number(), step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
            if (!place.open()) {
                return place;
            }
            from = &place;
        }
        // Non-blocking, or a FIFO under that name would keep the server waiting.
        return Descriptor(openat(from->number(), std::string(name).c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    }

    // Whether a file is another one too, or was given to the call under another name: whoever asked for two
    // files wants two, and to write one of them would change the other.
    static bool has_other_names(const struct stat& file, const CommandCall& call, const std::string& name) {
        const auto is_it = [&file, &name](const Given& given) {
            struct stat status = {};
            return given.name != name && fstat(given.file.number(), &status) == 0 &&
                   status.st_dev == file.st_dev && status.st_ino == file.st_ino;
        };
        return file.st_nlink > 1 || std::any_of(call.files.begin(), call.files.end(), is_it);
    }

    void give(const void* bytes, std::uint64_t length) {
        if (!output_.holds(given_, length)) {
            throw Trouble{Status::fault, 0, "the results do not fit the output region"};
        }
        std::memcpy(output_.base + given_, bytes, length);
        given_ += length;
    }

    // The length and then the content of a regular file, or why there is none. Nobody is left to change it.
    void give_content(const Descriptor& file, std::uint64_t bytes, const CommandCall& call,
                      const std::string& name) {
        const std::uint64_t left = output_.bytes - std::min(given_ + sizeof(std::uint64_t), output_.bytes);
        std::byte* content = output_.base + given_ + sizeof(std::uint64_t);
        struct stat status = {};
        std::uint64_t length = output_missing;
        if (file.open() && fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode)) {
            length = static_cast<std::uint64_t>(status.st_size);
            if (length > std::min(bytes, left)) {
                length = output_too_long;
            } else if (has_other_names(status, call, name)) {
                length = output_with_names;
            } else if (has_a_hole(file, status.st_size)) {
                length = output_with_holes;
            }
        }
        std::uint64_t done = 0;
        while (length <= output_longest && done < length) {
            const ssize_t got = pread(file.number(), content + done, length - done, static_cast<off_t>(done));
            if (got > 0) {
                done += static_cast<std::uint64_t>(got);
            } else if (got == 0 || errno != EINTR) {
                length = output_missing;
            }
        }
        give(&length, sizeof length);
        if (length <= output_longest) {
            given_ = std::min(given_ + (length + 7) / 8 * 8, output_.bytes);
        }
    }

    const Options& options_;
    Channel judge_;
    Region input_;
    Output desk_;
    Region output_;
    const char* path_;
    pid_t server_;
    Descriptor hiding_;  // made once: every call would pay for it
    ProcessTree processes_;
    CallFolders folders_;
    std::uint64_t given_ = 0;           // bytes of results so far
    std::uint64_t usage_at_ = nowhere;  // where the last call's usage stands among them
};

}  // namespace

void serve_command(const Options& options) {
    CommandServer(options).serve();
}

}  // namespace outpace
