// K-means: centres of lists, by Lloyd's rounds on a sample with eight-bit distances.
#pragma once

#include <cstdint>
#include <vector>

#include "outpace/ann/slots.hpp"
#include "threads.hpp"

namespace outpace::ann {

// Vectors are rows of `padded` floats. Returns `wanted` centres as rows of the same width. Independent of
// `threads`. `report` is told of every round.
std::vector<float> k_means(const Shape& shape, const Slots& slots, const float* vectors, std::size_t count,
                           std::uint32_t wanted, int rounds, std::size_t sample_per_centre,
                           std::uint64_t seed, int threads, const Report& report = {});

// The nearest centre of every vector.
std::vector<std::uint32_t> assign_all(const Shape& shape, const Slots& slots, const float* vectors,
                                      std::size_t count, const std::vector<float>& centres, int threads);

// The mean of each list's vectors; a list without any keeps its old centre.
void move_centres(int padded, const float* vectors, const std::vector<std::uint32_t>& nearest, int threads,
                  std::vector<float>& centres, std::vector<std::uint32_t>& sizes);

}  // namespace outpace::ann
