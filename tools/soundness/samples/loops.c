/* Loops over arrays: nests, strides, reductions, dependences, early exits. */
#include "samples.h"

enum { N = 24 };

static int a[N][N], b[N][N], c[N][N];
static unsigned char sieve[500];

static void multiply(int rows) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < N; j++) {
            c[i][j] = 0;
            for (int k = 0; k < N; k++)
                c[i][j] += a[i][k] * b[k][j];
        }
}

static int primes(int limit) {
    int count = 0;
    for (int i = 2; i < limit; i++) {
        if (sieve[i])
            continue;
        count++;
        for (int k = i * i; k < limit; k += i)
            sieve[k] = 1;
    }
    return count;
}

static void smooth(short *x, int n, int passes) {
    while (passes-- > 0)
        for (int i = 1; i < n - 1; i++)
            x[i] = (short)((x[i - 1] + 2 * x[i] + x[i + 1]) / 4);
}

static void overlap(int *x, int n, int by) {
    for (int i = by; i < n; i++)
        x[i] += x[i - by];
}

static int find(const int *x, int n, int wanted, int *steps) {
    int low = 0, high = n;
    for (*steps = 0; low < high; ++*steps) {
        int middle = low + (high - low) / 2;
        if (x[middle] == wanted)
            return middle;
        if (x[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

void loops(void) {
    short wave[40];
    int line[50], steps;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = i * 3 - j, b[i][j] = (i ^ j) - 5;
    multiply(N - 1);
    unsigned hash = 0;
    for (int i = N; i--;)
        for (int j = 0; j < N; j += 1 + i % 3)
            hash = hash * 33 + (unsigned)c[j][i];
    for (int i = 0; i < 40; i++)
        wave[i] = (short)(i % 5 * 1000 - i);
    smooth(wave, 40, 6);
    for (int i = 0; i < 50; i++)
        line[i] = i % 4;
    overlap(line, 50, 1);
    overlap(line, 45, 7);
    long least = 1L << 40, most = -least, sum = 0;
    for (int i = 0; i < 50; i++) {
        least = line[i] < least ? line[i] : least;
        most = line[i] > most ? line[i] : most;
        sum += i & 1 ? line[i] : -(long)line[i];
    }
    printf("%u %d %d %d %ld %ld %ld\n", hash, primes(500), wave[7], wave[33], least, most, sum);
    for (int i = 0; i < 50; i++)
        line[i] = i * i;
    for (int wanted = 0; wanted < 2500; wanted += 441) {
        int place = find(line, 50, wanted, &steps);
        printf("%d/%d ", place, steps);
    }
    for (unsigned char i = 250; i > 4; i += 3) /* wraps around */
        printf("%d ", i);
    printf("\n");
}
