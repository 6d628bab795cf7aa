// Image: the bytes of an index file in memory of their own, which a test can change and seal again.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "../src/file_layout.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace outpace::ann::tests {

using Bytes = std::vector<std::uint8_t>;

inline file_layout::Header header_of_image(const Bytes& image) {
    file_layout::Header header;
    std::memcpy(static_cast<void*>(&header), image.data(), sizeof header);
    return header;
}
inline void set_header(Bytes& image, const file_layout::Header& header) {
    std::memcpy(image.data(), &header, sizeof header);
}

inline bool lies_within(const file_layout::Place& place, std::size_t size) {
    return place.size <= size && place.offset <= size - place.size;
}

// Makes all checksums right for the bytes as they are. Places that lie outside keep theirs.
inline void seal(Bytes& image) {
    if (image.size() < sizeof(file_layout::Header)) return;
    file_layout::Header header = header_of_image(image);
    for (file_layout::Place& place : header.place)
        if (lies_within(place, image.size()))
            place.checksum = checksum(image.data() + place.offset, place.size);
    header.checksum = file_layout::header_checksum(header);
    set_header(image, header);
}

// A copy on a page boundary that ends where the image does, so that the address sanitizer sees its end.
inline std::shared_ptr<std::uint8_t> paged(const Bytes& image) {
    auto* bytes = static_cast<std::uint8_t*>(
        ::operator new(std::max<std::size_t>(image.size(), 1), std::align_val_t(file_layout::page)));
    if (!image.empty()) std::memcpy(bytes, image.data(), image.size());
    return {bytes, [](std::uint8_t* p) { ::operator delete(p, std::align_val_t(file_layout::page)); }};
}

// Forbids what lies between the sections of an image that was loaded: one byte past a section is noticed too.
inline void forbid_gaps([[maybe_unused]] std::uint8_t* data, [[maybe_unused]] const Bytes& image) {
#ifdef __SANITIZE_ADDRESS__
    const file_layout::Header header = header_of_image(image);
    std::size_t end = 0;
    for (const file_layout::Place& place : header.place) {
        if (place.offset < end) return;
        ASAN_POISON_MEMORY_REGION(data + end, place.offset - end);
        end = place.offset + place.size;
    }
    ASAN_POISON_MEMORY_REGION(data + end, image.size() - end);
#endif
}

}  // namespace outpace::ann::tests
