#include "channel.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "failure.hpp"

namespace outpace {

Region map_region(int descriptor, std::uint64_t bytes, bool writable) {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* base = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) {
        fail(writable ? "cannot map the output region" : "cannot map the input region");
    }
    close(descriptor);
    return {static_cast<std::byte*>(base), bytes};
}

Request Channel::receive() const {
    for (;;) {
        Request request{};
        const ssize_t length = recv(socket_, &request, sizeof request, MSG_TRUNC);
        if (length == static_cast<ssize_t>(sizeof request)) {
            return request;
        }
        if (length == 0) {
            request.verb = static_cast<std::uint32_t>(Verb::quit);
            return request;
        }
        if (length > 0) {
            send(0, Status::fault, 0, "a request has 32 bytes");
        } else if (errno != EINTR) {
            _exit(exit_failure);
        }
    }
}

void Channel::send(std::uint64_t nonce, Status status, std::uint32_t detail,
                   std::string_view text) const noexcept {
    Reply reply{};
    reply.nonce = nonce;
    reply.status = static_cast<std::uint32_t>(status);
    reply.detail = detail;
    text.copy(reply.text, sizeof reply.text - 1);
    while (::send(socket_, &reply, sizeof reply, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) {
            _exit(exit_failure);
        }
    }
}

}  // namespace outpace
