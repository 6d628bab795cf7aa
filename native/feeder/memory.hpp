// The memory of a worker's own, from which large arrays of its answers are fetched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "../launcher/descriptor.hpp"

namespace outpace {

class Memory {
  public:
    explicit Memory(std::int32_t pid);

    // Whether we may look into it.
    bool readable() const;

    bool read(void* to, std::uint64_t address, std::uint64_t bytes) const;

    // Reads an array, and adds up the pages of it that the worker had never touched. False where it does not
    // lie in private memory of the worker's.
    bool fetch(std::byte* to, std::uint64_t address, std::uint64_t bytes, std::uint64_t* untouched) const;

    // Writes chance over parts of an array that was fetched, as whoever it was given to may do: nobody can
    // rely on it any more. False where it cannot be written to.
    bool spoil(std::uint64_t address, std::uint64_t bytes);

  private:
    static constexpr std::uint64_t page = 4096;
    // More would only take longer: whoever relies on an array relies on all of it.
    static constexpr std::uint64_t most_windows = 16;

    bool own(std::uint64_t address, std::uint64_t bytes) const;

    std::int32_t pid_;
    Descriptor pages_;  // what the kernel says of its pages
    std::mt19937_64 draw_{std::random_device{}()};
    std::array<std::uint64_t, page / sizeof(std::uint64_t)> chance_;
};

}  // namespace outpace
