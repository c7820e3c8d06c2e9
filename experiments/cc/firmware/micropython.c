/* Python programs, compiled and run on the board. */

#include "port/micropython_embed.h"

static char heap[32 * 1024];

static const char classes[] =
    "class Shape:\n"
    "    def __init__(self, *sides):\n"
    "        self.sides = sides\n"
    "    def around(self):\n"
    "        return sum(self.sides)\n"
    "class Square(Shape):\n"
    "    def __init__(self, side):\n"
    "        super().__init__(*[side] * 4)\n"
    "    def __repr__(self):\n"
    "        return 'Square(%d)' % self.sides[0]\n"
    "print([(s, s.around()) for s in (Square(n) for n in range(2, 6))])\n";

static const char exceptions[] =
    "def first(values, what):\n"
    "    for i, value in enumerate(values):\n"
    "        if value == what:\n"
    "            return i\n"
    "    raise ValueError('no ' + str(what))\n"
    "try:\n"
    "    print(first([3, 1, 4], 4), first([], 5))\n"
    "except ValueError as error:\n"
    "    print('caught', error)\n"
    "finally:\n"
    "    print({k: v for k, v in zip('abc', (1, 2, 3))}, sorted(set('hello')), '{:>6}|{!r}'.format(7, 'x'))\n";

static const char primes[] =
    "def sieve(n):\n"
    "    found = bytearray(n)\n"
    "    for i in range(2, n):\n"
    "        if not found[i]:\n"
    "            yield i\n"
    "            for j in range(i * i, n, i):\n"
    "                found[j] = 1\n"
    "total = 0\n"
    "for p in sieve(2000):\n"
    "    total = (total * 31 + p) % 65521\n"
    "print(total, [len('x' * n) for n in (1, 10)], b'ab'.decode(), 'a,b'.split(','), 17 // 5, -17 % 5)\n";

int main(void) {
    int top;
    mp_embed_init(heap, sizeof heap, &top);
    mp_embed_exec_str(classes);
    mp_embed_exec_str(exceptions);
    mp_embed_exec_str(primes);
    mp_embed_exec_str("undefined_name");
    mp_embed_deinit();
    return 0;
}
