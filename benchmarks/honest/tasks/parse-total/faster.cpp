#include <cstdint>
#include <cstdio>

int main() {
    static char block[1 << 16];
    uint64_t total = 0, number = 0;
    for (size_t got; (got = std::fread(block, 1, sizeof block, stdin)) > 0;) {
        for (size_t i = 0; i < got; i++) {
            if (block[i] >= '0' && block[i] <= '9') {
                number = number * 10 + static_cast<uint64_t>(block[i] - '0');
            } else {
                total += number;
                number = 0;
            }
        }
    }
    std::printf("%lu\n", total + number);
}
