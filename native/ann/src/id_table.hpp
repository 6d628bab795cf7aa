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
    void clear() { places_.clear(); }

    // `ids` and `live` are the store's; both are only read.
    void build(const Id* ids, const std::uint32_t* live, std::uint32_t slots, std::uint64_t count) {
        std::size_t size = 16;
        while (size < 2 * count + 2) size *= 2;
        places_.assign(size, no_slot);
        used_ = 0;
        for (Slot s = 0; s < slots; ++s)
            if (live[s / lanes] >> (s % lanes) & 1) insert(ids, s);
    }
    Slot find(const Id* ids, Id id) const {
        for (std::size_t at = hash(id);; ++at) {
            const Slot slot = places_[at & (places_.size() - 1)];
            if (slot == no_slot) return no_slot;
            if (slot != gone && ids[slot] == id) return slot;
        }
    }
    // Grows by building again, which the caller does when this returns false.
    bool insert(const Id* ids, Slot slot) {
        if (4 * (used_ + 1) > 3 * places_.size()) return false;
        std::size_t at = hash(ids[slot]);
        while (places_[at & (places_.size() - 1)] != no_slot) ++at;
        places_[at & (places_.size() - 1)] = slot;
        ++used_;
        return true;
    }
    void erase(const Id* ids, Id id) {
        for (std::size_t at = hash(id);; ++at) {
            Slot& slot = places_[at & (places_.size() - 1)];
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
    static std::size_t hash(Id id) {
        std::uint64_t z = std::uint64_t(id) * 0x9e3779b97f4a7c15u;
        return std::size_t(z ^ (z >> 29));
    }

    std::vector<Slot> places_;
    std::size_t used_ = 0;
};

}  // namespace outpace::ann
