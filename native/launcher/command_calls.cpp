#include "command_calls.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "devices.hpp"
#include "failure.hpp"

namespace outpace {
namespace {

[[noreturn]] void fault(std::uint32_t call, const char* text) {
    throw Trouble{Status::fault, call, text};
}

[[noreturn]] void failed(std::uint32_t call, const std::string& what) {
    throw Trouble{Status::call_failed, call, what + ": " + std::strerror(errno)};
}

void write_whole(int descriptor, std::string_view content, std::uint32_t call) {
    while (!content.empty()) {
        const ssize_t written = write(descriptor, content.data(), content.size());
        if (written < 0 && errno != EINTR) {
            failed(call, "cannot write a call's input");
        }
        content.remove_prefix(static_cast<std::size_t>(written < 0 ? 0 : written));
    }
}

// Folders that a call nests deeper than this are not removed: each level takes a descriptor of ours.
constexpr int deepest = 128;

bool remove_tree(int parent, const char* name, int levels);

bool empty_folder(Descriptor folder, int levels) {
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(folder.number()), closedir);
    if (listing == nullptr) {
        return false;
    }
    const int number = folder.release();  // closed with the listing
    bool all = true;
    // Twice: what is removed while a folder is listed may hide another entry from the listing.
    for (int pass = 0; pass < 2; ++pass, rewinddir(listing.get())) {
        while (const dirent* entry = readdir(listing.get())) {
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..") {
                all = remove_tree(number, entry->d_name, levels) && all;
            }
        }
    }
    return all;
}

