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

// Maps the memfd and closes it: a worker with the descriptor could punch holes into the region. The first
// `populated` bytes are mapped at once: the first touch of a page costs as much as filling it, and nobody's
// calls should be the first to touch.
Region map_region(int descriptor, std::uint64_t bytes, bool writable, std::uint64_t populated);

// The output region: the desk, and where answers go.
struct Output {
    Desk* desk;
    Region answers;
};

Output map_output(int descriptor, std::uint64_t bytes, std::uint64_t populated);

class Channel {
  public:
    explicit Channel(int socket) noexcept : socket_(socket) {}

    // Sleeps until the judge says that a question lies on the desk; ends the process when it has hung up.
    void wait() const;

    // Sends one reply; `text` is cut to fit. Safe in a signal handler: one system call, no allocation.
    void send(std::uint64_t nonce, Status status, std::uint32_t detail = 0,
              std::string_view text = {}) const noexcept;

    // Says HELLO with the CPU time spent so far, while nothing of the candidate is in the process.
    void greet() const noexcept;

  private:
    int socket_;
};

}  // namespace outpace
