#include "landlock.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "descriptor.hpp"
#include "failure.hpp"

namespace outpace {
namespace {

constexpr std::uint64_t changing = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                   LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                   LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
// Later versions of Landlock know two more rights; older headers lack their names.
constexpr std::uint64_t refer = 1ULL << 13;
constexpr std::uint64_t truncate = 1ULL << 14;

void allow(const Descriptor& rules, std::uint64_t rights, int folder) {
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights;
    rule.parent_fd = folder;
    if (syscall(__NR_landlock_add_rule, rules.number(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
        fail("cannot add a Landlock rule");
    }
}

}  // namespace

void write_only_below(int folder) {
    const long version = syscall(__NR_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) {
        return;
    }
    const std::uint64_t rights = changing | (version >= 2 ? refer : 0) | (version >= 3 ? truncate : 0);
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = rights;
    const Descriptor rules(
        static_cast<int>(syscall(__NR_landlock_create_ruleset, &handled, sizeof handled, 0)));
    if (!rules.open()) {
        fail("cannot create Landlock rules");
    }
    allow(rules, rights, folder);
    const Descriptor devices(open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (devices.open()) {
        allow(rules, LANDLOCK_ACCESS_FS_WRITE_FILE, devices.number());  // /dev/null
    }
    if (syscall(__NR_landlock_restrict_self, rules.number(), 0) != 0) {
        fail("cannot take the Landlock rules on");
    }
}

}  // namespace outpace
