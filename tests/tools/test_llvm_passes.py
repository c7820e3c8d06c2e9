"""LLVM passes keep what programs mean: the short form of `make soundness`."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.execution import find_linker
from planish.levels.llvm.passes.pipeline import available
from soundness.campaign import try_cases
from soundness.cases import Case, coreset_lists, random_lists
from soundness.examiner import Examiner
from soundness.subject import SAMPLES, Form, Subject, compile_subject, csmith_program, samples


@pytest.fixture(scope="session")
def by_others(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return what this machine's compiler makes of them, optimized."""
    program = tmp_path_factory.mktemp("samples") / "samples"
    sources = map(str, sorted(SAMPLES.glob("*.c")))
    subprocess.run([*find_linker(), "-O2", "-w", *sources, "-o", str(program), "-lm"], check=True)
    return subprocess.run([program], check=True, capture_output=True).stdout


@pytest.mark.parametrize("form", ["size", "typed", "plain"])
def test_the_unoptimized_programs_answer_as_those_of_another_compiler(
    form: Form, by_others: bytes, compiler: Compiler, bindings: Bindings, tmp_path: Path
) -> None:
    with closing(Examiner(samples(compiler, form), bindings, tmp_path)) as examiner:
        assert examiner.expected.code == 0
        assert examiner.expected.output == by_others


def test_the_forms_differ_in_what_the_passes_may_use(compiler: Compiler) -> None:
    texts = {form: "".join(samples(compiler, form).modules) for form in ("size", "typed", "plain")}
    assert [("minsize" in text, "!tbaa" in text) for text in texts.values()] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    assert not any("optnone" in text for text in texts.values())


CSMITH_SEED = 1


def assert_sound(subject: Subject, cases: Iterable[Case], bindings: Bindings, out: Path) -> None:
    tally = try_cases(subject, cases, bindings, out)
    assert not tally.failures
    assert set(tally.kinds) == {"right"}


@pytest.mark.slow
def test_each_pass_keeps_the_answers_of_the_small_programs(
    typed: Subject, bindings: Bindings, tmp_path: Path
) -> None:
    texts = [element.text for element in available(bindings)]
    fours = [Case(("sroa<modify-cfg>", *texts[index : index + 4])) for index in range(0, len(texts), 4)]
    assert_sound(typed, fours, bindings, tmp_path)


@pytest.mark.slow
def test_lists_of_many_passes_keep_the_answers_of_the_small_programs(
    typed: Subject, bindings: Bindings, tmp_path: Path
) -> None:
    elements = available(bindings)
    lists = [*list(coreset_lists(elements))[:8], *random_lists(elements, 8, 0, 0)]
    assert_sound(typed, lists, bindings, tmp_path)


@pytest.mark.slow
def test_lists_of_many_passes_keep_the_answer_of_a_random_program(
    csmith: tuple[str, Path], compiler: Compiler, bindings: Bindings, tmp_path: Path
) -> None:
    elements = available(bindings)
    lists = [*coreset_lists(elements), *random_lists(elements, 10, 0, 1)]
    subject = csmith_program(*csmith, CSMITH_SEED, compiler, "typed")
    assert_sound(subject, lists, bindings, tmp_path)


NEIGHBORS = """
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
    """Return a list, and shuffles of it behind the pass that it begins with."""
    yield Case(tuple(passes))
    for seed in range(count - 1):
        rest = list(passes[1:])
        random.Random(seed).shuffle(rest)
        yield Case((passes[0], *rest))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain", "fast"])
@pytest.mark.parametrize(("source", "passes"), [(NEIGHBORS, LOOPS), (PRODUCTS, SUMS)], ids=["loops", "sums"])
def test_any_order_keeps_what_a_program_answers(
    source: str, passes: tuple[str, ...], form: Form, compiler: Compiler, bindings: Bindings, tmp_path: Path
) -> None:
    path = tmp_path / "program.c"
    path.write_text(source)
    tally = try_cases(
        compile_subject("program", [path], compiler, form), orders(passes, 8), bindings, tmp_path / "out"
    )
    assert (tally.kinds, tally.failures) == ({"right": 8}, [])
    assert tally.executed > 3  # by code of their own
