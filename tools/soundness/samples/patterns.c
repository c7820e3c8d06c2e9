/* What rare passes wait for: hints, library calls, vectors, comparisons in a row, shared constants. */
#include "samples.h"

#include <math.h>
#include <string.h>

typedef unsigned four __attribute__((vector_size(16)));

struct key { int kind, id, part, serial; };

static const int small_table[8] = {1, 1, 2, 3, 5, 8, 13, 21};
static const int same_table[8] = {1, 1, 2, 3, 5, 8, 13, 21};
static int (*chosen)(int, int);

static int same(const struct key *a, const struct key *b) {
    return a->kind == b->kind && a->id == b->id && a->part == b->part && a->serial == b->serial;
}

static int equal8(const char *a, const char *b) { return memcmp(a, b, 8) == 0; }
static int order3(const char *a, const char *b) { return memcmp(a, b, 3) < 0; }

static int through_floats(short a, short b) {
    float sum = (float)a + (float)b;
    return sum < (float)a ? -(int)sum : (int)sum;
}

static int divided(int a, int b) { return b ? a / b * 3 + a % b : 0; }

static int hinted(const int *p, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        if (__builtin_expect(p[i] < 0, 0))
            sum -= p[i] * 7 + (__builtin_constant_p(n) ? n / 2 : n >> 1) /* the same, for n >= 0 */;
        else
            sum += p[i];
    return sum + (int)__builtin_object_size(p, 0) * 0;
}

static double unused_roots(double x) {
    sqrt(x); /* may set errno, and is needed for nothing else */
    log(x - 100);
    return sqrt(x + 2) + pow(x, 0.5);
}

static four mixed(four a, four b) {
    four c = a * b + (a >> 1);
    c[1] = a[2] - b[0];
    return (c & (four){~0u, 255, ~0u, 65535}) ^ (four)(a > b);
}

static void apart(int *restrict a, int *restrict b, const int *restrict c, int n) {
#ifdef __clang__
#pragma clang loop distribute(enable)
#endif
    for (int i = 0; i + 1 < n; i++) {
        a[i + 1] = a[i] + b[i];
        b[i] = c[i] * 3;
    }
}

static int added(int a, int b, int c, const int *t) {
    int ab = a + b, abc = a + b + c, ac = a + c;
    return ab * 3 + abc * 5 + (ac + b) * 7 + t[a + b] + t[a + c] + t[a + b + c] + a * 4 + b * 4 + c * 4;
}

static __attribute__((noinline)) int label(const char *name, int kind) {
    if (!name)
        return -kind;
    return (int)strlen(name) * 10 + kind;
}

static int split_call(const char *name, int kind) {
    int which = 2;
    if (!name || kind == 1)
        which = label(name, kind);
    return which + (name && kind == 3 ? label(name, 3) : 0);
}

static int both(int a, int b, int c, int *out) {
    int steps = 0;
    if (a > 0 || b > 0)
        *out += 1;
    if (a > 1 && b > 1 && c > 1)
        *out += 2;
    if (a == c)
        steps++;
    if (b == c)
        steps++;
    return steps;
}

/* The next state is always a constant: its switch can be jumped over. */
static int automaton(const char *s) {
    int state = 1, sum = 0;
    for (; *s; s++) {
        switch (state) {
        case 1: state = *s == 'a' ? 2 : 1; break;
        case 2: sum += 3; state = *s == 'b' ? 3 : *s == 'a' ? 2 : 1; break;
        case 3: sum *= 2; state = *s == 'c' ? 4 : 1; break;
        case 4: sum -= 1; state = 1; break;
        }
    }
    return sum * 10 + state;
}

static int plus(int a, int b) { return a + b; }
static int minus(int a, int b) { return a - b; }

static long polynomial(const long *p, long i, long stride) {
    return p[i * stride] + p[(i + 1) * stride] * 3 + p[(i + 2) * stride] * 5 + i * stride * 7;
}

static double near(const double *x, int n) {
    double best = INFINITY;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (i != k && fabs(x[i] - x[k]) < best)
                best = fabs(x[i] - x[k]);
    return best;
}

void patterns(void) {
    struct key keys[3] = {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 9, 4}};
    four a = {1, ~1u, 300000, 7}, b = {5, 6, ~6u, 80};
    int p[12], q[12], out = 0;
    long line[40];
    double x[] = {1.5, 9.25, -3, 4.125, 1.625, 100};
    printf("%d%d %d%d %d%d\n", same(keys, keys + 1), same(keys, keys + 2), equal8("abcdefgh", "abcdefgh"),
           equal8("abcdefgh", "abcdefgx"), order3("abc", "abd"), order3("ab\xff", "abc"));
    printf("%d %d %d %d\n", through_floats(3, -9), through_floats(32767, 32767), divided(-17, 5), divided(1, 0));
    for (int i = 0; i < 12; i++)
        p[i] = i * 5 % 9 - 2, q[i] = i;
    printf("%d %a\n", hinted(p, 12), unused_roots(2.25));
    for (int i = 0; i < 3; i++)
        a = mixed(a, b), b = mixed(b, a - (unsigned)i);
    printf("%u %u %u %u\n", a[0], a[1], b[2], b[3]);
    apart(p, q, small_table, 8);
    printf("%d %d %d\n", p[7], q[3], added(1, 2, 3, same_table));
    for (int i = 0; i < 5; i++) {
        chosen = i & 1 ? plus : minus;
        printf("%d %d %d,", split_call(i & 2 ? NULL : "name", i), chosen(i, 3), both(i, 2, i % 3, &out));
    }
    for (int i = 0; i < 40; i++)
        line[i] = i * i - 7;
    printf("%d %d %ld %a\n", out, automaton("aabcabcaabxaabccab"), polynomial(line, 4, 6), near(x, 6));
}
