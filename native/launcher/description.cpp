#include "description.hpp"

#include <charconv>
#include <sstream>

#include "failure.hpp"

namespace outpace {
namespace {

using Kind = MountLine::Kind;

std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, '\t');) {
        fields.push_back(field);
    }
    return fields;
}

bool understand(const std::vector<std::string>& fields, JailDescription& jail) {
    const auto is = [&](const char* name, std::size_t arguments) {
        return fields[0] == name && fields.size() == arguments + 1;
    };
    const auto add = [&](Kind kind, const std::string& source, const std::string& destination) {
        jail.mounts.push_back({kind, source, destination});
        return destination.starts_with('/');
    };
    const auto flag = [&](bool& target) {
        target = fields[1] == "1";
        return target || fields[1] == "0";
    };
    if (is("userns", 1)) {
        return flag(jail.user_namespace);
    }
    if (is("net", 1)) {
        return flag(jail.network_namespace);
    }
    if (is("ro", 2)) {
        return add(Kind::read_only, fields[1], fields[2]);
    }
    if (is("rw", 2)) {
        return add(Kind::writable, fields[1], fields[2]);
    }
    if (is("symlink", 2)) {
        return add(Kind::symlink, fields[1], fields[2]);
    }
    if (is("tmpfs", 2)) {
        const bool placed = add(Kind::tmpfs, "", fields[1]);
        const char* end = fields[2].data() + fields[2].size();
        const auto [stop, error] = std::from_chars(fields[2].data(), end, jail.mounts.back().bytes);
        // A tmpfs of size 0 would be one without a limit.
        return placed && error == std::errc{} && stop == end && jail.mounts.back().bytes > 0;
    }
    if (is("dev", 0)) {
        return add(Kind::dev, "", "/dev");
    }
    if (is("proc", 0)) {
        return add(Kind::proc, "", "/proc");
    }
    return false;
}

}  // namespace

JailDescription parse_description(const std::string& text) {
    JailDescription jail;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        if (!line.empty() && !understand(fields_of(line), jail)) {
            fail("cannot understand this line of the jail's description: '" + line + "'", 0);
        }
    }
    return jail;
}

}  // namespace outpace
