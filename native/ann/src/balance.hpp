// Balance: fill blocks. A list's last block is half empty on average; moving a few vectors to the next list
// saves it.
#pragma once

#include <cstdint>
#include <vector>

#include "outpace/ann/slots.hpp"

namespace outpace::ann {

// Changes `nearest` so that lists whose last block holds only a few vectors give those to near lists with
// room. `reserved` is how many places of each list are kept free. Deterministic, whatever the number of
// threads.
void fill_blocks(const Shape& shape, const Slots& slots, const float* vectors,
                 const std::vector<float>& centres, const std::vector<std::uint32_t>& reserved, int threads,
                 std::vector<std::uint32_t>& nearest);

}  // namespace outpace::ann
