/* Loops over arrays that may be the same: called with some that are apart, and with some that overlap. */
#include "samples.h"

#define APART __attribute__((noinline)) static

enum { N = 96 };

APART void shifted(unsigned *to, const unsigned *from, int n) {
    for (int i = 0; i < n; i++)
        to[i] = from[i] * 3 + 1;
}

APART void rows(unsigned *sums, const unsigned *a, const unsigned *x, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            sums[i] += a[(i * 7 + k) % N] * x[k];
}

APART void product(unsigned *c, const unsigned *a, const unsigned *b, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

APART void bytes(unsigned char *to, const short *from, int n, int by) {
    for (int i = 0; i < n; i++)
        to[i * by] = (unsigned char)(from[i] >> 3);
}

APART void three(unsigned *a, unsigned *b, const unsigned *c, int n) {
    for (int i = 1; i < n; i++) {
        a[i] = b[i - 1] + c[i];
        b[i] = a[i - 1] ^ c[n - i];
    }
}

APART void backwards(long *to, const long *from, int n) {
    for (int i = n; i-- > 0;)
        to[i] = from[i] - i;
}

APART void scaled(double *y, const double *x, const double *by, int n) {
    for (int i = 0; i < n; i++)
        y[i] = y[i] * 0.5 + x[i] * *by;
}

static unsigned added(unsigned hash, const void *data, int bytes) {
    for (int i = 0; i < bytes; i++)
        hash = hash * 31 + ((const unsigned char *)data)[i];
    return hash;
}

void aliases(void) {
    static unsigned x[4 * N], y[4 * N];
    static long l[2 * N];
    static double d[2 * N];
    static union { short s[2 * N]; unsigned char c[4 * N]; } both;
    static const int places[] = {0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 33, N};
    for (unsigned p = 0; p < sizeof places / sizeof *places; p++) {
        int by = places[p];
        unsigned hash = 7;
        for (int i = 0; i < 4 * N; i++)
            x[i] = i % 13 - 5u, y[i] = i % 7;
        for (int i = 0; i < 2 * N; i++)
            l[i] = i * 3, d[i] = i % 11 * 0.25, both.s[i] = (short)(i * 37);
        shifted(x + by, x, N), shifted(x, x + by, N), shifted(y, x, N - by / 2);
        hash = added(hash, x, sizeof x);
        rows(x + by, x, y, 20), rows(y, y + by, x, 17), rows(x, x, x + by, by % 5 + 1);
        hash = added(hash, y, sizeof y);
        product(x, x + by, y, 9), product(x + by, x, x, 8), product(y, x, x + by, 9);
        hash = added(hash, x, sizeof x);
        bytes(both.c + by, both.s, N, 1), bytes(both.c, both.s + by, 40, 2), bytes(both.c + 2 * N, both.s, 50, 3);
        hash = added(hash, &both, sizeof both);
        three(x, x + by, y, N), three(x + by, y, x, 60), three(x, y, y + by, 50);
        hash = added(hash, x, sizeof x);
        backwards(l + by, l, N), backwards(l, l + by, N);
        hash = added(hash, l, sizeof l);
        scaled(d + by, d, d + 3, N), scaled(d, d + by, d + N, N), scaled(d, d + N, d + by, 70);
        double sum = 0;
        for (int i = 0; i < 2 * N; i++)
            sum = sum * 0.75 + d[i];
        printf("%d: %08x %.9g\n", by, hash, sum);
    }
}
