#include "channel.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "failure.hpp"

namespace outpace {

namespace {

void populate(const Region& region, std::uint64_t bytes, bool writable) {
    constexpr std::uint64_t page = 4096;
    const std::uint64_t length = std::min(bytes + (page - bytes % page) % page, region.bytes);
#ifdef MADV_POPULATE_WRITE
    if (length == 0 ||
        madvise(region.base, length, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) {
        return;
    }
#endif
    for (std::uint64_t at = 0; at < length; at += page) {
        volatile std::byte* byte = region.base + at;
        const std::byte value = *byte;
        if (writable) {
            *byte = value;
        }
    }
}

std::uint64_t nanoseconds(const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

Region map_region(int descriptor, std::uint64_t bytes, bool writable, std::uint64_t populated) {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* base = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) {
        fail(writable ? "cannot map the output region" : "cannot map the input region");
    }
    close(descriptor);
    const Region region{static_cast<std::byte*>(base), bytes};
    populate(region, populated, writable);
    return region;
}

Output map_output(int descriptor, std::uint64_t bytes, std::uint64_t populated) {
    if (bytes <= desk_bytes) {
        fail("the output region has no room for answers", 0);
    }
    const Region whole = map_region(descriptor, bytes, true, desk_bytes + populated);
    return {reinterpret_cast<Desk*>(whole.base), {whole.base + desk_bytes, bytes - desk_bytes}};
}

void Channel::wait() const {
    char message[1];
    for (;;) {
        const ssize_t length = recv(socket_, message, sizeof message, 0);
        if (length > 0) {
            return;
        }
        if (length == 0) {
            _exit(0);
        }
        if (errno != EINTR) {
            _exit(exit_failure);
        }
    }
}

namespace {

void deliver(int socket, const Reply& reply) noexcept {
    while (::send(socket, &reply, sizeof reply, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) {
            _exit(exit_failure);
        }
    }
}

}  // namespace

void Channel::send(std::uint64_t nonce, Status status, std::uint32_t detail,
                   std::string_view text) const noexcept {
    Reply reply{};
    reply.nonce = nonce;
    reply.status = static_cast<std::uint32_t>(status);
    reply.detail = detail;
    text.copy(reply.text, sizeof reply.text - 1);
    deliver(socket_, reply);
}

void Channel::greet() const noexcept {
    timespec spent{};
    // Not the process's clock: under a limit on CPU time the kernel brings that up to date at ticks alone.
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    Reply reply{};
    reply.status = static_cast<std::uint32_t>(Status::hello);
    reply.value = nanoseconds(spent);
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::snprintf(reply.text, sizeof reply.text, "%" PRIu64, nanoseconds(now));
    deliver(socket_, reply);
}

}  // namespace outpace
