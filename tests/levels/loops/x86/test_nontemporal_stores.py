"""Large results that nothing reads again are stored past the caches, wherever their arrays begin."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from planish.core import Target
from planish.core.hashing import rng
from planish.levels.loops.backends import supported_isas
from planish.levels.loops.codegen.x86.compile import compile_tree
from planish.levels.loops.codegen.x86.isa import IsaName
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.lower.regalloc import NONTEMPORAL_FROM
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.runtime.dispatch import CompiledKernel
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.space.template import TemplateSpace

SETS: list[IsaName] = supported_isas()
pytestmark = pytest.mark.skipif(not SETS, reason="this processor has neither AVX-512 nor AVX2 with FMA")
TEXTS = (
    "C[i,j] = A[i,j] + B[i,j]",
    "C[i,j] = relu(A[i,j] * B[i,j])",
    "C[i,j] = A[j,i]",
    "H[i,j] += A[i,k] * B[k,j]; C[i,j] = relu(H[i,j])",
    "S[i] += A[i,j]; C[i,j] = A[i,j] * S[i]",
)
BEHIND = st.sampled_from([0, 4, 5])
EXTENTS = st.sampled_from([1, 5, 8, 16, 24, 48, 64, 80, 128])


def _apart(program: Program, name: str, elements: int) -> NDArray[Any]:
    """Make an array that begins some elements behind a cache line."""
    kind = program.type[name]
    memory = np.full(kind.size + 64, np.nan, kind.dtype)
    start = -memory.ctypes.data % 64 // memory.itemsize + elements
    return memory[start : start + kind.size].reshape(kind.shape)


def _kernel(program: Program, isa: IsaName, seed: int | None = None, least: int = 0) -> Kernel:
    """Compile the default schedule or a sample; results of so many bytes may be stored past the caches."""
    space = TemplateSpace(program, Target("", frozenset({f"x86-{isa}"})))
    candidate = space.start() if seed is None else space.sample(rng(seed, 0))
    tree = lower(resolve(program, candidate))
    return Kernel(program, tree, compile_tree(tree, isa, nontemporal_from=least))


@pytest.mark.parametrize("isa", SETS)
@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from(TEXTS),
    st.tuples(EXTENTS, EXTENTS, EXTENTS),
    st.integers(0, 9),
    st.sampled_from([0, 4, 5]),
)
def test_answers_are_right_wherever_arrays_begin(
    isa: IsaName, text: str, extents: tuple[int, ...], seed: int, behind: int
) -> None:
    size = {axis: n for axis, n in zip("ijk", extents, strict=True) if axis != "k" or "k" in text}
    program = parse(text, size)
    inputs = make_inputs(program)
    outputs = {name: _apart(program, name, behind) for name in program.outputs}
    _kernel(program, isa, seed).bind(inputs, outputs)()
    assert check(program, outputs, reference(program, inputs)) is None


def _past(text: str, size: dict[str, int], isa: IsaName = SETS[-1] if SETS else "avx2") -> set[str]:
    annotated = _kernel(parse(text, size), isa, least=NONTEMPORAL_FROM).code.annotated
    assert annotated is not None
    return set(annotated.nontemporal_stores)


WIDE = {"i": 4096, "j": 4096}


@pytest.mark.parametrize(
    ("text", "size", "past"),
    [
        ("C[i,j] = A[i,j] + B[i,j]", WIDE, {"C"}),
        ("C[i,j] = A[i,j] + B[i,j]", {"i": 4095, "j": 4096}, set[str]()),  # a cache may keep it
        ("C[i,j] += A[i,k] * B[k,j]", {**WIDE, "k": 64}, set[str]()),  # what it adds to is read
        ("C[i,j] = exp(A[i,j]); S[i] += C[i,j]", WIDE, set[str]()),  # read again
        ("C[i,j] = A[i,j] + B[i,j]", {"i": 4096, "j": 4100}, set[str]()),  # rows begin within vectors
    ],
    ids=["large", "small", "added to", "read again", "uneven rows"],
)
def test_only_large_results_that_nothing_reads(text: str, size: dict[str, int], past: set[str]) -> None:
    assert _past(text, size) == past


@pytest.mark.parametrize("isa", SETS)
def test_such_stores_are_ordered_at_the_end(isa: IsaName) -> None:
    code = _kernel(parse(TEXTS[0], {"i": 8, "j": 128}), isa).code
    quick = code.assembly("f").split("ret")[0]
    assert "vmovntps" in quick
    assert "sfence" in quick.split("vmovntps")[-1]


def test_new_arrays_begin_at_cache_lines() -> None:
    program = parse(TEXTS[0], {"i": 8, "j": 128})
    call = CompiledKernel(_kernel(program, SETS[-1]))
    inputs = make_inputs(program)
    result = call(*inputs.values())
    assert not result.ctypes.data % 64
    np.testing.assert_array_equal(result, inputs["A"] + inputs["B"])
