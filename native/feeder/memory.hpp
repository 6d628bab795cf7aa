// The memory of a worker's own, from which large arrays of its answers are fetched.
#pragma once

#include <cstddef>
#include <cstdint>
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

  private:
    bool own(std::uint64_t address, std::uint64_t bytes) const;

    std::int32_t pid_;
    Descriptor pages_;  // what the kernel says of its pages
};

}  // namespace outpace
