"""Mistakes that other compilers of tensor programs made, as small programs, with our right answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuzz.execute import execute
from planish.core import Candidate, ScheduleError, Step, rng
from planish.levels.loops.backends import available_backends, compile_with, this_machine, tree_of
from planish.levels.loops.evaluator import verify_again
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Split, Stage, Swap, Unroll, Vectorize

Array = NDArray[Any]
everywhere = pytest.mark.parametrize("backend", available_backends())


def run(program: Program, candidate: Candidate, backend: str, inputs: Mapping[str, Array]) -> Array:
    """Run a kernel between guard pages, twice: memory ends at one, then begins behind one."""
    tree = tree_of(program, candidate)
    code = compile_with(backend, tree)
    (name,) = program.outputs
    first, second = (execute(tree, code, inputs, 1, again=again)[name] for again in (False, True))
    np.testing.assert_array_equal(first, second)
    return first.reshape(program.type[name].shape)


def legal(program: Program, steps: list[Step], most: int) -> Iterator[Candidate]:
    """List the legal sequences of steps; an illegal one is one line that names what it is about."""
    for count in range(most + 1):
        for chosen in itertools.permutations(steps, count):
            try:
                tree_of(program, Candidate(chosen))
            except ScheduleError as error:
                said = str(error)
                assert "\n" not in said
                assert any(axis in said for axis in program.size)
                continue
            yield Candidate(chosen)


@everywhere
@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 131])
def test_a_sum_in_vectors_with_a_tail_has_every_term_and_reads_no_other(backend: str, size: int) -> None:
    program = parse("S[] += V[k]", {"k": size})
    steps: list[Step] = [Vectorize("k")]
    if size > 8:
        steps += [Split("k", 8), Unroll("k"), Unroll("k:8"), Split("k", 16 if size > 16 else 4)]
    candidates = [
        *legal(program, steps, 3),
        *(TemplateSpace(program, this_machine(1, backend)).sample(rng(2, i)) for i in range(4)),
    ]
    assert len(candidates) > 4
    values = np.arange(1, size + 1, dtype=np.float32)
    for candidate in candidates:
        assert run(program, candidate, backend, {"V": values}) == size * (size + 1) / 2, candidate


@pytest.mark.slow(after=1)
@everywhere
def test_a_nest_inside_a_vector_loop_is_right_or_refused(backend: str) -> None:
    program = parse("D[i] = A[i] * 2; E[i,j] = D[i] + B[j]", {"i": 2, "j": 2})
    steps: list[Step] = [
        Vectorize("i"),
        Vectorize("j"),
        Swap("i", "j"),
        Vectorize("i", "D"),
        Stage("D", "i"),
        Unroll("j"),
    ]
    found = list(legal(program, steps, 3))
    assert len(found) > 10
    for candidate in found:
        tree = tree_of(program, candidate)
        assert verify_again(Kernel(program, tree, compile_with(backend, tree))) is None, candidate


@everywhere
@pytest.mark.parametrize("stride", [1, 2])
def test_corners_outside_in_two_dimensions_are_padding(backend: str, stride: int) -> None:
    ys, xs = (5, 7) if stride == 1 else (3, 4)
    text = f"P[y,x] += pad(I[{stride}*y - 1,{stride}*x - 1], 0) * W[r]"
    program = parse(text, {"y": ys, "x": xs, "r": 1}, {"I": (3, 5)})
    image = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
    padded = np.pad(image, ((1, 9), (1, 9)))
    expected = padded[: stride * ys : stride, : stride * xs : stride]
    space = TemplateSpace(program, this_machine(1, backend))
    for candidate in (Candidate(), space.start(), *(space.sample(rng(3, i)) for i in range(6))):
        got = run(program, candidate, backend, {"I": image, "W": np.ones(1, np.float32)})
        np.testing.assert_array_equal(got, expected, err_msg=str(candidate))
    assert stride == 2 or expected.sum() == image.sum()


SPECIAL = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e38, -1e38, 1.0] * 3)


@everywhere
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "value", ["0 * X[i]", "X[i] - X[i]", "X[i] * 0 + 1", "max(X[i], 0)", "min(X[i], X[i])"]
)
def test_nothing_is_simplified_that_ieee_754_tells_apart(backend: str, dtype: str, value: str) -> None:
    program, x = parse(f"O[i] = {value}", {"i": SPECIAL.size}, dtype=dtype), SPECIAL.astype(dtype)
    scope = {"X": {"i": 0}, "max": np.maximum, "min": np.minimum, "x": x}
    with np.errstate(invalid="ignore"):
        expected = eval(value.replace("X[i]", "x"), scope)
    for candidate in (Candidate(), Candidate((Vectorize("i"),))):
        np.testing.assert_array_equal(run(program, candidate, backend, {"X": x}), expected)


@everywhere
@pytest.mark.parametrize("position", [0, 5, 23])
def test_one_nan_is_the_greatest(backend: str, position: int) -> None:
    program, x = parse("O[] max= X[i]", {"i": 24}), np.where(np.isnan(SPECIAL), -1, SPECIAL).astype("f4")
    assert run(program, Candidate((Vectorize("i"),)), backend, {"X": x}) == np.inf
    x[position] = np.nan
    assert np.isnan(run(program, Candidate((Vectorize("i"),)), backend, {"X": x}))
