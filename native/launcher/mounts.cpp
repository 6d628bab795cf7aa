// Theory of operation.
//
// All sources are opened first, as O_PATH descriptors. Then an empty tmpfs, the stage, goes over /tmp, and
// every mount is made below it, source and target named through /proc/self/fd. So nothing is looked up by
// path twice, and the stage cannot hide a source that lies in /tmp. At the end the stage becomes the root.
//
// Targets are walked one component at a time without following symbolic links: a folder that is bound
// writable may hold links that a candidate made in an earlier jail, and this code runs with privileges.

#include "mounts.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "descriptor.hpp"
#include "devices.hpp"
#include "failure.hpp"

// <sys/mount.h> and <linux/mount.h> clash before glibc 2.37, so the two functions wanted are declared here.
extern "C" int mount(const char*, const char*, const char*, unsigned long, const void*) noexcept;
extern "C" int umount2(const char*, int) noexcept;

namespace outpace {
namespace {

constexpr int detach = 2;  // MNT_DETACH
constexpr const char* stage_path = "/tmp";

std::string by_descriptor(int descriptor) {
    return "/proc/self/fd/" + std::to_string(descriptor);
}

bool is_folder(int descriptor) {
    struct stat status = {};
    if (fstat(descriptor, &status) != 0) {
        fail("cannot look at a mount's source");
    }
    return S_ISDIR(status.st_mode);
}

std::vector<std::string> components(const std::string& path) {
    std::vector<std::string> parts;
    std::istringstream stream(path);
    for (std::string part; std::getline(stream, part, '/');) {
        if (part == "." || part == "..") {
            fail("a destination may not contain '" + part + "': " + path, 0);
        }
        if (!part.empty()) {
            parts.push_back(part);
        }
    }
    if (parts.empty()) {
        fail("a destination may not be the root itself", 0);
    }
    return parts;
}

// Opens `name` in `folder`, made first where it does not exist.
int open_or_make(int folder, const std::string& name, bool as_folder, const std::string& path) {
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (as_folder ? O_DIRECTORY : 0);
    int descriptor = openat(folder, name.c_str(), flags);
    if (descriptor < 0 && errno == ENOENT) {
        const bool made = as_folder ? mkdirat(folder, name.c_str(), 0755) == 0
                                    : mknodat(folder, name.c_str(), S_IFREG | 0644, 0) == 0;
        descriptor = made ? openat(folder, name.c_str(), flags) : -1;
    }
    if (descriptor < 0) {
        fail("cannot make " + path + " in the jail, at '" + name + "'");
    }
    return descriptor;
}

// The folder that holds `path`, below the stage.
Descriptor open_parent(int stage, const std::vector<std::string>& parts, const std::string& path) {
    Descriptor folder(fcntl(stage, F_DUPFD_CLOEXEC, 0));
    for (std::size_t index = 0; index + 1 < parts.size(); ++index) {
        folder = Descriptor(open_or_make(folder.number(), parts[index], true, path));
    }
    return folder;
}

Descriptor open_target(int stage, const std::string& path, bool as_folder) {
    const auto parts = components(path);
    const Descriptor folder = open_parent(stage, parts, path);
    return Descriptor(open_or_make(folder.number(), parts.back(), as_folder, path));
}

// mountinfo writes blanks and backslashes as \ooo.
std::string unescape(const std::string& text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\\' && at + 3 < text.size()) {
            plain += static_cast<char>(std::stoi(text.substr(at + 1, 3), nullptr, 8));
            at += 3;
        } else {
            plain += text[at];
        }
    }
    return plain;
}

std::vector<std::string> mount_points_under(const std::string& top) {
    std::vector<std::string> found;
    std::ifstream table("/proc/self/mountinfo");
    for (std::string line; std::getline(table, line);) {
        std::istringstream fields(line);
        std::string id, parent, device, root, point;
        fields >> id >> parent >> device >> root >> point;
        point = unescape(point);
        if (point == top || point.starts_with(top == "/" ? top : top + '/')) {
            found.push_back(point);
        }
    }
    return found;
}

// Before Linux 5.12: one remount per mount, each keeping the flags it has, which a user namespace insists on.
void confine_by_remount(const std::string& top, std::uint64_t attributes, bool recursive) {
    unsigned long wanted = MS_REMOUNT | MS_BIND;
    wanted |= (attributes & MOUNT_ATTR_RDONLY) != 0 ? MS_RDONLY : 0;
    wanted |= (attributes & MOUNT_ATTR_NOSUID) != 0 ? MS_NOSUID : 0;
    wanted |= (attributes & MOUNT_ATTR_NODEV) != 0 ? MS_NODEV : 0;
    wanted |= (attributes & MOUNT_ATTR_NOEXEC) != 0 ? MS_NOEXEC : 0;
    for (const auto& point : recursive ? mount_points_under(top) : std::vector<std::string>{top}) {
        struct statvfs now = {};
        if (statvfs(point.c_str(), &now) != 0) {
            fail("cannot look at the mount " + point);
        }
        const unsigned long kept = now.f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
        if (mount(nullptr, point.c_str(), nullptr, wanted | kept, nullptr) != 0) {
            fail("cannot restrict the mount " + point);
        }
    }
}

