/* Floating point: rounding, infinities, NaN, signed zeros, conversions. */
#include "samples.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static uint64_t pattern(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0x7ff8000000000000u : bits;
}

static double horner(const double *c, int n, double x) {
    double y = 0;
    while (n--)
        y = y * x + c[n];
    return y;
}

static double compensated(const double *values, int n) {
    double sum = 0, lost = 0;
    for (int i = 0; i < n; i++) {
        double add = values[i] - lost, next = sum + add;
        lost = (next - sum) - add;
        sum = next;
    }
    return sum;
}

static const char *order(double a, double b) {
    return a < b ? "<" : a > b ? ">" : a == b ? "=" : a != a ? "?" : "!";
}

static float converted(int i, unsigned u, long long l) { return (float)i / 3 + (float)u - (float)l * 1e-12f; }

void floats(void) {
    static const double c[] = {1, -0.5, 0.25, -0.125, 3, 1e-3};
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = (i % 7 - 3) * 1e10 + i * 0.1;
    printf("%a %a %a\n", horner(c, 6, 0.7), horner(c, 6, -1e3), compensated(values, 100));
    double zero = values[0] - values[0], huge = 1e308;
    double odd[] = {zero, -zero, 1 / (zero + 0.0), -1 / (zero * zero), zero / zero, huge * 10, huge, -5e-324, 0.1};
    for (int i = 0; i < 9; i++) {
        for (int k = 0; k < 9; k++)
            printf("%s", order(odd[i], odd[k]));
        printf(" %016llx %d\n", (unsigned long long)pattern(odd[i] + 1), signbit(odd[i]) != 0 && !isnan(odd[i]));
    }
    printf("%a %a\n", (double)converted(-7, 4000000000u, 1LL << 61), (double)(float)0.1);
    printf("%d %lld %u\n", (int)-3.99, (long long)9.007e15, (unsigned)3e9);
    printf("%a %a %a %a\n", sqrt(2), floor(-2.5), fabs(-0.0), fmod(7.5, -2));
    printf("%016llx %016llx\n", (unsigned long long)pattern(-zero), (unsigned long long)pattern(0 - zero));
}
