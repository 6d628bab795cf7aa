#include "process_tree.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "failure.hpp"

namespace outpace {

ProcessTree::ProcessTree() {
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        fail("cannot become the reaper of orphans");
    }
    // This process has one thread, so its children are that thread's.
    const std::string path = "/proc/self/task/" + std::to_string(getpid()) + "/children";
    children_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!children_.open()) {
        fail("a command worker needs " + path);
    }
}

// Kills the children there are now; says whether there were any. Their own children then come to us.
// kill(-1) would get them all at once, but outside a pid namespace it would also get the user's.
bool ProcessTree::kill_children() const {
    char list[16384];
    const ssize_t length = pread(children_.number(), list, sizeof list - 1, 0);
    if (length <= 0) {
        return false;
    }
    list[length] = '\0';
    // A list that did not fit may end inside a number, which would name another process: leave the last out.
    const bool whole = length < static_cast<ssize_t>(sizeof list) - 1;
    char* at = list;
    for (;;) {
        char* end = nullptr;
        const long child = std::strtol(at, &end, 10);
        if (end == at || child <= 0 || (*end == '\0' && !whole)) {
            return true;
        }
        kill(static_cast<pid_t>(child), SIGKILL);
        at = end;
    }
}

int ProcessTree::wait_and_clear(pid_t child) const {
    int status = 0;
    int orphan = 0;
    // Orphans are reaped while the call runs, or they would use its process limit up.
    for (pid_t ended = 0; ended != child;) {
        ended = waitpid(-1, &status, __WALL);
        if (ended < 0 && errno != EINTR) {
            fail("lost track of a call's process");
        }
    }
    // A process that forks faster than the list is read is caught in one of the next rounds.
    for (;;) {
        const bool killed = kill_children();
        const pid_t ended = waitpid(-1, &orphan, __WALL | (killed ? 0 : WNOHANG));
        if (ended < 0 && errno == ECHILD) {
            return status;
        }
        if (!killed) {
            sched_yield();
        }
    }
}

}  // namespace outpace
