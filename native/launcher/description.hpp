// The fallback jail's description: one line each, fields separated by TAB, so that paths may hold spaces.
//
//   userns 0|1           1: make a user namespace first, own user and group mapped to themselves
//   net 0|1              1 (also when absent): a network namespace with nothing in it
//   ro SRC DST           SRC and all below it, read-only
//   rw SRC DST           SRC and all below it, writable
//   tmpfs DST BYTES      an empty folder that holds at most BYTES
//   symlink TARGET DST
//   dev                  /dev with null, zero, full, random, urandom; fd, stdin, stdout, stderr as links
//   proc                 /proc of the new pid namespace
//
// Mounts are made in the order of their lines. DST is absolute and no part of it may be a symbolic link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace outpace {

struct MountLine {
    enum class Kind { read_only, writable, tmpfs, symlink, dev, proc };
    Kind kind;
    std::string source;  // or the symbolic link's target
    std::string destination;
    std::uint64_t bytes = 0;
};

struct JailDescription {
    bool user_namespace = false;
    bool network_namespace = true;
    std::vector<MountLine> mounts;
};

// Exits with a message that names the first line it cannot understand.
JailDescription parse_description(const std::string& text);

}  // namespace outpace
