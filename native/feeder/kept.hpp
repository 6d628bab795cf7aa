// What a caller keeps of the arrays that he was given: whoever uses one again that he has given away is found
// out.
#pragma once

#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../launcher/message.hpp"
#include "memory.hpp"
#include "turn.hpp"

namespace outpace {

// Theory of operation. An honest worker holds the arrays of an answer until the next question comes, and with
// it is told whether their caller keeps them for longer, to the end of the turn. What is kept must stay as
// the feeder has left it, and nothing new may lie there. So a candidate that gives the same array again and
// again cannot know which it may not, and one that only gives again what its caller has let go of is an
// allocator.
class Kept {
  public:
    // The arrays of an answer, which were just fetched.
    void given_away(const std::vector<Range>& places) {
        last_ = places;
        used_again_ = used_again_ || overlap(places);
    }

    // What the next question says of them.
    std::uint32_t what_to_keep() {
        constexpr std::uint64_t most_bytes = 64 << 20;
        constexpr unsigned one_in = 16;
        std::uint32_t flags = first_ ? lets_go : 0;
        first_ = false;
        std::uint64_t bytes = 0;
        for (const Range& place : last_) {
            bytes += place.bytes;
        }
        unsigned char lot = 0;
        if (bytes != 0 && bytes_ + bytes <= most_bytes && getrandom(&lot, sizeof lot, 0) == sizeof lot &&
            lot % one_in == 0) {
            places_.insert(places_.end(), last_.begin(), last_.end());
            bytes_ += bytes;
            flags |= keeps;
        }
        last_.clear();
        return flags;
    }

    // Whether all of it is as it was left.
    bool stand(Memory& memory) const {
        return !used_again_ && std::all_of(places_.begin(), places_.end(), [&memory](const Range& place) {
            return memory.stands(place.offset, place.bytes);
        });
    }

  private:
    bool overlap(const std::vector<Range>& places) const {
        return std::any_of(places.begin(), places.end(), [this](const Range& one) {
            return std::any_of(places_.begin(), places_.end(), [&one](const Range& other) {
                return one.offset < other.offset + other.bytes && other.offset < one.offset + one.bytes;
            });
        });
    }

    bool first_ = true;
    bool used_again_ = false;
    std::vector<Range> last_;    // of the last answer
    std::vector<Range> places_;  // that are kept, and what they take
    std::uint64_t bytes_ = 0;
};

}  // namespace outpace
