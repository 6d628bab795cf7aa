// Check: a condition that must hold, reported with its place and values; the program goes on and fails at its
// end.
#pragma once

#include <cstdio>

namespace outpace::ann::tests {

inline int failures = 0;

inline int verdict() {
    if (failures) std::fprintf(stderr, "%d checks failed\n", failures);
    return failures ? 1 : 0;
}

}  // namespace outpace::ann::tests

// The words after the condition are printf's; only the first few failures are worth reading.
#define CHECK(condition, ...)                                                              \
    do {                                                                                   \
        if (!(condition) && ++outpace::ann::tests::failures <= 20) {                       \
            std::fprintf(stderr, "%s:%d: not true: %s: ", __FILE__, __LINE__, #condition); \
            std::fprintf(stderr, __VA_ARGS__);                                             \
            std::fputc('\n', stderr);                                                      \
        }                                                                                  \
    } while (false)
