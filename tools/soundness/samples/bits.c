/* Bit tricks, hashes, and arithmetic of mixed widths and signs. */
#include "samples.h"

#include <stdint.h>

static unsigned count_bits(uint64_t x) {
    unsigned n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

static uint32_t reverse(uint32_t x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return x >> 24 | (x >> 8 & 0xff00u) | (x << 8 & 0xff0000u) | x << 24;
}

static uint32_t rotate(uint32_t x, unsigned by) { return x << (by & 31) | x >> (-by & 31); }

static uint32_t checksum(const unsigned char *data, int length) {
    uint32_t crc = ~0u;
    for (int i = 0; i < length; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    return ~crc;
}

static int64_t narrow(int64_t x) {
    int8_t a = (int8_t)x;
    uint16_t b = (uint16_t)(x >> 5);
    int32_t c = (int32_t)(uint32_t)(x * 2654435761u);
    return (int64_t)a * b + (c >> 7) - (c < 0 ? a : -b);
}

void bits(void) {
    uint64_t state = 88172645463325252u;
    unsigned char bytes[64];
    for (int i = 0; i < 64; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (unsigned char)(state >> (i & 15));
        if (i % 8 == 0)
            printf("%u %08x %08x %lld\n", count_bits(state), reverse((uint32_t)state),
                   rotate((uint32_t)state, (unsigned)i), (long long)narrow((int64_t)state));
    }
    printf("%08x %08x\n", checksum(bytes, 64), checksum(bytes + 3, 17));
    for (int d = -7; d <= 7; d += 2)
        printf("%d %d %d %u\n", -100 / d, -100 % d, 1000003 / d, 4000000000u / (unsigned)(d + 8));
    printf("%d %d\n", __builtin_ctz(0x00f00000u), __builtin_clzll(0x00f00000u));
}
