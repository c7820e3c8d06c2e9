"""While tiles read one panel of an operand, lines of the next one are asked for: all of them, in time."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from levels.loops.running import GENERATORS, outputs_of
from planish.core import Candidate
from planish.levels.loops.backends import supported_isas, tree_of
from planish.levels.loops.codegen.x86.isa import IsaName, isa_of
from planish.levels.loops.codegen.x86.pointers import next_panels
from planish.levels.loops.ir.tree import Ref
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.regalloc import LINE, annotate
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.steps import Pack, Reorder, Split

COLUMNS, DEPTH = 32, 256


def _product(rows: int, tile: int, panels: int = 40, depth: int = DEPTH) -> tuple[Program, Candidate]:
    """Return a product by a packed constant, and a schedule that reads each panel for all tiles of rows."""
    sizes = {"m": rows, "n": panels * COLUMNS, "k": depth}
    program = replace(parse("O[m,n] += X[m,k] * W[k,n]", sizes), constants=frozenset({"W"}))
    rows_of_tiles = (f"m:{tile}",) if tile < rows else ()
    splits = [Split(axis, n) for axis, n in (("m", tile), ("n", COLUMNS)) if n < sizes[axis]]
    order = Reorder((f"n:{COLUMNS}", *rows_of_tiles, "k", "m", "n"))
    return program, Candidate((*splits, order, Pack("W", "root", ahead=True)))


def _asked(program: Program, candidate: Candidate) -> list[Ref]:
    tree = tree_of(program, candidate)
    # The tiles of all cases fit into the registers of AVX-512, and are not executed.
    annotated = annotate(tree, isa_of("avx512", "float32").vectors)
    return [ref for each in annotated.body for ref in next_panels(each.item, tree.buffer).values()]


@pytest.mark.parametrize(("rows", "tile"), [(12, 6), (16, 6), (49, 5), (13, 12), (96, 6)])
def test_the_tiles_of_a_panel_ask_for_each_line_of_the_next_one_and_little_more(rows: int, tile: int) -> None:
    (ref,) = _asked(*_product(rows, tile))
    tiles, number, panel = -(-rows // tile), 3, 4 * COLUMNS * DEPTH
    moves = [ref.stride.get(loop, 0) for loop in (("n", COLUMNS), ("m", tile), ("k", 1))]
    lines = set[int]()
    for m, k in product(range(tiles), range(DEPTH)):
        first = 4 * (ref.offset + number * moves[0] + m * moves[1] + k * moves[2])
        lines |= {at // LINE for at in range(first, first + 4 * moves[2], LINE)}
    wanted = set(range((number + 1) * panel // LINE, (number + 2) * panel // LINE))
    assert wanted <= lines
    # The step of an iteration is of whole elements.
    assert len(lines) <= 4 / 3 * len(wanted)


@pytest.mark.parametrize(
    ("rows", "panels", "depth", "why"),
    [
        (6, 40, DEPTH, "one tile reads the panel once"),
        (24, 4, DEPTH, "the operand is small"),
        (24, 4, 16 * DEPTH, "the panel is large"),
        (300, 40, DEPTH, "the first of very many tiles is a small part of all"),
    ],
)
def test_nothing_is_asked_for_where_it_gains_nothing(rows: int, panels: int, depth: int, why: str) -> None:
    assert _asked(*_product(rows, 6, panels, depth)) == [], why


@pytest.mark.parametrize("isa", supported_isas())
def test_the_product_is_right(isa: IsaName) -> None:
    program, candidate = _product(16, 6, 33)
    inputs = make_inputs(program)
    outputs = outputs_of(resolve(program, candidate), GENERATORS[f"x86-{isa}"], inputs)
    expected = inputs["X"].astype(np.float64) @ inputs["W"].astype(np.float64)
    np.testing.assert_allclose(outputs["O"], expected, rtol=1e-4, atol=1e-3)
