"""The interpreter of annotated trees: right where decisions are right, and a judge of wrong ones."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuzz.candidates import cases
from fuzz.case import prepared
from golden_text import Golden
from levels.loops.trees import integers, matmul
from planish.core import Candidate
from planish.levels.loops.backends import tree_of
from planish.levels.loops.ir.annotated import (
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Item,
    Part,
    Region,
    Vectors,
    annotated_text,
)
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.regalloc import annotate
from planish.levels.loops.steps import Reorder, Split
from planish.levels.loops.testing.annotated_interpreter import emulate
from planish.levels.loops.testing.interpreter import TreeFault, interpret

WIDE, NARROW = Vectors(16, 32, True), Vectors(4, 16, False)
VECTORS = {
    "wide": WIDE,
    "narrow": NARROW,
    "wide, compiled": WIDE._replace(compiled=True),
    "narrow, compiled": NARROW._replace(compiled=True),
}
ORDER = ("m_4", "n_32", "k", "m", "n")


def decided(vectors: Vectors = WIDE, order: tuple[str, ...] = ORDER, k: int = 300) -> AnnotatedTree:
    return annotate(matmul(7, 40, k, order), vectors)


def product(annotated: AnnotatedTree) -> tuple[NDArray[Any], NDArray[Any]]:
    arrays = integers(annotated.tree)
    k = dict(annotated.tree.sizes)["k"]
    right = arrays["A"].reshape(7, k) @ arrays["B"].reshape(k, 40)
    return emulate(annotated, arrays)["C"], right.ravel()


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize("order", [ORDER, ("m", "n", "k"), ("k_9", "n_4", "m_2", "k", "m", "n")])
def test_matmul(kind: str, order: tuple[str, ...]) -> None:
    got, right = product(decided(VECTORS[kind], order, 20))
    np.testing.assert_array_equal(got, right)


def test_what_it_computes_is_what_the_tree_means() -> None:
    """Random programs and candidates, with decisions for both kinds of generators."""
    for number in range(12):
        for case in list(cases(23, number))[:7]:
            program, inputs, _ = prepared(case.program, special=False, seed=case.seed)
            if points(program) > 300:
                continue
            tree = tree_of(program, case.candidate)
            wanted = interpret(tree, inputs)
            for vectors in VECTORS.values():
                got = emulate(annotate(tree, vectors), inputs)
                for name, value in wanted.items():
                    np.testing.assert_allclose(
                        got[name].astype(float), value.astype(float), rtol=1e-5, atol=1e-5
                    )


def points(program: Program) -> int:
    return sum(int(np.prod([program.size[a] for a in s.axes])) for s in program.statements)


def test_decisions_are_shown(golden: Golden) -> None:
    shown = [annotated_text(decided(VECTORS[kind])) for kind in ("wide", "wide, compiled")]
    golden.check("loops/matmul-annotated.txt", "\n".join(shown))


# Decisions that are wrong in one place


Change = Callable[[Any], Any]


def changed(item: Item, kind: type, change: Change) -> Item:
    """Change every record of a kind, the innermost first."""
    match item:
        case Region() | Block():
            item = item._replace(items=tuple([changed(i, kind, change) for i in item.items]))
        case AnnotatedLoop():
            parts = [p._replace(body=changed(p.body, kind, change)) for p in item.parts]
            parts = [change(p) for p in parts] if kind is Part else parts
            item = item._replace(parts=tuple(parts))
        case _:
            pass
    return change(item) if isinstance(item, kind) else item


def wrong(annotated: AnnotatedTree, kind: type, change: Change) -> AnnotatedTree:
    body = tuple([f._replace(item=changed(f.item, kind, change)) for f in annotated.body])
    assert body != annotated.body
    return replace(annotated, body=body)


def same_register(region: Region) -> Region:
    registers = {b: dict.fromkeys(table, (31,)) for b, table in region.registers.items()}
    return region._replace(registers=registers)


def last_pass_left_out(part: Part) -> Part:
    return part._replace(passes=part.passes - 1) if part.passes > 1 else part


def shorter_tail(part: Part) -> Part:
    return part._replace(first=max(0, part.first - 1))


MISTAKES: dict[str, tuple[type, Change]] = {
    "one register for all": (Region, same_register),
    "results that are not stored": (Region, lambda r: r._replace(local=set(r.registers))),
    "results that begin nowhere": (Region, lambda r: r._replace(fresh=set())),
    "results in another place": (
        Region,
        lambda r: r._replace(
            registers={b: {(o + 1, n): x for (o, n), x in t.items()} for b, t in r.registers.items()},
            homes={b: {(o + 1, n): x for (o, n), x in t.items()} for b, t in r.homes.items()},
        ),
    ),
    "a pass left out": (Part, last_pass_left_out),
    "a part that begins early": (Part, shorter_tail),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("kind", ["wide", "wide, compiled"])
def test_a_wrong_decision_shows(mistake: str, kind: str) -> None:
    found_wrong(wrong(decided(VECTORS[kind], k=100), *MISTAKES[mistake]))


def test_a_vector_whose_lanes_write_one_element_shows() -> None:
    """The reduction is the innermost loop; its lanes must be kept apart till the end."""
    annotated = decided(order=("m", "n", "k"), k=40)
    found_wrong(wrong(annotated, Region, lambda r: r._replace(lanewise=set())))


def found_wrong(annotated: AnnotatedTree) -> None:
    try:
        got, right = product(annotated)
    except TreeFault:
        return
    assert not np.array_equal(got, right)


def test_a_loop_that_counts_where_registers_change_shows() -> None:
    """Each row has a register for its sum, so that the loop over rows is unrolled."""
    program = parse("E[m,n] = exp(A[m,n]); S[m] += E[m,n]; R[m,n] = E[m,n] / S[m]", {"m": 4, "n": 900})
    tree = tree_of(program, Candidate((Split("n", 512), Reorder(("n:512", "m", "n")))))
    annotated = annotate(tree, VECTORS["wide, compiled"])
    arrays = integers(tree)
    counted = wrong(annotated, Part, lambda p: p._replace(kind="counted", copies=1))
    right, got = (emulate(each, arrays)["R"] for each in (annotated, counted))
    np.testing.assert_array_equal(right, interpret(tree, arrays)["R"])
    assert not np.array_equal(got, right)
