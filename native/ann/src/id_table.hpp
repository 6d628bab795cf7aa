// Id table: from a user's id to its slot; open addressing over the slots alone, since the ids lie in the
// store.
#pragma once

#include <cstdint>
#include <vector>

#include "outpace/ann/layout.hpp"

namespace outpace::ann {

class IdTable {
  public:
    bool built() const { return !places_.empty(); }
    void clear() { places_ = {}; }

    // `ids` and `live` are the store's; both are only read.
    void build(const Id* ids, const std::uint32_t* live, std::uint32_t slots, std::uint64_t count) {
        // Half as many places again as ids: six bytes for each, and probes stay short.
        places_ = std::vector<Slot>(std::size_t(count) + std::size_t(count) / 2 + 16, no_slot);
        used_ = 0;
        for (Slot s = 0; s < slots; ++s)
            if (live[s / lanes] >> (s % lanes) & 1) insert(ids, s);
    }
    Slot find(const Id* ids, Id id) const {
        for (std::size_t at = home(id);; at = next(at)) {
            const Slot slot = places_[at];
            if (slot == no_slot) return no_slot;
            if (slot != gone && ids[slot] == id) return slot;
        }
    }
    // Whether it must be built again, larger, before the next insertion.
    bool full() const { return 5 * (used_ + 1) > 4 * places_.size(); }
    void insert(const Id* ids, Slot slot) {
        std::size_t at = home(ids[slot]);
        while (places_[at] != no_slot) at = next(at);
        places_[at] = slot;
        ++used_;
    }
    void erase(const Id* ids, Id id) {
        for (std::size_t at = home(id);; at = next(at)) {
            Slot& slot = places_[at];
            if (slot == no_slot) return;
            if (slot != gone && ids[slot] == id) {
                slot = gone;
                return;
            }
        }
    }
    std::size_t bytes() const { return places_.size() * sizeof(Slot); }

  private:
    static constexpr Slot gone = no_slot - 1;  // slots are below 2^31
    // Where an id would be if nobody else were there: a mixed 64-bit number, scaled to the table's size.
    std::size_t home(Id id) const {
        std::uint64_t z = std::uint64_t(id) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
        return std::size_t((static_cast<unsigned __int128>(z) * places_.size()) >> 64);
    }
    std::size_t next(std::size_t at) const { return at + 1 < places_.size() ? at + 1 : 0; }

    std::vector<Slot> places_;
    std::size_t used_ = 0;
};

}  // namespace outpace::ann
