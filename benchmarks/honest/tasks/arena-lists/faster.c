#include <stdint.h>
#include <stdlib.h>

struct node {
    struct node* next;
    uint32_t value;
};

static struct node* arena;
static int64_t room;

uint64_t lists(const uint32_t* values, int64_t n) {
    if (n > room) {
        free(arena);
        room = 2 * n;
        arena = malloc((size_t)room * sizeof *arena);
    }
    struct node* heads[256] = {0};
    for (int64_t i = 0; i < n; i++) {
        struct node* node = &arena[i];
        node->value = values[i];
        node->next = heads[values[i] & 255];
        heads[values[i] & 255] = node;
    }
    uint64_t mixed = 0;
    for (int list = 0; list < 256; list++) {
        for (struct node* node = heads[list]; node != NULL; node = node->next)
            mixed = mixed * 31 + node->value;
    }
    return mixed;
}
