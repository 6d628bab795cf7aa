#include <cstdint>
#include <iostream>

int main() {
    uint64_t total = 0;
    for (uint64_t number; std::cin >> number;) total += number;
    std::cout << total << "\n";
}
