#include "landlock.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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
constexpr std::uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

long landlock_version() {
    return syscall(__NR_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

Descriptor make_rules(std::uint64_t rights) {
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = rights;
    Descriptor rules(static_cast<int>(syscall(__NR_landlock_create_ruleset, &handled, sizeof handled, 0)));
    if (!rules.open()) {
        fail("cannot create Landlock rules");
    }
    return rules;
}

void allow(const Descriptor& rules, std::uint64_t rights, int folder) {
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights;
    rule.parent_fd = folder;
    if (syscall(__NR_landlock_add_rule, rules.number(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
        fail("cannot add a Landlock rule");
    }
}

// What cannot be opened needs no permission.
void allow_reading(const Descriptor& rules, std::uint64_t rights, const std::string& path) {
    const Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status = {};
    if (place.open() && fstat(place.number(), &status) == 0) {
        allow(rules, S_ISDIR(status.st_mode) ? rights : LANDLOCK_ACCESS_FS_READ_FILE, place.number());
    }
}

}  // namespace

void write_only_below(int folder) {
    const long version = landlock_version();
    if (version < 1) {
        return;
    }
    const std::uint64_t rights = changing | (version >= 2 ? refer : 0) | (version >= 3 ? truncate : 0);
    const Descriptor rules = make_rules(rights);
    allow(rules, rights, folder);
    const Descriptor devices(open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (devices.open()) {
        allow(rules, LANDLOCK_ACCESS_FS_WRITE_FILE, devices.number());  // /dev/null
    }
    take_on(rules);
}

Descriptor rules_that_hide_processes() {
    const long version = landlock_version();
    if (version < 1) {
        return {};
    }
    // Rules that do not speak of it forbid linking and renaming between folders.
    const std::uint64_t rights = reading | (version >= 2 ? refer : 0);
    Descriptor rules = make_rules(rights);
    const std::unique_ptr<DIR, int (*)(DIR*)> root(opendir("/"), closedir);
    if (root == nullptr) {
        fail("cannot list the root folder");
    }
    while (const dirent* entry = readdir(root.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != ".." && name != "proc") {
            allow_reading(rules, rights, std::string("/").append(name));
        }
    }
    allow_reading(rules, rights, "/proc/cpuinfo");
    return rules;
}

void take_on(const Descriptor& rules) {
    if (rules.open() && syscall(__NR_landlock_restrict_self, rules.number(), 0) != 0) {
        fail("cannot take the Landlock rules on");
    }
}

}  // namespace outpace
