/* Memory on the heap: linked lists, a search tree, a heap sort, a hash table. */
#include "samples.h"

#include <stdlib.h>

struct node {
    struct node *next, *left, *right;
    int key;
};

static struct node *insert(struct node *root, struct node *fresh) {
    if (!root)
        return fresh;
    struct node **side = fresh->key < root->key ? &root->left : &root->right;
    *side = insert(*side, fresh);
    return root;
}

static int walk(const struct node *root, int place, long *sum) {
    if (!root)
        return place;
    place = walk(root->left, place, sum);
    *sum += (long)place * root->key;
    return walk(root->right, place + 1, sum);
}

static struct node *reversed(struct node *list) {
    struct node *done = NULL;
    while (list) {
        struct node *rest = list->next;
        list->next = done;
        done = list;
        list = rest;
    }
    return done;
}

static void sift(int *a, int root, int end) {
    for (int child; (child = 2 * root + 1) < end; root = child) {
        if (child + 1 < end && a[child] < a[child + 1])
            child++;
        if (a[root] >= a[child])
            return;
        int held = a[root];
        a[root] = a[child], a[child] = held;
    }
}

static void sort(int *a, int n) {
    for (int i = n / 2; i--;)
        sift(a, i, n);
    while (--n > 0) {
        int held = a[0];
        a[0] = a[n], a[n] = held;
        sift(a, 0, n);
    }
}

static int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x < y) - (x > y);
}

void lists(void) {
    enum { N = 60 };
    struct node *list = NULL, *root = NULL;
    int *keys = malloc(N * sizeof *keys), *copy = calloc(N, sizeof *copy);
    unsigned state = 12345;
    if (!keys || !copy)
        abort();
    for (int i = 0; i < N; i++) {
        struct node *fresh = malloc(sizeof *fresh);
        if (!fresh)
            abort();
        state = state * 1103515245u + 12345u;
        copy[i] = keys[i] = (int)(state >> 16 & 0xfff) - 2000;
        *fresh = (struct node){.next = list, .key = keys[i]};
        list = fresh;
        root = insert(root, fresh);
    }
    long sum = 0;
    int count = walk(root, 0, &sum);
    sort(keys, N);
    qsort(copy, N, sizeof *copy, compare);
    printf("%d %ld %d %d %d\n", count, sum, keys[0], keys[N / 2], copy[0]);
    for (int i = 0; i < N; i++)
        if (keys[i] != copy[N - 1 - i])
            printf("sorted apart at %d\n", i);
    unsigned hash = 0;
    for (struct node *n = list = reversed(list); n; n = n->next)
        hash = hash * 31 + (unsigned)n->key;
    printf("%u\n", hash);
    while (list) {
        struct node *rest = list->next;
        free(list);
        list = rest;
    }
    free(keys);
    free(copy);
}