// Adds restrictions to the mount at `path` and to all below it.
void confine(const std::string& path, std::uint64_t attributes, bool recursive = true) {
    mount_attr wanted{};
    wanted.attr_set = attributes;
    const unsigned flags = AT_SYMLINK_NOFOLLOW | (recursive ? AT_RECURSIVE : 0);
    if (syscall(SYS_mount_setattr, AT_FDCWD, path.c_str(), flags, &wanted, sizeof wanted) == 0) {
        return;
    }
    if (errno != ENOSYS) {
        fail("cannot restrict the mount " + path);
    }
    confine_by_remount(path, attributes, recursive);
}

void bind(int source, int target, const std::string& path) {
    // Always recursive: a user namespace may not uncover what a mount in the source hides.
    const auto from = by_descriptor(source);
    const auto to = by_descriptor(target);
    if (mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
        fail("cannot bind " + path);
    }
}

void mount_new(int target, const std::string& path, const char* kind, unsigned long flags,
               const std::string& options) {
    if (mount(kind, by_descriptor(target).c_str(), kind, flags, options.c_str()) != 0) {
        fail("cannot mount " + std::string(kind) + " at " + path);
    }
}

void make_link(int stage, const std::string& target, const std::string& path) {
    const auto parts = components(path);
    const Descriptor folder = open_parent(stage, parts, path);
    if (symlinkat(target.c_str(), folder.number(), parts.back().c_str()) != 0) {
        fail("cannot make the symbolic link " + path);
    }
}

int open_source(const std::string& path) {
    const int descriptor = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (descriptor < 0) {
        fail("cannot open the mount's source " + path);
    }
    return descriptor;
}

struct Sources {
    std::vector<Descriptor> of_line;  // -1 where a line has none
    std::vector<Descriptor> of_device;
};

Sources open_sources(const JailDescription& jail) {
    Sources sources;
    for (const auto& line : jail.mounts) {
        const bool binds = line.kind == MountLine::Kind::read_only || line.kind == MountLine::Kind::writable;
        sources.of_line.emplace_back(binds ? open_source(line.source) : -1);
    }
    for (const char* name : devices) {
        sources.of_device.emplace_back(open_source(std::string("/dev/") + name));
    }
    return sources;
}

std::string staged(const std::string& path) {
    std::string whole = stage_path;
    for (const auto& part : components(path)) {
        whole += '/' + part;
    }
    return whole;
}

void make(const MountLine& line, int source, const Sources& sources, int stage) {
    const std::string& path = line.destination;
    switch (line.kind) {
        case MountLine::Kind::read_only:
        case MountLine::Kind::writable: {
            const Descriptor target = open_target(stage, path, is_folder(source));
            bind(source, target.number(), path);
            const std::uint64_t read_only = line.kind == MountLine::Kind::read_only ? MOUNT_ATTR_RDONLY : 0;
            confine(staged(path), read_only | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
            break;
        }
        case MountLine::Kind::tmpfs: {
            // Empty files take no space, only inodes: without a bound they would fill the kernel's memory.
            const std::uint64_t files = std::max<std::uint64_t>(1024, line.bytes / 1024);
            // What hides a folder of the system is empty and stays so.
            const bool hides = path != "/tmp";
            mount_new(open_target(stage, path, true).number(), path, "tmpfs",
                      MS_NOSUID | MS_NODEV | (hides ? MS_RDONLY : 0),
                      "mode=1777,size=" + std::to_string(line.bytes) + ",nr_inodes=" + std::to_string(files));
            break;
        }
        case MountLine::Kind::symlink:
            make_link(stage, line.source, path);
            break;
        case MountLine::Kind::dev:
            for (std::size_t index = 0; index < std::size(devices); ++index) {
                const std::string node = path + '/' + devices[index];
                bind(sources.of_device[index].number(), open_target(stage, node, false).number(), node);
                confine(staged(node), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
            }
            make_link(stage, "/proc/self/fd", path + "/fd");
            make_link(stage, "/proc/self/fd/0", path + "/stdin");
            make_link(stage, "/proc/self/fd/1", path + "/stdout");
            make_link(stage, "/proc/self/fd/2", path + "/stderr");
            break;
        case MountLine::Kind::proc:
            mount_new(open_target(stage, path, true).number(), path, "proc",
                      MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "");
            break;
    }
}

}  // namespace

void build_root(const JailDescription& jail) {
    // Nothing done here may travel back to the mount namespace this one was copied from.
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        fail("cannot make the mounts private");
    }
    const Sources sources = open_sources(jail);
    if (mount("tmpfs", stage_path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") != 0) {
        fail("cannot mount the stage of the new root");
    }
    const Descriptor stage(open(stage_path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (stage.number() < 0) {
        fail("cannot open the stage of the new root");
    }
    for (std::size_t index = 0; index < jail.mounts.size(); ++index) {
        make(jail.mounts[index], sources.of_line[index].number(), sources, stage.number());
    }
    // pivot_root(".", ".") lays the old root over the new one, from where it is taken off.
    if (fchdir(stage.number()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) {
        fail("cannot change to the new root");
    }
    if (umount2(".", detach) != 0) {
        fail("cannot detach the old root");
    }
    if (chdir("/") != 0) {
        fail("cannot enter the new root");
    }
    confine("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, false);
}

}  // namespace outpace
