// Theory of operation: three processes.
//
//   outer   the judge's child. Makes the namespaces, waits, exits as the inner one did.
//   pid 1   of the new pid namespace. Builds the root, reaps orphans, exits when the worker does.
//   worker  returns from enter_namespaces and goes on: limits, filters, the candidate.
//
// Death runs downwards: the judge's takes the outer process (PR_SET_PDEATHSIG), the outer's takes pid 1, and
// when pid 1 is gone the kernel kills everything in its namespace, whatever it forked or ignores.

#include "namespaces.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "description.hpp"
#include "failure.hpp"
#include "limits.hpp"
#include "mounts.hpp"

namespace outpace {
namespace {

std::string read_all(int descriptor) {
    std::string text;
    char chunk[4096];
    lseek(descriptor, 0, SEEK_SET);  // fails on a pipe, which needs no rewinding
    for (;;) {
        const ssize_t length = read(descriptor, chunk, sizeof chunk);
        if (length < 0 && errno != EINTR) {
            fail("cannot read the jail's description");
        }
        if (length == 0) {
            return text;
        }
        text.append(chunk, static_cast<std::size_t>(length < 0 ? 0 : length));
    }
}

void write_to(const char* path, const std::string& text) {
    const int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0 || write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        fail("cannot write '" + text + "' to " + path);
    }
    close(descriptor);
}

void enter_user_namespace() {
    const std::string uid = std::to_string(geteuid());
    const std::string gid = std::to_string(getegid());
    if (unshare(CLONE_NEWUSER) != 0) {
        fail("cannot make a user namespace");
    }
    // The kernel lets an ordinary user map a group only after giving up setgroups.
    write_to("/proc/self/setgroups", "deny");
    write_to("/proc/self/uid_map", uid + ' ' + uid + " 1");
    write_to("/proc/self/gid_map", gid + ' ' + gid + " 1");
}

void unshare_all(const JailDescription& jail) {
    if (jail.user_namespace) {
        enter_user_namespace();
    }
    const int network = jail.network_namespace ? CLONE_NEWNET : 0;
    if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | network) != 0) {
        fail("cannot make the namespaces");
    }
    // Only hides the judge's cgroup path; kernels may lack it.
    if (unshare(CLONE_NEWCGROUP) != 0 && errno != EINVAL && errno != EPERM) {
        fail("cannot make a cgroup namespace");
    }
    if (sethostname("jail", 4) != 0) {
        fail("cannot set the host name");
    }
}

int exit_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reaps everything until `child` has ended, then exits as it did.
[[noreturn]] void follow(pid_t child) {
    for (;;) {
        int status = 0;
        const pid_t ended = waitpid(-1, &status, __WALL);
        if (ended == child) {
            _exit(exit_code(status));
        }
        if (ended < 0 && errno != EINTR) {
            _exit(exit_failure);
        }
    }
}

// The waiting processes keep no end of any pipe or socket: the judge must see end-of-file when the worker
// dies, and the candidate must find nothing in them.
[[noreturn]] void wait_outside(pid_t first, int alive) {
    if (dup2(alive, 0) != 0) {
        fail("cannot keep the pipe to the jail's first process");
    }
    close_descriptors_from(1);
    follow(first);
}

[[noreturn]] void be_first_process(pid_t worker) {
    drop_privileges(std::nullopt);
    become_unreadable();
    close_descriptors_from(0);
    follow(worker);
}

// As die_with_parent, for a parent in another pid namespace, where getppid() is 0 whether it lives or not:
// the outer process holds the pipe's other end for as long as it lives.
void die_with_outer(int alive) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        fail("cannot ask to die with the parent");
    }
    pollfd pipe{alive, POLLIN, 0};
    if (poll(&pipe, 1, 0) != 0) {
        fail("the outer process is gone", 0);
    }
    close(alive);
}

}  // namespace

void enter_namespaces(int description) {
    const JailDescription jail = parse_description(read_all(description));
    close(description);
    unshare_all(jail);
    int alive[2];
    if (pipe2(alive, O_CLOEXEC) != 0) {
        fail("cannot make a pipe");
    }
    const pid_t first = fork();
    if (first < 0) {
        fail("cannot fork into the pid namespace");
    }
    if (first > 0) {
        wait_outside(first, alive[1]);
    }
    close(alive[1]);
    die_with_outer(alive[0]);
    if (setsid() < 0) {
        fail("cannot start a session");
    }
    build_root(jail);
    const pid_t worker = fork();
    if (worker < 0) {
        fail("cannot fork the worker");
    }
    if (worker > 0) {
        be_first_process(worker);
    }
}

}  // namespace outpace
