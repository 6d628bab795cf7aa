#include "filters.hpp"

#include <asm/ioctls.h>
#include <asm/sockios.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "bpf.hpp"
#include "failure.hpp"
#include "system_calls.hpp"

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

namespace outpace {
namespace {

using namespace system_calls;

// CLONE_PARENT too: its child would hang beside the caller, outside the tree that is measured and killed.
constexpr std::uint32_t clone_escapes = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                        CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PARENT |
                                        CLONE_PTRACE | CLONE_UNTRACED;

void add_clone(Policy& policy, bool fork, bool threads, Action refusal) {
    policy.depends(
        __NR_clone,
        // A thread whose maker waits for it asleep and cannot be stopped would keep the judge waiting too.
        {when_any_bit(0, clone_escapes, refusal), when_all_bits(0, CLONE_THREAD | CLONE_VFORK, refusal),
         when_all_bits(0, CLONE_THREAD, threads ? allow : refusal)},
        fork ? allow : refusal);
    // Its flags lie in memory, where a filter cannot see them. C libraries go back to clone.
    policy.always(refuse(ENOSYS), {__NR_clone3});
#if defined(__x86_64__)
    policy.always(fork ? allow : refusal, {__NR_fork, __NR_vfork});
#endif
}

// Reading limits is harmless; setting them is not. The new limit is the third argument.
void add_limits(Policy& policy, Action refusal) {
    policy.depends(__NR_prlimit64, {when_pointer(2, 0, allow)}, refusal);
}

// Naming threads and memory. Every other option is answered like one the kernel does not know; among them
// PR_SET_PDEATHSIG, with which a program could outlive its judge.
void add_prctl(Policy& policy) {
    policy.depends(__NR_prctl,
                   {when_equal(0, PR_SET_NAME, allow), when_equal(0, PR_GET_NAME, allow),
                    when_equal(0, PR_SET_VMA, allow), when_equal(0, PR_GET_DUMPABLE, allow),
                    when_equal(0, PR_GET_NO_NEW_PRIVS, allow), when_equal(0, PR_CAPBSET_READ, allow)},
                   refuse(EINVAL));
}

// What is in the system's page cache is everybody's: who throws a file out of it makes its rival read from
// the disk. Advice may be passed over, so that nobody who means well notices.
void add_file_advice(Policy& policy) {
    policy.depends(__NR_fadvise64, {when_equal(3, POSIX_FADV_DONTNEED, refuse(0))}, allow);
}

// The same through a mapping. Older kernels know neither. Huge pages that were set aside for whoever asks are
// on no account of ours; where there are none the answer is the same.
void add_memory(Policy& policy) {
    policy.depends(__NR_mmap, {when_any_bit(3, MAP_HUGETLB, refuse(ENOMEM))}, allow);
    policy.depends(__NR_madvise,
                   {when_equal(2, MADV_COLD, refuse(EINVAL)), when_equal(2, MADV_PAGEOUT, refuse(EINVAL))},
                   allow);
}

// Without children there is nobody to signal but oneself. Where the jail has no pid namespace, the judge
// would be within reach.
void add_signalling(Policy& policy, bool fork, Action refusal) {
    const auto self = static_cast<std::uint32_t>(getpid());
    for (const int call : signalling) {
        policy.depends(call, {when_equal(0, self, allow)}, fork ? allow : refusal);
    }
    policy.always(fork ? allow : refusal, signalling_by_descriptor);
}

// What programs ask of descriptors. Among the rest are naming another process as the receiver of signals, and
// hints that stay with a file for as long as the kernel remembers it, though it may not be written to.
void add_descriptor_control(Policy& policy, Action refusal) {
    std::vector<Branch> allowed;
    for (const int command :
         {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETOWN, F_GETLK, F_SETLK, F_SETLKW,
          F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_GETPIPE_SZ, F_SETPIPE_SZ, F_GET_SEALS, F_ADD_SEALS}) {
        allowed.push_back(when_equal(1, static_cast<std::uint32_t>(command), allow));
    }
    policy.depends(__NR_fcntl, allowed, refusal);
}

// Terminals, and how much there is to read; to all else the answer is that of a file which is no device.
// Among the rest are typing into a terminal, and marks on files that stay there.
void add_device_control(Policy& policy, Action refusal) {
    std::vector<Branch> cases;
    for (const unsigned request : {TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX}) {
        cases.push_back(when_equal(1, request, allow));
    }
    for (const unsigned request : {TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP}) {
        cases.push_back(when_equal(1, request, refusal));
    }
    policy.depends(__NR_ioctl, cases, refuse(ENOTTY));
}

// A function worker's share that does not change after loading.
void add_worker_rules(Policy& policy, bool threads) {
    add_clone(policy, false, threads, trap);
    add_prctl(policy);
    add_memory(policy);
    add_signalling(policy, false, trap);
    policy.always(allow, computing);
    policy.depends(__NR_rt_sigaction, {when_equal(0, SIGSYS, refuse(EPERM))}, allow);
    // printf asks whether its descriptor is a terminal.
    policy.always(refuse(ENOTTY), {__NR_ioctl});
}

constexpr std::uint32_t dont_cache = 0x80;
constexpr std::uint32_t writing_flags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

}  // namespace

std::vector<sock_filter> program_filter(const ProgramRights& rights) {
    Policy policy{{}, refuse(ENOSYS)};
    const Action refusal = refuse(EPERM);
    add_clone(policy, rights.fork, rights.threads || rights.fork, refusal);
    add_limits(policy, refusal);
    add_prctl(policy);
    add_memory(policy);
    add_file_advice(policy);
    // RWF_DONTCACHE, since Linux 6.14: what was read leaves the page cache.
    for (const int call : {__NR_preadv2, __NR_pwritev2}) {
        policy.depends(call, {when_any_bit(5, dont_cache, refuse(EOPNOTSUPP))}, allow);
    }
    add_signalling(policy, rights.fork, refusal);
    add_descriptor_control(policy, refusal);
    policy.depends(__NR_memfd_create, {when_any_bit(1, MFD_HUGETLB, refuse(EINVAL))}, allow);
    if (rights.only_path != nullptr) {
        const auto address = reinterpret_cast<std::uintptr_t>(rights.only_path);
        policy.depends(__NR_execve, {when_pointer(0, address, allow)}, refusal);
        policy.always(refusal, {__NR_execveat});
    } else {
        policy.always(allow, {__NR_execve, __NR_execveat});
    }
    add_device_control(policy, refusal);
    policy.always(rights.fork ? allow : refusal, timers);
    // A pair of connected sockets reaches nobody but one's own children. Cargo and Node start them with one.
    policy.depends(__NR_socketpair, {when_not_equal(0, AF_UNIX, refusal)}, rights.fork ? allow : refusal);
    // With a message whoever gets it can be given open files, and has to close them.
    policy.always(rights.fork ? allow : refusal, {__NR_shutdown, __NR_sendmsg});
    policy.always(allow, computing);
    policy.always(allow, looking);
    policy.always(allow, programs);
    // Its flags lie in memory, where a filter cannot see them; one of them asks what the kernel remembers and
    // leaves no trace. C libraries do without it.
    policy.always(refuse(ENOSYS), {__NR_openat2});
    // Room that is made and never written to reads as zeros, which whoever reads them has to make. Programs
    // know this answer from file systems that cannot do it, and write zeros themselves.
    policy.always(refuse(EOPNOTSUPP), {__NR_fallocate});
    policy.always(refusal, hostile);
    return assemble(policy);
}

std::vector<sock_filter> loading_filter(bool threads) {
    Policy policy{{}, trap};
    add_worker_rules(policy, threads);
    add_limits(policy, trap);
    add_descriptor_control(policy, trap);
    add_file_advice(policy);
    // __O_TMPFILE contains O_DIRECTORY, but always comes with a writing flag.
    policy.depends(__NR_openat, {when_any_bit(2, writing_flags, refuse(EACCES))}, allow);
#if defined(__x86_64__)
    policy.depends(__NR_open, {when_any_bit(1, writing_flags, refuse(EACCES))}, allow);
#endif
    policy.always(refuse(ENOSYS), {__NR_openat2});
    policy.always(allow, looking);
    // Only as install() does it for the calling filter, so without a listener that answers for the kernel.
    policy.depends(__NR_seccomp,
                   {when_not_equal(0, SECCOMP_SET_MODE_FILTER, trap), when_not_equal(1, install_flags, trap)},
                   allow);
    return assemble(policy);
}

std::vector<sock_filter> calling_filter(bool threads) {
    Policy policy{{}, trap};
    add_worker_rules(policy, threads);
    // Of an open descriptor alone, as printf asks. A name that is looked up stays in the kernel's memory.
    policy.depends(__NR_newfstatat, {when_all_bits(3, AT_EMPTY_PATH, allow)}, trap);
    if (threads) {
        // Threaded code asks how many processors there are, and C libraries look for that in /sys. Refused,
        // they count the affinity mask instead. Single-threaded code has no such excuse.
        policy.always(refuse(EACCES), {__NR_openat});
    }
    return assemble(policy);
}

const char* hide_path(const char* path) {
    const std::size_t length = std::strlen(path) + 1;
    constexpr std::size_t room = 2 * 4096;
    if (length > room / 2) {
        fail("the program's path is too long", 0);
    }
    std::uint64_t dice[2];
    if (getrandom(dice, sizeof dice, 0) != sizeof dice) {
        fail("cannot get random bytes");
    }
    // The hint covers most of a 47-bit address space; where it is taken the kernel picks at random too.
    const std::uintptr_t hint = (std::uintptr_t{1} << 33) + (dice[0] >> 18 & ~std::uintptr_t{0xffff});
    void* page =
        mmap(reinterpret_cast<void*>(hint), room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        fail("cannot map a page for the program's path");
    }
    char* copy = static_cast<char*>(page) + dice[1] % (room - length);
    std::memcpy(copy, path, length);
    return copy;
}

}  // namespace outpace
