#include <vector>

// All primes up to n.
std::vector<int> sieve(int n) {
    std::vector<bool> composite(static_cast<std::size_t>(n) + 1);
    std::vector<int> primes;
    for (int i = 2; i <= n; ++i) {
        if (composite[i]) continue;
        primes.push_back(i);
        for (long j = static_cast<long>(i) * i; j <= n; j += i) composite[j] = true;
    }
    return primes;
}