// Whether nothing is left of that name. A call may have locked its folders: they are unlocked first.
bool remove_tree(int parent, const char* name, int levels) {
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
        return true;
    }
    if (levels == 0) {
        return false;
    }
    // Where it cannot be unlocked, it cannot be opened either.
    [[maybe_unused]] const int unlocked = fchmodat(parent, name, 0700, 0);
    Descriptor folder(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return folder.open() && empty_folder(std::move(folder), levels - 1) &&
           unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

// Reads one record, already known to lie in the input region with its parts.
class Loader {
  public:
    Loader(std::uint32_t index, const Region& input, Descriptor folder) : index_(index), input_(input) {
        call_.folder = std::move(folder);
    }

    void take(const Part& part) {
        switch (static_cast<PartKind>(part.kind)) {
            case PartKind::standard_input:
                return take_standard_input(content(part.offset, part.bytes));
            case PartKind::file:
                return take_file(name(part), content(part.offset, part.bytes), part.mode & 0777);
            case PartKind::argument:
                return take_argument(content(part.offset, part.bytes));
            case PartKind::output_file:
                name(part);
                [[fallthrough]];
            case PartKind::standard_output:
            case PartKind::exit_status:
            case PartKind::usage:
                call_.results.push_back(part);
                return;
        }
        fault(index_, "a part has an unknown kind");
    }

    CommandCall finish() { return std::move(call_); }

  private:
    std::string_view content(std::uint64_t offset, std::uint64_t bytes) const {
        if (!input_.holds(offset, bytes)) {
            fault(index_, "a part's data lies outside the input region");
        }
        return {reinterpret_cast<const char*>(input_.base + offset), bytes};
    }

    // A relative path that stays in the call's folder.
    std::string name(const Part& part) const {
        const std::string path(content(part.name_offset, part.name_bytes));
        bool sound = !path.empty() && path.find('\0') == path.npos;
        for (const auto& step : std::filesystem::path(path)) {
            sound = sound && !step.empty() && step != "/" && step != "." && step != "..";
        }
        if (!sound) {
            fault(index_, "a file's name must be a relative path without '.' and '..'");
        }
        return path;
    }

    void take_standard_input(std::string_view bytes) {
        const Descriptor file(memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        if (!file.open()) {
            failed(index_, "cannot make standard input");
        }
        write_whole(file.number(), bytes, index_);
        // For good: a call can open /dev/stdin as it likes.
        constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        // Opened anew, because older kernels let no call map a sealed one that is open for writing.
        const std::string path = "/proc/self/fd/" + std::to_string(file.number());
        call_.standard_input = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (fcntl(file.number(), F_ADD_SEALS, seals) != 0 || !call_.standard_input.open()) {
            failed(index_, "cannot seal standard input");
        }
    }

    void take_file(const std::string& path, std::string_view bytes, mode_t mode) {
        for (auto slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
            if (mkdirat(call_.folder.number(), path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) {
                failed(index_, "cannot make the folder of " + path);
            }
        }
        const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        Descriptor file(openat(call_.folder.number(), path.c_str(), flags, 0600));
        if (!file.open()) {
            failed(index_, "cannot make the file " + path);
        }
        write_whole(file.number(), bytes, index_);
        if (fchmod(file.number(), mode) != 0) {
            failed(index_, "cannot set the mode of " + path);
        }
        call_.files.push_back({path, std::move(file), bytes});
    }

    void take_argument(std::string_view bytes) {
        if (bytes.find('\0') != bytes.npos) {
            fault(index_, "an argument contains a zero byte");
        }
        call_.arguments.emplace_back(bytes);
    }

    std::uint32_t index_;
    const Region& input_;
    CommandCall call_;
};

}  // namespace

bool Given::unchanged() const {
    struct stat status = {};
    if (fstat(file.number(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != content.size()) {
        return false;
    }
    std::array<char, 1 << 16> part;
    for (std::size_t done = 0; done < content.size();) {
        const std::size_t wanted = std::min(part.size(), content.size() - done);
        const ssize_t got = pread(file.number(), part.data(), wanted, static_cast<off_t>(done));
        if (got <= 0 || std::memcmp(part.data(), content.data() + done, static_cast<std::size_t>(got)) != 0) {
            return false;
        }
        done += static_cast<std::size_t>(got);
    }
    return true;
}

CallFolders::CallFolders() {
    const char* temporary = std::getenv("TMPDIR");
    above_ = temporary != nullptr && *temporary == '/' ? temporary : "/tmp";
    if (stat(above_.c_str(), &found_) != 0) {
        fail("cannot look at the folder " + above_);
    }
    base_ = above_ + "/calls";
    if (mkdir(base_.c_str(), 0700) == 0) {
        return;
    }
    // In a jail the name is always free. Outside one, workers share the folder and killed ones leave theirs.
    base_ += "-XXXXXX";
    if (errno != EEXIST || mkdtemp(base_.data()) == nullptr) {
        fail("cannot make the folder " + base_ + " for calls");
    }
}

// As an ordinary user's the folder above is the call's own too: it could leave something in its times and its
// mode. As root's it cannot be changed, and we may be nobody by now. Without a jail it is this machine's, so
// it gets back what it had and nothing else. The time of its last change is ours: we make a folder in it.
void CallFolders::restore_above() const {
    struct stat now = {};
    if (stat(above_.c_str(), &now) != 0) {
        return;
    }
    if (now.st_mode != found_.st_mode && chmod(above_.c_str(), found_.st_mode & 07777) != 0) {
        return;
    }
    const timespec times[2] = {found_.st_atim, {0, UTIME_OMIT}};
    utimensat(AT_FDCWD, above_.c_str(), times, 0);
}

bool CallFolders::clear() {
    restore_above();
    forget_device_times();
    return remove_tree(AT_FDCWD, base_.c_str(), deepest);
}

Descriptor CallFolders::make() {
    if (mkdir(base_.c_str(), 0700) != 0 && errno != EEXIST) {
        return {};
    }
    // By chance: a number would tell each call how many there were before it.
    std::uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
        return {};
    }
    const std::string path = base_ + '/' + std::to_string(drawn);
    if (mkdir(path.c_str(), 0700) != 0) {
        return {};
    }
    return Descriptor(open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<CommandCall> load_command_calls(const Request& request, const Region& input,
                                            CallFolders& folders) {
    if (request.count == 0 || !input.holds(0, request.records)) {
        fault(0, "no call records, or they lie outside the input region");
    }
    std::vector<CommandCall> calls;
    std::uint64_t offset = 0;
    const std::uint64_t end = request.records;
    for (std::uint32_t index = 0; index < request.count; ++index) {
        CommandRecord record;
        if (offset % 8 != 0 || end - offset < sizeof record) {
            fault(index, "a call record is misaligned or cut off");
        }
        std::memcpy(&record, input.base + offset, sizeof record);
        const std::uint64_t parts = std::uint64_t{record.parts} * sizeof(Part);
        if (record.bytes > end - offset || record.bytes < sizeof record ||
            record.bytes - sizeof record < parts) {
            fault(index, "a call record is longer than the request");
        }
        Descriptor folder = folders.make();
        if (!folder.open()) {
            failed(index, "cannot make a call's folder");
        }
        Loader loader(index, input, std::move(folder));
        for (std::uint32_t number = 0; number < record.parts; ++number) {
            Part part;
            std::memcpy(&part, input.base + offset + sizeof record + number * sizeof part, sizeof part);
            loader.take(part);
        }
        calls.push_back(loader.finish());
        offset += record.bytes;
    }
    return calls;
}

}  // namespace outpace
