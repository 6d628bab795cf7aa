#include "probe.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "bpf.hpp"
#include "filters.hpp"

namespace outpace {
namespace {

// What went wrong, or nothing.
using Outcome = std::string;

Outcome unless(bool success, const char* what) {
    return success ? Outcome() : Outcome(what) + ": " + std::strerror(errno);
}

// Runs `attempt` in a child, since none of these steps can be taken back.
Outcome in_child(Outcome (*attempt)()) {
    int ends[2];
    if (pipe(ends) != 0) {
        return unless(false, "pipe");
    }
    const pid_t child = fork();
    if (child < 0) {
        return unless(false, "fork");
    }
    if (child == 0) {
        const Outcome outcome = attempt();
        const ssize_t written = write(ends[1], outcome.data(), outcome.size());
        _exit(written == static_cast<ssize_t>(outcome.size()) ? 0 : 1);
    }
    close(ends[1]);
    char text[256];
    const ssize_t length = read(ends[0], text, sizeof text);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (length == 0 && status != 0) {
        return "the attempt died with wait status " + std::to_string(status);
    }
    return {text, static_cast<std::size_t>(length < 0 ? 0 : length)};
}

// Making namespaces can be allowed and using them refused (AppArmor does that), so a mount is tried too.
Outcome try_namespaces(int extra) {
    if (unshare(extra | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET) != 0) {
        return unless(false, "unshare");
    }
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return unless(false, "mount");
    }
    return unless(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=4k") == 0, "mount tmpfs");
}

Outcome try_user_namespaces() {
    return try_namespaces(CLONE_NEWUSER);
}

Outcome try_root_namespaces() {
    return geteuid() == 0 ? try_namespaces(0) : "not root";
}

Outcome try_seccomp() {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return unless(false, "no_new_privs");
    }
    install(program_filter({.fork = false, .threads = false}));
    const int made = socket(AF_UNIX, SOCK_STREAM, 0);
    return made < 0 && errno == EPERM ? "" : "the filter is installed but refuses nothing";
}

long landlock_version() {
    constexpr unsigned ask_version = 1;  // LANDLOCK_CREATE_RULESET_VERSION
    const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, ask_version);
    return version < 0 ? 0 : version;
}

}  // namespace

void probe() {
    const struct {
        const char* name;
        Outcome outcome;
    } results[] = {
        {"user_namespaces", in_child(try_user_namespaces)},
        {"namespaces_as_root", in_child(try_root_namespaces)},
        {"seccomp", in_child(try_seccomp)},
    };
    std::string means;
    std::string errors;
    for (const auto& [name, outcome] : results) {
        means += '"' + std::string(name) + "\": " + (outcome.empty() ? "true" : "false") + ", ";
        if (!outcome.empty()) {
            errors += (errors.empty() ? "\"" : ", \"") + std::string(name) + "\": \"" + outcome + '"';
        }
    }
    // Outcomes are our own words and strerror's: nothing in them needs escaping.
    std::printf("{%s\"landlock\": %ld, \"errors\": {%s}}\n", means.c_str(), landlock_version(),
                errors.c_str());
}

}  // namespace outpace
