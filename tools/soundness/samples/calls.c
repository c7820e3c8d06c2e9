/* Recursion, tail calls, function pointers, and calls with a varying number of arguments. */
#include "samples.h"

#include <stdarg.h>

static int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static long gcd(long a, long b) { return b ? gcd(b, a % b) : a; }

static int odd(unsigned n);
static int even(unsigned n) { return n == 0 || odd(n - 1); }
static int odd(unsigned n) { return n != 0 && even(n - 1); }

static double total(const char *kinds, ...) {
    va_list list, again;
    double sum = 0;
    va_start(list, kinds);
    va_copy(again, list);
    for (const char *k = kinds; *k; k++)
        sum += *k == 'i' ? va_arg(list, int) : *k == 'l' ? (double)va_arg(list, long) : va_arg(list, double);
    if (*kinds == 'i')
        sum *= va_arg(again, int);
    va_end(again);
    va_end(list);
    return sum;
}

static int twice(int x) { return 2 * x; }
static int square(int x) { return x * x; }
static int negate(int x) { return -x; }
static int (*const functions[])(int) = {twice, square, negate};

static int compose(const int *order, int count, int x) {
    for (int i = 0; i < count; i++)
        x = functions[order[i]](x) % 10007;
    return x;
}

static int queens(unsigned row, unsigned columns, unsigned left, unsigned right, unsigned size) {
    if (row == size)
        return 1;
    int found = 0;
    for (unsigned free = ~(columns | left | right) & ((1u << size) - 1); free; free &= free - 1) {
        unsigned place = free & -free;
        found += queens(row + 1, columns | place, (left | place) << 1, (right | place) >> 1, size);
    }
    return found;
}

void calls(void) {
    static const int order[] = {0, 1, 2, 1, 0, 0, 2, 1};
    printf("%d %ld %d %d\n", ackermann(2, 5), gcd(1071, 462), even(1000), odd(77));
    printf("%.3f %.3f\n", total("idl", 3, 0.5, 40L), total("dddddddddd", 1., 2., 3., 4., 5., 6., 7., 8., 9., .5));
    for (int x = -3; x < 4; x++)
        printf("%d ", compose(order, 8, x));
    printf("\nqueens %d %d\n", queens(0, 0, 0, 0, 6), queens(0, 0, 0, 0, 7));
}
