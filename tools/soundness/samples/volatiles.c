/* Volatile accesses, aliases, restrict, globals that callees change, and calls that must not vanish. */
#include "samples.h"

#include <stdint.h>

static volatile int port;
static volatile unsigned char device[4];
static int shared = 5, reads;
int visible = 3; /* other modules may change it */

static int read_port(void) {
    reads++;
    return port;
}

static int touch(int *p) {
    *p += 7;
    return shared;
}

static int aliased(int *p, int *q) {
    *p = 1;
    *q = 2;
    return *p * 10 + *q;
}

static void scaled(float *restrict out, const float *restrict in, int n, float by) {
    for (int i = 0; i < n; i++)
        out[i] = in[i] * by + out[i];
}

static int shielded(int x) {
    volatile int secret = x;
    int copy = secret;
    secret = copy ^ 0x55;
    return copy + secret;
}

static unsigned raw(const void *p, int n) {
    const unsigned char *bytes = p; /* may alias anything */
    unsigned sum = 0;
    while (n--)
        sum = sum * 257 + *bytes++;
    return sum;
}

void volatiles(void) {
    int x = 1, y = 2, total = 0;
    float in[9], out[9];
    for (port = 0; read_port() < 6; port = port + 2)
        total += read_port() * read_port();
    printf("%d %d\n", total, reads);
    for (int i = 0; i < 11; i++)
        device[i & 3] = (unsigned char)(device[(i + 1) & 3] + i * 30);
    printf("%d %d %d %d\n", device[0], device[1], device[2], device[3]);
    int before = touch(&shared), after = touch(&x);
    printf("%d %d %d %d\n", before, after, shared, x);
    printf("%d %d\n", aliased(&x, &y), aliased(&x, &x));
    for (int i = 0; i < 9; i++)
        in[i] = (float)i / 2, out[i] = 1;
    scaled(out, in, 9, 3);
    scaled(out, out + 5, 4, -1);
    printf("%a %a %a\n", (double)out[0], (double)out[3], (double)out[8]);
    int32_t words[3] = {1, -2, 0x01020304};
    unsigned first = raw(words, 12);
    words[1] = shielded(words[2]);
    int old = visible;
    visible = (int)(first & 15);
    printf("%u %u %d %d\n", first, raw(words, 12), old, visible);
}
