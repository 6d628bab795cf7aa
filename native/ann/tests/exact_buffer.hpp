// Exact buffer: memory that ends where it says, so that one byte too many is noticed.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace outpace::ann::tests {

// On the heap the address sanitizer watches both ends, but not the masked stores of AVX-512. Before a page
// that nobody may touch the processor itself watches the end.
enum class Placement { heap, guarded };

template <class T>
class ExactBuffer {
  public:
    ExactBuffer(std::size_t count, Placement placement) : bytes_(count * sizeof(T)), placement_(placement) {
        std::uint8_t* at;
        if (placement == Placement::heap) {
            at = static_cast<std::uint8_t*>(::operator new(bytes_, std::align_val_t(64)));
        } else {
            const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE)),
                              room = (bytes_ + page - 1) / page * page;
            mapped_ = room + page;
            map_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (map_ == MAP_FAILED) throw std::bad_alloc();
            auto* begin = static_cast<std::uint8_t*>(map_);
            if (mprotect(begin + room, page, PROT_NONE) != 0) throw std::bad_alloc();
            at = begin + room - bytes_;
        }
        std::memset(at, 0x5a, bytes_);  // not zero, so that nobody counts on zeros
        data_ = reinterpret_cast<T*>(at);
    }
    ~ExactBuffer() {
        if (placement_ == Placement::heap)
            ::operator delete(data_, std::align_val_t(64));
        else
            munmap(map_, mapped_);
    }
    ExactBuffer(const ExactBuffer&) = delete;
    ExactBuffer& operator=(const ExactBuffer&) = delete;

    T* data() { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    std::size_t size() const { return bytes_ / sizeof(T); }

  private:
    std::size_t bytes_, mapped_ = 0;
    Placement placement_;
    void* map_ = nullptr;
    T* data_ = nullptr;
};

}  // namespace outpace::ann::tests
