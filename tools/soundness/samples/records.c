/* Structures by value, unions, bit fields, and copies that overlap. */
#include "samples.h"

#include <string.h>

struct point { int x, y; };
struct box { struct point low, high; char name[12]; };
struct packed { unsigned a : 3; int b : 5; unsigned c : 17; signed char d; };
union word { unsigned whole; unsigned char bytes[4]; };
struct pair { double real; long count; };

static struct point moved(struct point p, int dx, int dy) { return (struct point){p.x + dx, p.y + dy}; }

static struct box grown(struct box b, int by) {
    b.low = moved(b.low, -by, -by);
    b.high = moved(b.high, by, by);
    b.name[0]++;
    return b;
}

static int area(const struct box *b) { return (b->high.x - b->low.x) * (b->high.y - b->low.y); }

static struct pair joined(struct pair p, struct pair q) {
    return (struct pair){p.real * q.real, p.count > q.count ? p.count : q.count};
}

static unsigned turned(unsigned x) {
    union word w = {.whole = x};
    unsigned char held = w.bytes[0];
    w.bytes[0] = w.bytes[2];
    w.bytes[2] = held;
    return w.whole;
}

static void swap(struct box *p, struct box *q) {
    struct box held = *p;
    *p = *q;
    *q = held;
}

void records(void) {
    struct box boxes[4] = {{{0, 0}, {3, 4}, "first"}, {{-5, 2}, {1, 9}, "second"}};
    boxes[2] = grown(boxes[0], 2);
    boxes[3] = grown(grown(boxes[1], 1), -3);
    swap(&boxes[0], &boxes[3]);
    memmove(boxes + 1, boxes, 2 * sizeof *boxes);
    for (int i = 0; i < 4; i++)
        printf("%s %d %d %d\n", boxes[i].name, boxes[i].low.x, boxes[i].high.y, area(&boxes[i]));
    struct packed p = {5, -7, 99999, -1};
    for (int i = 0; i < 6; i++) {
        p.a += 3;
        p.b = (p.b + 9 + 16) % 32 - 16;
        p.c ^= p.c << 3;
        p.d = (signed char)(p.d * 3);
        printf("%u %d %u %d\n", p.a, p.b, p.c, p.d);
    }
    struct pair q = {1.5, 2};
    for (long i = 0; i < 9; i++)
        q = joined(q, (struct pair){1.0 + (double)i / 8, 7 * i % 11});
    printf("%a %ld %08x\n", q.real, q.count, turned(turned(0x12345678u) + 0x01010101u));
}
