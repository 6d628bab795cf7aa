#include "bpf.hpp"

#include <linux/audit.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>

#include "failure.hpp"

namespace outpace {
namespace {

static_assert(std::endian::native == std::endian::little, "argument halves are addressed as little-endian");

#if defined(__x86_64__)
constexpr std::uint32_t native_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t native_architecture = AUDIT_ARCH_AARCH64;
#else
#error "the launcher knows x86-64 and aarch64"
#endif

// x86-64 counts its x32 calls from here; elsewhere such numbers mean nothing at all.
constexpr std::uint32_t first_foreign_call = 0x40000000;

// Calls younger than this table. They are answered "not implemented" rather than by the default, so that a
// newer C library falls back instead of being trapped.
constexpr std::uint32_t first_unknown_call = 451;

// A run of neighbouring calls that are treated alike, up to where the next span begins.
struct Span {
    std::uint32_t first;
    std::vector<Branch> branches;
    Action otherwise;
};

class Assembler {
  public:
    void load(std::size_t offset) {
        emit(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0);
    }
    void load_low(unsigned argument) { load(argument_offset(argument)); }
    void load_high(unsigned argument) { load(argument_offset(argument) + sizeof(std::uint32_t)); }
    void mask(std::uint32_t bits) { emit(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0); }
    void give(Action action) { emit(BPF_RET | BPF_K, action, 0, 0); }

    // Each skips `count` instructions when the comparison is as named.
    void skip_unless_equal(std::uint32_t value, std::uint8_t count) {
        emit(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count);
    }
    void skip_if_equal(std::uint32_t value, std::uint8_t count) {
        emit(BPF_JMP | BPF_JEQ | BPF_K, value, count, 0);
    }

    void branch(const Branch& branch) {
        switch (branch.test) {
            case Branch::Test::masked_equal:
            case Branch::Test::masked_different:
                load_low(branch.argument);
                mask(branch.mask);
                if (branch.test == Branch::Test::masked_equal) {
                    skip_unless_equal(static_cast<std::uint32_t>(branch.value), 1);
                } else {
                    skip_if_equal(static_cast<std::uint32_t>(branch.value), 1);
                }
                break;
            case Branch::Test::whole_equal:
                load_low(branch.argument);
                skip_unless_equal(static_cast<std::uint32_t>(branch.value), 3);
                load_high(branch.argument);
                skip_unless_equal(static_cast<std::uint32_t>(branch.value >> 32), 1);
                break;
        }
        give(branch.action);
    }

    // Spans in ascending order; the last one that begins at or before the number decides.
    void search(std::span<const Span> spans) {
        if (spans.size() == 1) {
            for (const auto& each : spans.front().branches) {
                branch(each);
            }
            give(spans.front().otherwise);
            return;
        }
        const std::size_t middle = spans.size() / 2;
        Assembler lower;
        lower.search(spans.first(middle));
        const auto length = static_cast<std::uint32_t>(lower.code.size());
        // Conditional jumps reach 255 instructions, unconditional ones any distance.
        if (length <= 255) {
            emit(BPF_JMP | BPF_JGE | BPF_K, spans[middle].first, static_cast<std::uint8_t>(length), 0);
        } else {
            emit(BPF_JMP | BPF_JGE | BPF_K, spans[middle].first, 0, 1);
            emit(BPF_JMP | BPF_JA, length, 0, 0);
        }
        code.insert(code.end(), lower.code.begin(), lower.code.end());
        search(spans.subspan(middle));
    }

    std::vector<sock_filter> code;

  private:
    static std::size_t argument_offset(unsigned argument) {
        return offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t);
    }
    void emit(int operation, std::uint32_t operand, std::uint8_t if_true, std::uint8_t if_false) {
        code.push_back({static_cast<std::uint16_t>(operation), if_true, if_false, operand});
    }
};

std::vector<Span> spans_of(const Policy& policy) {
    std::vector<Rule> rules = policy.rules;
    std::sort(rules.begin(), rules.end(), [](const Rule& a, const Rule& b) { return a.number < b.number; });
    std::vector<Span> spans;
    const auto begin_span = [&](std::uint32_t first, const std::vector<Branch>& branches, Action otherwise) {
        const bool same = !spans.empty() && spans.back().branches.empty() && branches.empty() &&
                          spans.back().otherwise == otherwise;
        if (!same) {
            spans.push_back({first, branches, otherwise});
        }
    };
    std::uint32_t next = 0;
    for (const auto& rule : rules) {
        const auto number = static_cast<std::uint32_t>(rule.number);
        if (number < next || number >= first_unknown_call) {
            fail("two rules for system call " + std::to_string(number) + ", or it is beyond the table", 0);
        }
        if (number > next) {
            begin_span(next, {}, policy.otherwise);
        }
        begin_span(number, rule.branches, rule.otherwise);
        next = number + 1;
    }
    begin_span(next, {}, policy.otherwise);
    begin_span(first_unknown_call, {}, refuse(ENOSYS));
    begin_span(first_foreign_call, {}, kill_process);
    return spans;
}

}  // namespace

void Policy::always(Action action, std::initializer_list<int> numbers) {
    always(action, std::vector<int>(numbers));
}

void Policy::always(Action action, const std::vector<int>& numbers) {
    for (const int number : numbers) {
        rules.push_back({number, {}, action});
    }
}

void Policy::depends(int number, std::vector<Branch> branches, Action otherwise_action) {
    rules.push_back({number, std::move(branches), otherwise_action});
}

Branch when_equal(unsigned argument, std::uint32_t value, Action action) {
    return {argument, Branch::Test::masked_equal, ~0U, value, action};
}

Branch when_not_equal(unsigned argument, std::uint32_t value, Action action) {
    return {argument, Branch::Test::masked_different, ~0U, value, action};
}

Branch when_any_bit(unsigned argument, std::uint32_t bits, Action action) {
    return {argument, Branch::Test::masked_different, bits, 0, action};
}

Branch when_all_bits(unsigned argument, std::uint32_t bits, Action action) {
    return {argument, Branch::Test::masked_equal, bits, bits, action};
}

Branch when_pointer(unsigned argument, std::uint64_t value, Action action) {
    return {argument, Branch::Test::whole_equal, 0, value, action};
}

std::vector<sock_filter> assemble(const Policy& policy) {
    Assembler assembler;
    assembler.load(offsetof(seccomp_data, arch));
    assembler.skip_if_equal(native_architecture, 1);
    assembler.give(kill_process);
    assembler.load(offsetof(seccomp_data, nr));
    assembler.search(spans_of(policy));
    return assembler.code;
}

void install(const std::vector<sock_filter>& program) {
    const sock_fprog description{static_cast<unsigned short>(program.size()),
                                 const_cast<sock_filter*>(program.data())};
    // TSYNC: constructors may have started threads.
    // SPEC_ALLOW: before Linux 5.16 a filter also turned speculation safeguards on, which would slow the
    // very code that is being timed. They would protect a process from itself; nothing secret is in here.
    const long outcome = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, install_flags, &description);
    if (outcome > 0) {
        fail("thread " + std::to_string(outcome) + " could not take the system call filter", 0);
    }
    if (outcome < 0) {
        fail("cannot install the system call filter");
    }
}

}  // namespace outpace
