"""Buffers that registers hold are read right along every loop, whether it is unrolled or counted."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from levels.loops.running import GENERATORS, outputs_of
from planish.core import Target
from planish.core.hashing import rng
from planish.levels.loops.backends import supported_isas
from planish.levels.loops.codegen.x86.isa import IsaName
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import LoopStep, Pack, Reorder, Split, Swap, Vectorize

Array = NDArray[Any]
SETS: list[IsaName] = supported_isas()
pytestmark = pytest.mark.skipif(not SETS, reason="this processor has neither AVX-512 nor AVX2 with FMA")
DTYPES = ("float32", "float64")


def _inputs(program: Program, positive: bool = False) -> dict[str, Array]:
    """Make elements that are never 0 and hardly ever equal, of either sign."""
    made: dict[str, Array] = {}
    for i, name in enumerate(program.inputs):
        random, kind = rng(7, i), program.type[name]
        sign = np.where(random.random(kind.shape) < 0.5, -1, 1)
        made[name] = (random.uniform(0.5, 2, kind.shape) * (1 if positive else sign)).astype(kind.dtype)
    return made


def _run(schedule: Schedule, isa: IsaName, inputs: Mapping[str, Array]) -> Array:
    program = schedule.program
    shaped = {name: array.reshape(program.type[name].shape) for name, array in inputs.items()}
    return outputs_of(schedule, GENERATORS[f"x86-{isa}"], shaped)[program.outputs[0]]


def _close(got: Array, expected: Any, terms: int, message: object) -> None:
    scale = terms * 4 * np.finfo(got.dtype).eps
    np.testing.assert_allclose(got, expected, rtol=scale, atol=4 * scale, err_msg=str(message))


def _scheduled(program: Program, *steps: LoopStep) -> Schedule:
    schedule = unscheduled(program)
    for step in steps:
        schedule = step.apply(schedule)
    return schedule


def _space(program: Program, isa: IsaName) -> TemplateSpace:
    return TemplateSpace(program, Target("", frozenset({f"x86-{isa}"}), 1, {"backend": f"x86-{isa}"}))


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [4, 12, 13, 40])
def test_a_whole_packed_operand_is_walked_by_an_outer_reduction(isa: IsaName, dtype: str, k: int) -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 16, "n": 10, "k": k}, dtype=dtype)
    schedule = _scheduled(program, Vectorize("n"), Reorder(("k", "m", "n")), Pack("B", "root"))
    inputs = _inputs(program)
    _close(_run(schedule, isa, inputs), inputs["A"] @ inputs["B"], k, schedule.text)


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize(
    ("text", "subscripts", "sizes"),
    [
        ("C[m,n] += A[m,k] * B[k,n]", "mk,kn->mn", {"m": 16, "n": 10, "k": 12}),
        ("O[] += A[b,e,a] * B[a,c,b]", "bea,acb->", {"a": 13, "b": 4, "c": 1, "e": 11}),
    ],
)
def test_samples_of_the_template(isa: IsaName, text: str, subscripts: str, sizes: dict[str, int]) -> None:
    program = parse(text, sizes)
    inputs, space = _inputs(program), _space(program, isa)
    exact = {name: array.astype(np.float64) for name, array in inputs.items()}
    expected = np.einsum(subscripts, exact["A"], exact["B"])
    known: set[str] = set()
    for i in range(150):
        schedule = resolve(program, space.sample(rng(0, i)))
        if schedule.text not in known:
            known.add(schedule.text)
            _close(_run(schedule, isa, inputs), expected, 600, schedule.text)


@pytest.mark.parametrize("isa", SETS)
def test_fewer_results_are_held_where_operands_need_more_registers(isa: IsaName) -> None:
    """AVX2: sums of two lanes of four each, whose other lanes must be made harmless."""
    text = "C[k,y] += I[c,y+r] * W[k,c,r]; D[k,y] = relu(C[k,y] + b[k]); O[k] max= D[k,y]"
    program = parse(text, {"c": 8, "k": 8, "r": 2, "y": 13}, dtype="float64")
    inputs = _inputs(program)
    windows = np.lib.stride_tricks.sliding_window_view(inputs["I"], 2, axis=1)
    sums = np.einsum("cyr,kcr->ky", windows, inputs["W"])
    expected = np.maximum(sums + inputs["b"][:, None], 0).max(axis=1)
    _close(_run(_scheduled(program, Swap("y", "c")), isa, inputs), expected, 30, isa)


@pytest.mark.parametrize("isa", SETS)
def test_the_default_schedule_of_a_sum_over_five_axes(isa: IsaName) -> None:
    program = parse(
        "O[] += X[b,a] * relu(Y[d,c,e,a])", {"a": 3, "b": 25, "c": 7, "d": 17, "e": 16}, dtype="float64"
    )
    inputs = _inputs(program)
    expected = np.einsum("ba,dcea->", inputs["X"], np.maximum(inputs["Y"], 0))
    _close(_run(resolve(program, _space(program, isa).start()), isa, inputs), expected, 142800, isa)


@pytest.mark.parametrize("isa", SETS)
def test_the_default_schedule_of_a_sum_that_is_read(isa: IsaName) -> None:
    sizes = {"a": 21, "b": 16, "c": 7, "d": 7, "e": 11}
    program = parse("O[] += X[b,c] * Y[d,e,a]; ZZ[] = relu(O[])", sizes)
    inputs = _inputs(program, positive=True)
    expected = np.einsum("bc,dea->", *(inputs[name].astype(np.float64) for name in "XY"))
    _close(_run(resolve(program, _space(program, isa).start()), isa, inputs), expected, 20, isa)


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_least_value_over_a_packed_operand(isa: IsaName, dtype: str) -> None:
    text = "O[] min= abs(X[a,c]) * exp(min(Y[c,a,d],2)) * exp(min(Z[b,a],2))"
    program = parse(text, {"a": 4, "b": 19, "c": 37, "d": 1}, dtype=dtype)
    steps = Vectorize("b"), Split("b", 8), Reorder(("a", "c", "b:8", "b")), Pack("Z", "root")
    inputs = {name: array.astype(np.float64) for name, array in _inputs(program).items()}
    x, y, z = (inputs[name] for name in "XYZ")
    parts = np.abs(x) * np.exp(np.minimum(y[:, :, 0].T, 2))
    expected = (parts[:, :, None] * np.exp(np.minimum(z, 2)).T[:, None, :]).min()
    given = {name: array.astype(dtype) for name, array in inputs.items()}
    _close(_run(_scheduled(program, *steps), isa, given), expected, 10, isa)
