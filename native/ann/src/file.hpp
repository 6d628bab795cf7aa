// File: an index as one file of checked sections that can be read whole or mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calibration.hpp"
#include "store.hpp"

namespace outpace::ann {

struct Saved {
    Store store;
    Calibration calibration;
};

// Writes beside the target, flushes, and renames: at any moment the old file or the new one is there.
void save_file(const std::string& path, const Store& store, const Calibration& calibration);
std::vector<std::uint8_t> save_bytes(const Store& store, const Calibration& calibration);

// `map`: sections stay in the file and are read when they are touched; their checksums are not read then.
Saved load_file(const std::string& path, bool map);
// Copies what lies in a mapped file or in borrowed bytes, each section into memory of its own.
void own_sections(Store& store);
Saved load_bytes(std::shared_ptr<void> owner, std::uint8_t* data, std::size_t size, bool check,
                 const std::string& name);

}  // namespace outpace::ann
