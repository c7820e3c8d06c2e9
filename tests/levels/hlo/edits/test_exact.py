"""Exact edits, drawn one after the other in any order, leave the answers as they are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.hlo.edits.test_loops import RECURRENT, TWICE
from levels.hlo.edits.test_sink_transposes import NETWORK
from planish.core import rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.backend import HloBackend, open_backend
from planish.levels.hlo.edits import EXACT, EditableModule, finished
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.patch import original
from planish.levels.hlo.space import PatchSpace
from planish.levels.hlo.workload.arguments import signature

PROGRAMS = {
    "convolutions": program_from(NETWORK),
    "recurrent": program_from(RECURRENT),
    "twice": program_from(TWICE),
}


@cache
def _xla() -> HloBackend:
    return open_backend("xla", 1)


def computed(module: EditableModule, arguments: list[NDArray[Any]]) -> list[NDArray[Any]]:
    backend = _xla()
    executable = backend.compile(entry_text(finished(module), module.function))
    return [backend.get(held) for held in executable([backend.put(array) for array in arguments])]


def drawn(program: Program) -> list[NDArray[Any]]:
    """Draw inputs; whole numbers are small, for they count steps."""
    draws = rng(0)
    return [
        draws.integers(0, 3, type_.shape).astype(np.int32)
        if type_.element == "i32"
        else np.asarray(draws.normal(size=type_.shape), np.float32)
        for type_ in signature(program).arguments
    ]


@pytest.mark.slow
@given(seed=st.integers(0, 2**31), count=st.integers(1, 4))
@settings(max_examples=examples(15))
def test_exact_edits_change_no_answer(seed: int, count: int) -> None:
    program = PROGRAMS["convolutions"]
    space = PatchSpace(program, EXACT)
    patch = space.start()
    for index in range(count):
        patch = space.mutate(patch, rng(seed, index))
    arguments = drawn(program)
    wanted = computed(original(program), arguments)
    for one, other in zip(computed(space.module(patch), arguments), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_what_is_suggested_as_exact_changes_no_answer(name: str) -> None:
    program = PROGRAMS[name]
    space, arguments = PatchSpace(program, EXACT), drawn(program)
    wanted = computed(original(program), arguments)
    assert space.seeds()
    for seed in space.seeds()[:8]:
        for one, other in zip(computed(space.module(seed), arguments), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
