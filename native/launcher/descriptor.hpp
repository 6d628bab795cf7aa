// A file descriptor that is closed with its owner. -1 is none.
#pragma once

#include <unistd.h>

#include <utility>

namespace outpace {

class Descriptor {
  public:
    Descriptor() noexcept = default;
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() {
        if (number_ >= 0) {
            close(number_);
        }
    }
    int number() const noexcept { return number_; }
    // Whoever takes the number closes it.
    int release() noexcept { return std::exchange(number_, -1); }
    bool open() const noexcept { return number_ >= 0; }

  private:
    int number_ = -1;
};

}  // namespace outpace
