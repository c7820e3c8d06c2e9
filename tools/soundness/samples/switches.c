/* Switches: dense, sparse, by ranges, falling through, on strings of states. */
#include "samples.h"

static int dense(int x) {
    switch (x) {
    case 0: return 17;
    case 1: return 3;
    case 2: return -8;
    case 3: return 99;
    case 4: return 5;
    case 5: return 1000;
    case 6: return 12;
    default: return -1;
    }
}

static int linear(unsigned x) {
    switch (x) {
    case 3: return 10;
    case 4: return 13;
    case 5: return 16;
    case 6: return 19;
    case 7: return 22;
    }
    return 0;
}

static const char *sparse(long x) {
    switch (x) {
    case -1000000007L: return "low";
    case 0: return "zero";
    case 7: case 8: case 9: return "few";
    case 65536: return "many";
    case 4294967296L: return "huge";
    default: return x < 0 ? "negative" : "other";
    }
}

static int falling(int x) {
    int sum = 0;
    switch (x & 7) {
    case 7: sum += 64; /* fall through */
    case 6: sum += 32; /* fall through */
    case 5: sum ^= 21; break;
    case 4: sum -= 3; /* fall through */
    default: sum *= 5; /* fall through */
    case 2: sum += x;
    }
    return sum;
}

/* Reads numbers such as -12.5e3: 0 refused, 1 integer, 2 fraction, 3 exponent. */
static int number(const char *s) {
    enum { START, SIGN, WHOLE, POINT, PART, MARK, MARKED, POWER } state = START;
    for (; *s; s++) {
        int digit = *s >= '0' && *s <= '9';
        switch (state) {
        case START: state = *s == '-' ? SIGN : digit ? WHOLE : 99; break;
        case SIGN: state = digit ? WHOLE : 99; break;
        case WHOLE: state = digit ? WHOLE : *s == '.' ? POINT : *s == 'e' ? MARK : 99; break;
        case POINT: case PART: state = digit ? PART : *s == 'e' && state == PART ? MARK : 99; break;
        case MARK: state = *s == '-' ? MARKED : digit ? POWER : 99; break;
        case MARKED: case POWER: state = digit ? POWER : 99; break;
        default: return 0;
        }
    }
    return state == WHOLE ? 1 : state == PART ? 2 : state == POWER ? 3 : 0;
}

/* Duff's device: a switch into a loop. */
static int copied(char *to, const char *from, int count) {
    int rounds = (count + 3) / 4;
    switch (count % 4) {
    case 0: do { *to++ = *from++; /* fall through */
    case 3: *to++ = *from++; /* fall through */
    case 2: *to++ = *from++; /* fall through */
    case 1: *to++ = *from++;
            } while (--rounds > 0);
    }
    *to = 0;
    return count;
}

void switches(void) {
    static const long values[] = {-1000000007L, 0, 8, 65536, 4294967296L, -4, 10, 7};
    static const char *const texts[] = {"12", "-3.75", "1e9", "2.5e-3", "", "-", "1.", ".5", "4e", "7x"};
    char word[24];
    for (int i = -2; i < 10; i++)
        printf("%d %d %d,", dense(i), linear((unsigned)i), falling(i));
    printf("\n");
    for (int i = 0; i < 8; i++)
        printf("%s ", sparse(values[i]));
    for (int i = 0; i < 10; i++)
        printf("%d", number(texts[i]));
    for (int i = 1; i < 12; i += 3)
        printf(" %d%s", copied(word, "abcdefghijkl", i), word);
    printf("\n");
}
