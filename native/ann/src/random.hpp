// Random: a small generator of our own, because the standard library's distributions differ between
// platforms.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace outpace::ann {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    // SplitMix64 (Steele, Lea and Flood 2014).
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t bound) {
        return std::size_t((static_cast<unsigned __int128>(next()) * bound) >> 64);
    }
    double uniform() { return double(next() >> 11) * 0x1p-53; }
    double normal() {
        const double radius = std::sqrt(-2 * std::log(1 - uniform()));
        return radius * std::cos(6.283185307179586 * uniform());
    }
    // `wanted` different numbers below `bound`, ascending.
    std::vector<std::size_t> sample(std::size_t bound, std::size_t wanted) {
        std::vector<std::size_t> chosen;
        if (wanted >= bound) {
            chosen.resize(bound);
            std::iota(chosen.begin(), chosen.end(), std::size_t(0));
            return chosen;
        }
        chosen.reserve(wanted);
        for (std::size_t i = 0; i < bound && chosen.size() < wanted; ++i)
            if (below(bound - i) < wanted - chosen.size()) chosen.push_back(i);
        return chosen;
    }

  private:
    std::uint64_t state_;
};

}  // namespace outpace::ann
