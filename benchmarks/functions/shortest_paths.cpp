#include <queue>
#include <utility>
#include <vector>

// The lengths of the shortest ways from a node to all others, by Dijkstra's method.
std::vector<int> shortest_paths(const std::vector<std::vector<std::pair<int, int>>>& edges, int start) {
    std::vector<int> length(edges.size(), 1 << 30);
    std::priority_queue<std::pair<int, int>> next;
    length[start] = 0;
    next.push({0, start});
    while (!next.empty()) {
        const auto [minus, node] = next.top();
        next.pop();
        if (-minus > length[node]) continue;
        for (const auto& [to, weight] : edges[node]) {
            if (length[node] + weight < length[to]) {
                length[to] = length[node] + weight;
                next.push({-length[to], to});
            }
        }
    }
    return length;
}
