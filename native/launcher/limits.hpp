// What a process may use and who it is: resource limits, privileges, descriptors, signals.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace outpace {

struct Identity {
    uid_t uid;
    gid_t gid;
};

struct Limits {
    std::optional<std::uint64_t> cpu_seconds;
    std::optional<std::uint64_t> address_space;
    std::optional<std::uint64_t> file_size;
    std::optional<std::uint64_t> processes;  // 0: not limited here
    std::optional<std::uint64_t> open_files;
    std::optional<std::uint64_t> stack;
};

// Hard and soft limits alike, so that they cannot be raised again.
void apply_limits(const Limits& limits);
void forbid_core_dumps();

// Becomes `identity` (if given) and gives up every capability, for good.
void drop_privileges(const std::optional<Identity>& identity);

// Has the kernel kill this process when `parent` dies; exits if it died already. Every change of
// credentials clears the setting, so this must be called again after each.
void die_with_parent(pid_t parent);

// Other processes of the same user can then neither trace this one nor read its memory or descriptors.
void become_unreadable();

// Makes sure that 0, 1 and 2 are open and nothing else is, save `keep`.
void close_other_descriptors(std::vector<int> keep);
void close_descriptors_from(unsigned first);

// Ignored signals and masks survive execve: a worker must not inherit the judge's.
void reset_signals();

}  // namespace outpace
