"""Kernels that write into the memory of an input: which may, and what no network may overwrite."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.loops.random_schedules import schedules
from network.compiled import assert_same, built_library, shared_library
from network_models import ModelWriter
from planish.levels.loops.backends import compile_with, preferred_backend
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.runtime.kernels import BoundKernel, Kernel
from planish.network.library.arena import Lifetime, plan_arena
from planish.network.library.files import write_library
from planish.network.library.in_place import overwritable_inputs
from planish.network.library.runtime import CompiledNetwork

PROGRAMS = {
    "sum": ("O[i,j] = A[i,j] + X[i,j]", {"A", "X"}),
    "swish": ("V[i,j] = sigmoid(X[i,j]); O[i,j] = V[i,j] * X[i,j]", {"X"}),
    "residual": ("T[i,j] += A[i,k] * B[k,j]; O[i,j] = relu(T[i,j] + X[i,j])", {"X"}),
    "softmax": (
        "M[i] max= X[i,j]; E[i,j] = exp(X[i,j] - M[i]); S[i] += E[i,j]; O[i,j] = E[i,j] / S[i]",
        {"X"},
    ),
    "transposed": ("O[i,j] = A[i,j] + X[j,i]", {"A"}),
    "product": ("O[i,j] += A[i,k] * X[k,j]", set[str]()),
    "columns": ("M[j] max= X[i,j]; O[i,j] = A[i,j] - M[j]", {"A"}),
}
"""Programs, and the inputs that they may overwrite by their default order of loops."""


def square(text: str, extent: int) -> Program:
    """Read a program whose axes are all as long."""
    return parse(text, dict.fromkeys(sorted({*"ijk"}.intersection(re.findall(r"\b\w\b", text))), extent))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_kernel_may_overwrite(name: str) -> None:
    text, expected = PROGRAMS[name]
    assert set(overwritable_inputs(lower(unscheduled(square(text, 21))))) == expected


@given(st.data())
def test_kernels_compute_the_same_in_the_memory_of_an_input(data: st.DataObject) -> None:
    text, _ = PROGRAMS[data.draw(st.sampled_from(list(PROGRAMS)))]
    program = square(text, data.draw(st.sampled_from([5, 16, 21])))
    tree = lower(data.draw(schedules(program)))
    backend = data.draw(st.sampled_from([preferred_backend(), "portable"]))
    found = overwritable_inputs(tree)
    made = Kernel(program, tree, compile_with(backend, tree), data.draw(st.integers(1, 2))) if found else None
    for name in found:
        assert made is not None
        arrays = make_inputs(program)
        apart = {**arrays, "O": np.empty(program.type["O"].shape, np.float32)}
        BoundKernel(made, apart)()
        shared = {each: array.copy() for each, array in arrays.items()}
        BoundKernel(made, {**shared, "O": shared[name]})()
        np.testing.assert_array_equal(shared[name], apart["O"])


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20),
    st.data(),
)
def test_memory_is_no_larger_where_tensors_are_overwritten(
    drawn: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    lives = [Lifetime(str(i), 100 * n, a, max(a, b)) for i, (n, a, b) in enumerate(drawn)]
    overwrites = dict[str, str]()
    for one in lives:
        able = [o.name for o in lives if (o.size, o.last) == (one.size, one.first) and o.first < o.last]
        able = [name for name in able if name not in overwrites.values()]
        if able and data.draw(st.booleans()):
            overwrites[one.name] = able[0]
    arena = plan_arena(lives, overwrites)
    assert arena.size <= plan_arena(lives).size
    for one in lives:
        for other in lives:
            if one.name < other.name and one.first <= other.last and other.first <= one.last:
                a, b = arena.offsets[one.name], arena.offsets[other.name]
                apart = a + one.size <= b or b + other.size <= a
                pair = {one.name, other.name}
                assert apart or any({*each} == pair for each in overwrites.items())


def residual(w: ModelWriter) -> tuple[str, ...]:
    """Write blocks whose inputs are an input of the network, an output, and what nothing reads after them."""
    x = w.input("x", (1, 8, 12, 12))
    kept = w.add("Relu", w.add("Add", w.conv(x, 8, 8, 3), x))
    found = w.add("Relu", w.add("Add", w.conv(kept, 8, 8, 3), kept))
    for _ in range(3):
        found = w.add("Relu", w.add("Add", w.conv(found, 8, 8, 1), found))
    turned = w.add("Mul", found, w.add("Transpose", found, perm=[0, 1, 3, 2]))
    return kept, w.add("Softmax", w.add("Add", turned, w.weight(1, 8, 12, 12))), found


@pytest.mark.parametrize("cores", [1, 2])
def test_networks_of_residual_blocks(tmp_path: Path, cores: int) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", *residual(w))
    assert_same(shared_library(path, tmp_path / "net", cores), path)


def test_attention_scores_take_memory_once(tmp_path: Path) -> None:
    w = ModelWriter()
    x, y = w.input("x", (4, 70, 64)), w.input("y", (4, 64, 70))
    scores = w.add("Softmax", w.add("MatMul", x, y))
    path = w.save(tmp_path / "m.onnx", w.add("MatMul", scores, w.weight(4, 70, 8)))
    built = built_library(path)
    assert 4 * 4 * 70 * 70 <= built.manifest["workspace_bytes"] < 1.5 * 4 * 4 * 70 * 70
    write_library(built, tmp_path)
    assert_same(CompiledNetwork(tmp_path), path)
