/* The first place in a sorted array whose element is not below the key */
int lower_bound(const int *sorted, int n, int key) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (sorted[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}
