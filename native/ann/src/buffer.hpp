// Buffer: bytes on cache lines, on huge pages where they are many.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace outpace::ann {

// Owns a mapping, or borrows a part of a mapped file and copies it when it has to grow. Writing into a
// borrowed part changes this process's view alone, since files are mapped privately.
class Buffer {
  public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }

    static Buffer borrow(std::shared_ptr<void> file, std::uint8_t* data, std::size_t size) {
        Buffer buffer;
        buffer.file_ = std::move(file);
        buffer.data_ = data;
        buffer.size_ = size;
        return buffer;
    }

    std::uint8_t* data() { return data_; }
    const std::uint8_t* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t reserved() const { return file_ ? size_ : capacity_; }

    template <class T>
    T* as() {
        return reinterpret_cast<T*>(data_);
    }
    template <class T>
    const T* as() const {
        return reinterpret_cast<const T*>(data_);
    }

    // New bytes are zero.
    void resize(std::size_t size) {
        if (size < size_)
            std::memset(data_ + size, 0, size_ - size);
        else
            make_room(size);
        size_ = size;
    }
    // A resize to this size then needs no memory and cannot fail. Growth leaves a 32nd to spare, so that many
    // small additions stay linear.
    void make_room(std::size_t size) {
        if (size > size_ && size > capacity_) reserve(size_ ? size + size / 32 : size);
    }

  private:
    static constexpr std::size_t huge = std::size_t(2) << 20;
    // A kernel reads whole lines, and one block ahead of the last.
    static constexpr std::size_t margin = 16384;

    void reserve(std::size_t capacity) {
        // Rounding a small buffer up to huge pages would waste a large part of it.
        const std::size_t unit = capacity >= 32 * huge ? huge : 4096;
        const std::size_t bytes = (capacity + margin + unit - 1) / unit * unit;
        // Over-allocated by one unit so that large buffers begin on a huge page.
        void* raw = mmap(nullptr, bytes + unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (raw == MAP_FAILED) throw std::bad_alloc();
        auto* aligned =
            reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(raw) + unit - 1) / unit * unit);
#ifdef MADV_HUGEPAGE
        if (unit == huge) madvise(aligned, bytes, MADV_HUGEPAGE);
#endif
        if (size_) std::memcpy(aligned, data_, size_);
        release();
        raw_ = raw;
        mapped_ = bytes + unit;
        data_ = aligned;
        capacity_ = bytes - margin;
    }
    void release() {
        if (raw_) munmap(raw_, mapped_);
        raw_ = nullptr;
        file_.reset();
        data_ = nullptr;
        capacity_ = mapped_ = 0;
    }
    void swap(Buffer& other) {
        std::swap(raw_, other.raw_);
        std::swap(mapped_, other.mapped_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        std::swap(file_, other.file_);
    }

    void* raw_ = nullptr;
    std::size_t mapped_ = 0;
    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::shared_ptr<void> file_;
};

}  // namespace outpace::ann
