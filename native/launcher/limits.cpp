#include "limits.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "failure.hpp"

namespace outpace {
namespace {

void set_limit(int resource, const char* name, std::uint64_t value) {
    const rlimit limit{value, value};
    if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) {
        fail("cannot set the limit on " + std::string(name) + " to " + std::to_string(value));
    }
}

void close_descriptors(unsigned first, unsigned last) {
    if (syscall(SYS_close_range, first, last, 0) == 0) {
        return;
    }
    if (errno != ENOSYS) {
        fail("cannot close inherited descriptors");
    }
    // Before Linux 5.9. A descriptor above the limit can only exist if the limit was lowered after it.
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const auto end = static_cast<unsigned>(std::min<rlim_t>(files.rlim_max, 1U << 20));
    for (unsigned descriptor = first; descriptor <= last && descriptor < end; ++descriptor) {
        close(static_cast<int>(descriptor));
    }
}

struct Capabilities {
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

__user_cap_header_struct own_capabilities() {
    return {_LINUX_CAPABILITY_VERSION_3, 0};
}

// The bounding set and the secure bits want CAP_SETPCAP, which a jail may have taken already. That is
// tolerable: with no_new_privs set an execve cannot gain a capability that was not permitted before it.
void drop_bounding_set() {
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM) {
            fail("cannot drop capability " + std::to_string(capability) + " from the bounding set");
        }
    }
    constexpr unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0 && errno != EPERM) {
        fail("cannot set the secure bits");
    }
}

void become(const Identity& identity) {
    if (setgroups(0, nullptr) != 0) {
        fail("cannot leave the supplementary groups (CAP_SETGID is needed)");
    }
    if (setresgid(identity.gid, identity.gid, identity.gid) != 0) {
        fail("cannot become group " + std::to_string(identity.gid) + " (CAP_SETGID is needed)");
    }
    if (setresuid(identity.uid, identity.uid, identity.uid) != 0) {
        fail("cannot become user " + std::to_string(identity.uid) + " (CAP_SETUID is needed)");
    }
}

void drop_capabilities() {
    auto header = own_capabilities();
    Capabilities none{};
    if (syscall(SYS_capset, &header, none.data) != 0) {
        fail("cannot drop the capabilities");
    }
    // Ambient ones went with the permitted ones; said aloud, and EINVAL on kernels without them.
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) {
        fail("cannot clear the ambient capabilities");
    }
    Capabilities left{};
    if (syscall(SYS_capget, &header, left.data) != 0) {
        fail("cannot read the capabilities back");
    }
    for (const auto& word : left.data) {
        if ((word.effective | word.permitted | word.inheritable) != 0) {
            fail("capabilities are left after dropping them all", 0);
        }
    }
}

}  // namespace

void apply_limits(const Limits& limits) {
    if (limits.cpu_seconds) {
        set_limit(RLIMIT_CPU, "CPU seconds", *limits.cpu_seconds);
    }
    if (limits.address_space) {
        set_limit(RLIMIT_AS, "address space", *limits.address_space);
    }
    if (limits.file_size) {
        set_limit(RLIMIT_FSIZE, "file size", *limits.file_size);
    }
    // Counted per real user over the whole machine, and ignored for root.
    if (limits.processes.value_or(0) > 0) {
        set_limit(RLIMIT_NPROC, "processes", *limits.processes);
    }
    if (limits.open_files) {
        set_limit(RLIMIT_NOFILE, "open files", *limits.open_files);
    }
    // The kernel lays out an address space at execve with at least 128 MiB below the stack. A function
    // worker is laid out already, so a larger stack than that is only sure in programs that are executed.
    if (limits.stack) {
        set_limit(RLIMIT_STACK, "stack", *limits.stack);
    }
}

// Where dumps go to a program of the host's, the kernel passes over a limit of 0; at 1 it starts none.
void forbid_core_dumps() {
    set_limit(RLIMIT_CORE, "core dumps", 1);
}

void drop_privileges(const std::optional<Identity>& identity) {
    drop_bounding_set();
    if (identity) {
        become(*identity);
    }
    drop_capabilities();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        fail("cannot set no_new_privs");
    }
}

void die_with_parent(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        fail("cannot ask to die with the parent");
    }
    if (getppid() != parent) {
        fail("the parent process is gone", 0);
    }
}

void become_unreadable() {
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        fail("cannot become undumpable");
    }
}

void close_other_descriptors(std::vector<int> keep) {
    for (int standard = 0; standard < 3; ++standard) {
        // The lowest free number is taken, so a missing one is filled in place.
        if (fcntl(standard, F_GETFD) < 0 && open("/dev/null", O_RDWR) != standard) {
            fail("descriptor " + std::to_string(standard) + " is closed and /dev/null cannot replace it");
        }
    }
    for (const int descriptor : keep) {
        if (fcntl(descriptor, F_GETFD) < 0) {
            fail("descriptor " + std::to_string(descriptor));
        }
    }
    keep.insert(keep.end(), {0, 1, 2});
    std::sort(keep.begin(), keep.end());
    unsigned next = 0;
    for (const int descriptor : keep) {
        const auto kept = static_cast<unsigned>(descriptor);
        if (kept > next) {
            close_descriptors(next, kept - 1);
        }
        next = kept + 1;
    }
    close_descriptors_from(next);
}

void close_descriptors_from(unsigned first) {
    close_descriptors(first, ~0U);
}

void reset_signals() {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number) {
        // SIGKILL, SIGSTOP and the C library's own numbers refuse; they cannot be ignored either.
        sigaction(number, &action, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, nullptr) != 0) {
        fail("cannot clear the signal mask");
    }
}

}  // namespace outpace
