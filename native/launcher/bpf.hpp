// A table of system calls turned into a seccomp program.
//
// A rule names one call, its branches and what happens otherwise. Branches look at one argument each; the
// first that applies decides. A call without a rule gets the policy's default.
//
// Neighbouring calls that are treated alike form a span, and spans are found by binary search. The kernel
// remembers which calls are always allowed and skips the program for them, but it checks, compiles and tries
// the whole program when installing it, and each call of a command pays for that: short is fast.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace outpace {

using Action = std::uint32_t;

constexpr Action allow = SECCOMP_RET_ALLOW;
constexpr Action trap = SECCOMP_RET_TRAP;
constexpr Action kill_process = SECCOMP_RET_KILL_PROCESS;
constexpr Action refuse(int error) {
    return SECCOMP_RET_ERRNO | static_cast<Action>(error);
}

struct Branch {
    enum class Test {
        masked_equal,      // (low half & mask) == value
        masked_different,  // (low half & mask) != value
        whole_equal,       // all 64 bits == value
    };
    unsigned argument;
    Test test;
    std::uint32_t mask;
    std::uint64_t value;
    Action action;
};

struct Rule {
    int number;
    std::vector<Branch> branches;
    Action otherwise;
};

struct Policy {
    std::vector<Rule> rules;
    Action otherwise;

    void always(Action action, std::initializer_list<int> numbers);
    void always(Action action, const std::vector<int>& numbers);
    void depends(int number, std::vector<Branch> branches, Action otherwise);
};

// `value` compares the low 32 bits, which is all the kernel reads of an int argument.
Branch when_equal(unsigned argument, std::uint32_t value, Action action);
Branch when_not_equal(unsigned argument, std::uint32_t value, Action action);
Branch when_any_bit(unsigned argument, std::uint32_t bits, Action action);
Branch when_all_bits(unsigned argument, std::uint32_t bits, Action action);
Branch when_pointer(unsigned argument, std::uint64_t value, Action action);

// The program begins by killing foreign architectures (and x32), where numbers mean other calls.
std::vector<sock_filter> assemble(const Policy& policy);

// The flags that install() passes; after loading, a filter is admitted with exactly these.
constexpr unsigned install_flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;

// Puts the program in force for all threads of this process. Needs no_new_privs. Exits on failure.
void install(const std::vector<sock_filter>& program);

}  // namespace outpace
