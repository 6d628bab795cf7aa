/* All shortest paths: path[i][j] becomes the length of the shortest way from i to j */
void floyd_warshall(int n, int path[n][n]) {
    for (int k = 0; k < n; ++k) {
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                const int way = path[i][k] + path[k][j];
                if (way < path[i][j]) path[i][j] = way;
            }
        }
    }
}
