#include "memory.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace outpace {
namespace {

// Every page of ours, so that faults while we fetch are the worker's: zeros that it never wrote.
void touch(std::byte* begin, std::uint64_t bytes, std::uint64_t page) {
    for (std::uint64_t at = 0; at < bytes; at += page) {
        *static_cast<volatile std::byte*>(begin + at) = std::byte{0};
    }
    if (bytes != 0) {
        *static_cast<volatile std::byte*>(begin + bytes - 1) = std::byte{0};
    }
}

std::uint64_t faults_so_far() {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return static_cast<std::uint64_t>(used.ru_minflt);
}

}  // namespace

Memory::Memory(std::int32_t pid)
    : pid_(pid), pages_(open(("/proc/" + std::to_string(pid) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)) {}

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

bool Memory::fetch(std::byte* to, std::uint64_t address, std::uint64_t bytes,
                   std::uint64_t* untouched) const {
    touch(to, bytes, page);
    const std::uint64_t before = faults_so_far();
    if (!read(to, address, bytes)) {
        return false;
    }
    *untouched += faults_so_far() - before;
    // Looked at after it was read: a page that nobody touched has no kind before.
    return own(address, bytes);
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

Memory::Chance& Memory::chance() {
    if (chance_ == nullptr) {
        chance_ = std::make_unique<Chance>();
        std::mt19937_64 draw(std::random_device{}());
        std::generate(chance_->begin(), chance_->end(), std::ref(draw));
    }
    return *chance_;
}

// Whether none of these pages are a file's or shared: the same page may then stand in many places, or hold an
// argument, and nobody has written what is read there.
bool Memory::own(std::uint64_t address, std::uint64_t bytes) const {
    if (bytes == 0) {
        return true;
    }
    constexpr std::uint64_t of_a_file_or_shared = std::uint64_t{1} << 61;
    const std::uint64_t first = address / page;
    std::vector<std::uint64_t> entries((address + bytes - 1) / page - first + 1);
    const std::size_t wanted = entries.size() * sizeof entries[0];
    return pread(pages_.number(), entries.data(), wanted, static_cast<off_t>(first * sizeof entries[0])) ==
               static_cast<ssize_t>(wanted) &&
           std::none_of(entries.begin(), entries.end(),
                        [](std::uint64_t entry) { return (entry & of_a_file_or_shared) != 0; });
}

}  // namespace outpace
