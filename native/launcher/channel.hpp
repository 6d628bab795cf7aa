// The worker's end of the conversation with the judge: one socket, two shared regions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "message.hpp"

namespace outpace {

// A mapped memfd. The judge sealed its size, so no access within `bytes` can raise SIGBUS.
struct Region {
    std::byte* base;
    std::uint64_t bytes;

    bool holds(std::uint64_t offset, std::uint64_t length) const noexcept {
        return offset <= bytes && length <= bytes - offset;
    }
};

// Maps the memfd and closes it: a worker with the descriptor could punch holes into the region.
Region map_region(int descriptor, std::uint64_t bytes, bool writable);

class Channel {
  public:
    explicit Channel(int socket) noexcept : socket_(socket) {}

    // The next request; QUIT when the judge has hung up. Answers FAULT to a message of the wrong size itself.
    Request receive() const;

    // Sends one reply; `text` is cut to fit. Safe in a signal handler: one system call, no allocation.
    void send(std::uint64_t nonce, Status status, std::uint32_t detail = 0,
              std::string_view text = {}) const noexcept;

  private:
    int socket_;
};

}  // namespace outpace
