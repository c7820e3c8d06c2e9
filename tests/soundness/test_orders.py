"""Orders of loop passes, and of passes that reorder sums, on programs that such passes are known to break."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from planish.levels.llvm.backend import Backend
from planish.levels.llvm.clang import Compiler
from soundness.campaign import try_cases
from soundness.cases import Case
from soundness.subject import Form, compile_subject

NEIGHBOURS = """
#include <stdio.h>
static unsigned a[64], b[4];
__attribute__((noinline)) static void turn(unsigned *a, const unsigned *b, int n) {
    for (int k = 0; k < n - 1; k++)
        for (int i = 0; i < n - 1; i++) a[i] = (a[i + 1] ^ b[i & 3]) + (unsigned)i;
}
int main(void) {
    for (unsigned seed = 1; seed <= 100; seed++) {
        unsigned x = seed * 2654435761u, sum = 0;
        for (int i = 0; i < 64; i++) a[i] = x = x * 1664525u + 1013904223u;
        for (int i = 0; i < 4; i++) b[i] = x = x * 1664525u + 1013904223u;
        turn(a, b, 1 + (int)(seed % 64));
        for (int i = 0; i < 64; i++) sum = sum * 31 + a[i];
        printf("%u\\n", sum);
    }
    return 0;
}
"""
PRODUCTS = """
#include <stdio.h>
#define DEFINE(k) \\
    __attribute__((noinline)) static int by_##k(unsigned u) { \\
        return k * (int)(u % 11) - k * (int)(u % 7); \\
    } \\
    __attribute__((noinline)) static int sum_##k(unsigned u) { \\
        return k * (int)(u % 11) + (k * (int)(u % 3) - k * (int)(u % 11)); \\
    }
#define SHOW(k) \\
    if (by_##k(u) != (long long)k * (u % 11) - (long long)k * (u % 7)) return 1; \\
    if (sum_##k(u) != (long long)k * (u % 3)) return 2; \\
    printf("%d %d\\n", by_##k(u), sum_##k(u));
DEFINE(195) DEFINE(225) DEFINE(786) DEFINE(214748364)
int main(void) {
    for (unsigned u = 0; u < 77; u++) { SHOW(195) SHOW(225) SHOW(786) SHOW(214748364) }
    return 0;
}
"""
LOOPS = (
    *("sroa<modify-cfg>", "gvn", "licm<allowspeculation>", "instcombine<no-verify-fixpoint>", "loop-rotate"),
    *("loop-unroll<O2>", "simplifycfg", "licm<allowspeculation>", "gvn", "loop-unroll<O2>", "adce"),
)
SUMS = (
    *("sroa<modify-cfg>", "reassociate", "instcombine<no-verify-fixpoint>", "early-cse", "nary-reassociate"),
    *("reassociate", "slsr", "gvn", "simplifycfg", "instcombine<no-verify-fixpoint>"),
)


def orders(passes: Sequence[str], count: int) -> Iterator[Case]:
    """Give a list, and shuffles of it behind the pass that it begins with."""
    yield Case(tuple(passes))
    for seed in range(count - 1):
        rest = list(passes[1:])
        random.Random(seed).shuffle(rest)
        yield Case((passes[0], *rest))


@pytest.mark.parametrize("form", ["plain", "fast"])
@pytest.mark.parametrize(("source", "passes"), [(NEIGHBOURS, LOOPS), (PRODUCTS, SUMS)], ids=["loops", "sums"])
def test_any_order_keeps_what_a_program_answers(
    source: str, passes: tuple[str, ...], form: Form, compiler: Compiler, backend: Backend, tmp_path: Path
) -> None:
    path = tmp_path / "program.c"
    path.write_text(source)
    tally = try_cases(
        compile_subject("program", [path], compiler, form), orders(passes, 8), backend, tmp_path / "out"
    )
    assert (tally.kinds, tally.failures) == ({"right": 8}, [])
    assert tally.executed > 3  # by code of their own
