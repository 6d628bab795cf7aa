// The memory of a worker's own, from which large arrays of its answers are fetched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../launcher/descriptor.hpp"

namespace outpace {

class Memory {
  public:
    explicit Memory(std::int32_t pid);

    // Whether we may look into it.
    bool readable() const;

    bool read(void* to, std::uint64_t address, std::uint64_t bytes) const;

    // Forgets what was seen of its mappings, which are looked at once for all arrays of an answer: a worker
    // may have tens of thousands of them.
    void look_anew() { private_.clear(); }

    // Reads an array, and adds up the pages of it that the worker had never written to, as many small ones as
    // they cost. False where it does not lie in private memory of the worker's.
    bool fetch(std::byte* to, std::uint64_t address, std::uint64_t bytes, std::uint64_t* untouched);

    // Writes over all of an array that was fetched, as whoever it was given to may do: nobody can rely on it
    // any more. All of it, because what is spoiled in parts can be mended. False where it cannot be written
    // to.
    bool spoil(std::uint64_t address, std::uint64_t bytes);

    // The same to an answer that was copied out of the region.
    void spoil(std::byte* begin, std::uint64_t bytes);

    // Whether an array stands as it was spoiled, as far as some places of it tell that nobody knows
    // beforehand.
    bool stands(std::uint64_t address, std::uint64_t bytes);

  private:
    static constexpr std::uint64_t page = 4096;
    using Chance = std::array<std::uint64_t, 16 * page / sizeof(std::uint64_t)>;

    // Drawn when it is first needed, and used again and again: nothing is left for it to be taken off from.
    Chance& chance();
    bool own(std::uint64_t address, std::uint64_t bytes, std::uint64_t* untouched);
    bool anonymous(std::uint64_t address, std::uint64_t bytes);

    struct Range {
        std::uint64_t begin;
        std::uint64_t end;
    };

    std::int32_t pid_;
    Descriptor pages_;  // what the kernel says of its pages
    std::string maps_;  // and the file of what it says of its mappings
    std::vector<Range>
        private_;  // those without a file that are its alone, in order, once they were looked at
    std::unique_ptr<Chance> chance_;
};

}  // namespace outpace
