#include "memory.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

namespace outpace {
namespace {

// Of an entry of the kernel's page map.
constexpr std::uint64_t of_a_file_or_shared = std::uint64_t{1} << 61;
constexpr std::uint64_t its_alone = std::uint64_t{1} << 56;

// NumPy asks for huge pages of this many small ones in arrays of so many bytes. The first touch of one takes
// about as long as that of so many small ones.
constexpr std::uint64_t huge = 512;
constexpr std::uint64_t from_bytes = std::uint64_t{4} << 20;
constexpr std::uint64_t huge_costs = 80;

bool there_are_huge_pages() {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string said;
    return static_cast<bool>(std::getline(file, said)) && said.find("[never]") == std::string::npos;
}

bool untouched_page(std::uint64_t entry) {
    return (entry & its_alone) == 0;
}

// What touching these pages, of which `first` is the first's number, would cost, in small pages.
std::uint64_t cost_of_touching(const std::vector<std::uint64_t>& entries, std::uint64_t first,
                               std::uint64_t bytes) {
    static const bool any_huge = there_are_huge_pages();
    auto cost = static_cast<std::uint64_t>(std::count_if(entries.begin(), entries.end(), untouched_page));
    if (!any_huge || bytes < from_bytes) {
        return cost;
    }
    for (std::uint64_t at = (huge - first % huge) % huge; at + huge <= entries.size(); at += huge) {
        const auto begin = entries.begin() + static_cast<std::ptrdiff_t>(at);
        if (std::all_of(begin, begin + huge, untouched_page)) {
            cost -= huge - huge_costs;
        }
    }
    return cost;
}

}  // namespace

Memory::Memory(std::int32_t pid)
    : pid_(pid),
      pages_(open(("/proc/" + std::to_string(pid) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)),
      maps_("/proc/" + std::to_string(pid) + "/maps") {}

bool Memory::readable() const {
    // Nothing lies at address 0, and that must be all there is to say.
    char byte = 0;
    const iovec here{&byte, 1};
    const iovec there{nullptr, 1};
    return pages_.open() && process_vm_readv(pid_, &here, 1, &there, 1, 0) < 0 && errno == EFAULT;
}

bool Memory::read(void* to, std::uint64_t address, std::uint64_t bytes) const {
    const iovec here{to, bytes};
    const iovec there{reinterpret_cast<void*>(address), bytes};
    return process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool Memory::fetch(std::byte* to, std::uint64_t address, std::uint64_t bytes, std::uint64_t* untouched) {
    // Looked at after it was read: a page that nobody touched has no kind before.
    return read(to, address, bytes) && own(address, bytes, untouched);
}

bool Memory::spoil(std::uint64_t address, std::uint64_t bytes) {
    // As many pieces as the kernel takes at once.
    constexpr std::size_t most_pieces = 1024;
    Chance& from = chance();
    while (bytes != 0) {
        const std::uint64_t part = std::min(bytes, most_pieces * sizeof from);
        std::vector<iovec> here((part + sizeof from - 1) / sizeof from, iovec{from.data(), sizeof from});
        here.back().iov_len = part - (here.size() - 1) * sizeof from;
        const iovec there{reinterpret_cast<void*>(address), part};
        if (process_vm_writev(pid_, here.data(), here.size(), &there, 1, 0) != static_cast<ssize_t>(part)) {
            return false;
        }
        address += part;
        bytes -= part;
    }
    return true;
}

void Memory::spoil(std::byte* begin, std::uint64_t bytes) {
    const Chance& from = chance();
    for (std::uint64_t done = 0; done < bytes; done += sizeof from) {
        std::memcpy(begin + done, from.data(), std::min(bytes - done, sizeof from));
    }
}

bool Memory::stands(std::uint64_t address, std::uint64_t bytes) {
    constexpr int looks = 16;
    std::random_device draw;
    for (int look = 0; look < looks && bytes >= sizeof(std::uint64_t); ++look) {
        const std::uint64_t at = draw() % (bytes / sizeof(std::uint64_t));
        std::uint64_t word = 0;
        if (!read(&word, address + at * sizeof word, sizeof word) || word != chance()[at % chance().size()]) {
            return false;
        }
    }
    return true;
}

Memory::Chance& Memory::chance() {
    if (chance_ == nullptr) {
        chance_ = std::make_unique<Chance>();
        std::mt19937_64 draw(std::random_device{}());
        std::generate(chance_->begin(), chance_->end(), std::ref(draw));
    }
    return *chance_;
}

// Whether none of these pages are a file's or shared: the same page may then stand in many places, or hold an
// argument, and nobody has written what is read there. A page that was never written to is nobody's alone:
// there stands the kernel's page of zeros, a small or a huge one, however it got there.
bool Memory::own(std::uint64_t address, std::uint64_t bytes, std::uint64_t* untouched) {
    if (bytes == 0) {
        return true;
    }
    const std::uint64_t first = address / page;
    std::vector<std::uint64_t> entries((address + bytes - 1) / page - first + 1);
    const std::size_t wanted = entries.size() * sizeof entries[0];
    if (pread(pages_.number(), entries.data(), wanted, static_cast<off_t>(first * sizeof entries[0])) !=
        static_cast<ssize_t>(wanted)) {
        return false;
    }
    *untouched += cost_of_touching(entries, first, bytes);
    const auto others = [](std::uint64_t entry) { return (entry & of_a_file_or_shared) != 0; };
    // The huge page of zeros passes for a file's.
    return std::none_of(entries.begin(), entries.end(), others) || anonymous(address, bytes);
}

// Whether nothing but private memory without a file is mapped there.
bool Memory::anonymous(std::uint64_t address, std::uint64_t bytes) {
    if (private_.empty()) {
        std::ifstream maps(maps_);
        for (std::string line; std::getline(maps, line);) {
            unsigned long long begin = 0;
            unsigned long long end = 0;
            unsigned long long inode = 0;
            char rights[5] = {};
            const int found =
                std::sscanf(line.c_str(), "%llx-%llx %4s %*x %*s %llu", &begin, &end, rights, &inode);
            if (found == 4 && rights[3] == 'p' && inode == 0) {
                private_.push_back({begin, end});
            }
        }
    }
    auto range = std::upper_bound(private_.begin(), private_.end(), address,
                                  [](std::uint64_t at, const Range& one) { return at < one.end; });
    std::uint64_t covered = address;
    for (; range != private_.end() && range->begin <= covered && covered < address + bytes; ++range) {
        covered = range->end;
    }
    return covered >= address + bytes;
}

}  // namespace outpace
