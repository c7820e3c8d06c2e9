"""Verification refuses right kernels with planted faults: of values, of memory, and of calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Candidate
from planish.levels.loops.backends import compile_with, this_machine, tree_of
from planish.levels.loops.evaluator import Verifier, final_verifier, search_verifier
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.runtime.kernels import Kernel

Array = NDArray[Any]

TEXTS: dict[str, tuple[str, str]] = {
    "product": ("C[m,n] += A[m,k] * B[k,n] | m=24,n=25,k=17", "float32"),
    "product of halves": ("C[m,n] += A[m,k] * B[k,n] | m=24,n=25,k=17", "float16"),
    "sum of bfloats": ("C[i] = A[i] + B[i] | i=503", "bfloat16"),
    "sum": ("C[i] = A[i] + B[i] | i=503", "float32"),
    "copy": ("O[j,i] = A[i,j] | i=25,j=26", "float32"),
    "total": ("S[] += A[i] | i=7001", "float32"),
    "greatest": ("M[i] max= A[i,j] | i=30,j=37", "float32"),
    "relu": ("C[i] = relu(A[i]) | i=503", "float32"),
    "exp": ("C[i] = exp(A[i]) | i=503", "float64"),
    "choice": ("C[i] = where(A[i] < B[i], A[i], B[i]) | i=503", "float32"),
    "product of bytes": ("C[m,n] += A[m,k] * B[k,n] | m=24,n=25,k=17", "int8"),
    "product of integers": ("C[i] = A[i] * B[i] | i=503", "int32"),
    "where the greatest is": ("O[i] = argmax(X[i,k]) | i=30,k=37", "float32"),
}
FLOATS = frozenset(name for name, (_, dtype) in TEXTS.items() if not dtype.startswith("int"))
INTEGERS = TEXTS.keys() - FLOATS
POSITIONS = frozenset({"where the greatest is"})


class Seen(NamedTuple):
    """What a fault looks at: the first input and the first output, flat, and the call's number."""

    read: Array
    written: Array
    number: int


@dataclass(frozen=True)
class Fault:
    """A fault, and the programs on whose results it has an effect."""

    plant: Callable[[Seen], object]
    programs: AbstractSet[str]


def bump(seen: Seen, *, where: int = 0, when: object = True) -> None:
    """Let an element be another one where something holds."""
    if when:
        seen.written[where] += np.array(1, seen.written.dtype)


def store(seen: Seen, which: Array, value: float) -> None:
    """Store a value in some elements."""
    seen.written[which] = value


def magnitude(seen: Seen) -> Array:
    """Return the results' magnitudes in float64."""
    return np.abs(seen.written.astype(np.float64))


def beside(seen: Seen, offset: int) -> None:
    """Write beside the output."""
    ctypes.memset(seen.written.ctypes.data + offset, 1, 4)


ALL, MOVED = frozenset(TEXTS), frozenset({"copy", "greatest", "relu", "choice"})
SPECIAL = FLOATS - POSITIONS
FAULTS: dict[str, Fault] = {
    "the last element": Fault(lambda s: bump(s, where=-1), ALL),
    "where an input is negative": Fault(lambda s: bump(s, when=s.read[0] < 0), ALL),
    "where two inputs are negative": Fault(lambda s: bump(s, where=-1, when=s.read[0] < 0 > s.read[-1]), ALL),
    "where one is negative, one not": Fault(lambda s: bump(s, when=s.read[0] < 0 < s.read[-1]), ALL),
    "where an input is 0": Fault(lambda s: bump(s, when=(s.read == 0).any()), ALL),
    "NaN becomes 0": Fault(lambda s: store(s, np.isnan(s.written), 0), SPECIAL),
    "NaN becomes infinite": Fault(lambda s: store(s, np.isnan(s.written), -np.inf), SPECIAL),
    "infinity becomes finite": Fault(lambda s: store(s, np.isinf(s.written), 6e4), SPECIAL),
    "large numbers become 0": Fault(lambda s: store(s, magnitude(s) > 1e4, 0), ALL - POSITIONS),
    "huge numbers become 0": Fault(
        lambda s: store(s, magnitude(s) > 1e30, 0), SPECIAL - {"product of halves"}
    ),
    "tiny numbers become 0": Fault(lambda s: store(s, magnitude(s) < 1e-6, 0), SPECIAL),
    "subnormal numbers become 0": Fault(lambda s: store(s, magnitude(s) < 1e-38, 0), MOVED),
    "the second call": Fault(lambda s: bump(s, when=s.number == 2), ALL),
    "every call from the third on": Fault(lambda s: bump(s, when=s.number > 2), ALL),
    "an input is written": Fault(lambda s: s.read.fill(0), ALL),
    "memory behind the output": Fault(lambda s: beside(s, s.written.nbytes), ALL),
    "memory before the output": Fault(lambda s: beside(s, -4), ALL),
    "memory far behind the output": Fault(lambda s: beside(s, s.written.nbytes + 192), ALL),
    "the least integer": Fault(
        lambda s: bump(s, when=(s.read == np.iinfo(s.read.dtype).min).any()), INTEGERS
    ),
    "integers saturate": Fault(
        lambda s: np.clip(s.written, -(2**30), 2**30, out=s.written), frozenset({"product of integers"})
    ),
}


class Faulty:
    """A right kernel with a fault behind it."""

    def __init__(self, name: str, fault: Callable[[Seen], object], verifier: Verifier) -> None:
        self._bound = right(name).bind(verifier.inputs, verifier.outputs)
        self._fault, self._number = fault, 0
        inputs, outputs = verifier.inputs.values(), verifier.outputs.values()
        self._read, self._written = (next(iter(arrays)).reshape(-1) for arrays in (inputs, outputs))
        self.prepare, self.poison = self._bound.prepare, self._bound.poison

    def repeat(self, times: int) -> None:
        """Call it."""
        self._bound.repeat(times)
        self._number += 1
        with np.errstate(all="ignore"):
            self._fault(Seen(self._read, self._written, self._number))


def program_of(name: str) -> Program:
    """Read a program."""
    (text, _, sizes), dtype = TEXTS[name][0].partition(" | "), TEXTS[name][1]
    return parse(text, {a: int(n) for a, _, n in (s.partition("=") for s in sizes.split(","))}, dtype=dtype)


@cache
def right(name: str) -> Kernel:
    """Compile a right kernel."""
    program = program_of(name)
    tree = tree_of(program, Candidate())
    return Kernel(program, tree, compile_with(this_machine(1).toolchain["backend"], tree))


@cache
def verifiers(name: str) -> tuple[Verifier, Verifier]:
    """Make both verifiers of a program."""
    return search_verifier(program_of(name)), final_verifier(program_of(name))


@pytest.mark.slow(after=6)
@pytest.mark.parametrize("name", TEXTS)
def test_planted_faults_are_refused(name: str) -> None:
    for fault, planted in FAULTS.items():
        for verifier in verifiers(name) if name in planted.programs else ():
            assert verifier.wrong(Faulty(name, planted.plant, verifier)) is not None, fault
    for verifier in verifiers(name):
        assert verifier.wrong(Faulty(name, lambda _: None, verifier)) is None


def test_an_input_that_is_written_is_named() -> None:
    for verifier in verifiers("product"):
        wrong = verifier.wrong(Faulty("product", lambda s: s.read.fill(0), verifier))
        assert (wrong or "").startswith("input A is changed")
