/* Jumps out of the usual flow: setjmp, goto, computed goto, and a stack machine. */
#include "samples.h"

#include <setjmp.h>

static jmp_buf landing;
static int trail[10];

static int dig(int depth) {
    trail[depth] += depth * depth;
    if (depth == 9)
        longjmp(landing, depth);
    return depth < 0 ? 0 : dig(depth + 1) + 1;
}

static int guarded(int limit) {
    volatile int tries = 0; /* what else changes after setjmp would be lost */
    int code = setjmp(landing);
    if (code)
        tries = tries + 1;
    if (tries < limit)
        return dig(tries);
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += trail[i];
    return sum * 100 + tries * 10 + code;
}

static int collatz(unsigned n) {
    int steps = 0;
again:
    if (n == 1)
        goto done;
    if (n & 1)
        goto odd;
    n /= 2;
    goto next;
odd:
    n = 3 * n + 1;
next:
    steps++;
    goto again;
done:
    return steps;
}

enum { PUSH, ADD, MULTIPLY, SWAP, DOWN, LOOP, STOP };

static long machine(const int *code, long start) {
    static const void *const labels[] = {&&push, &&add, &&multiply, &&swap, &&down, &&loop, &&stop};
    long stack[16] = {start}, *top = stack;
    const int *at = code;
    goto *labels[*at];
push:
    *++top = at[1];
    at += 2;
    goto *labels[*at];
add:
    top--, *top += top[1];
    goto *labels[*++at];
multiply:
    top--, *top = *top * top[1] % 1000003;
    goto *labels[*++at];
swap: {
    long held = *top;
    *top = top[-1], top[-1] = held;
}
    goto *labels[*++at];
down:
    --*top;
    goto *labels[*++at];
loop:
    at = *top ? code + at[1] : at + 2;
    goto *labels[*at];
stop:
    return top[-1];
}

void jumps(void) {
    static const int code[] = {PUSH, 40, SWAP, PUSH, 3, MULTIPLY, PUSH, 7, ADD, SWAP, DOWN, LOOP, 2, STOP};
    printf("%d ", guarded(1));
    printf("%d\n", guarded(4));
    for (unsigned n = 1; n < 30; n += 4)
        printf("%d ", collatz(n));
    printf("\n%ld %ld\n", machine(code, 1), machine(code, -5));
}
