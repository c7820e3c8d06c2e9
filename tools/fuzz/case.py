"""Cases: a program, a candidate and a back end, and the check of their kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, Literal, Self
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from fuzz.answer import Inexact, answer
from fuzz.execute import Fault, execute
from planish.core import Candidate, PlanishError, candidate_from_json
from planish.levels.loops.backends import compile_with, tree_of
from planish.levels.loops.ir.annotated import AnnotatedTree
from planish.levels.loops.lang.draft import index_ranges
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.parse import parse_canonical
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.lower import regalloc
from planish.levels.loops.reference.inputs import rounded_tf32
from planish.levels.loops.testing.annotated_interpreter import emulate
from planish.levels.loops.testing.interpreter import TreeFault


@dataclass(frozen=True)
class Written:
    """A candidate of a program for a code generator.

    Args:
        program: the canonical text.
        steps: the candidate's canonical JSON.
        backend: which code generator.
    """

    program: str
    steps: str
    backend: str

    @property
    def candidate(self) -> Candidate:
        """The steps, read back."""
        return candidate_from_json(json.loads(self.steps), LoopsLevel().steps)

    def to_json(self, found: str) -> str:
        """Write it, with what was found."""
        return json.dumps({**asdict(self), "steps": json.loads(self.steps), "found": found}, indent=2) + "\n"

    @classmethod
    def of_json(cls, text: str) -> Self:
        """Read it back."""
        data: dict[str, Any] = json.loads(text)
        del data["found"]
        data["steps"] = json.dumps(data["steps"])
        return cls(**data)


Array = NDArray[Any]
Verdict = Literal["right", "wrong", "crashed", "refused"]
EMULATED_MAX = 1000
"""Programs of more points are not emulated: that takes long."""
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


@dataclass(frozen=True)
class Case(Written):
    """What is tried.

    Args:
        cores: between how many threads parallel loops are divided.
        special: whether the inputs have a few elements of `SPECIAL`.
        seed: of the inputs.
        kind: how the candidate was found.
    """

    cores: int = 1
    special: bool = False
    seed: int = 0
    kind: str = "found"

    def with_candidate(self, candidate: Candidate) -> Case:
        """Return the case of other steps."""
        return replace(self, steps=candidate.text)


@lru_cache(maxsize=4)
def prepared(
    text: str, special: bool, seed: int
) -> tuple[Program, Mapping[str, Array], Mapping[str, Inexact]]:
    """Read a program, make its inputs, and compute its answer."""
    program = parse_canonical(text)
    random = np.random.default_rng((seed, 1))
    inputs = {name: _input(random, program, name, special) for name in program.inputs}
    inputs = rounded_tf32(program, inputs)
    return program, inputs, answer(program, inputs)


def _input(random: np.random.Generator, program: Program, name: str, special: bool) -> Array:
    """Make elements of either sign whose magnitudes differ and are never 0, between 1/2 and 2."""
    kind = program.type[name]
    if program.arithmetic == "int32":
        most = 127 if kind.dtype == "int8" else 2**31 - 1
        values = random.integers(-most, most, kind.shape, endpoint=True)
        return np.where(values == 0, -most - 1, values).astype(kind.dtype)
    magnitude = 0.5 + 1.5 * (random.permutation(kind.size) + random.random()) / kind.size
    values = magnitude * np.where(random.random(kind.size) < 0.5, -1, 1)
    if name in program.integer_indices:
        indices = random.integers(-2, index_ranges(program)[name] + 2, kind.shape)
        ends = np.iinfo(kind.dtype)
        outside = np.where(random.random(kind.shape) < 0.5, ends.min, ends.max)
        return np.where(random.random(kind.shape) < 0.1 * special, outside, indices).astype(kind.dtype)
    if name in index_ranges(program):
        values = random.integers(-2, index_ranges(program)[name] + 2, kind.size).astype(np.float64)
    if special:
        for _ in range(int(random.integers(4))):
            values[int(random.integers(kind.size))] = SPECIAL[int(random.integers(len(SPECIAL)))]
    return values.astype(numpy_type(kind.dtype)).reshape(kind.shape)


def judge(case: Case) -> tuple[Verdict, str]:
    """Compile and run a case in this process, which a wrong kernel may end."""
    program, inputs, expected = prepared(case.program, case.special, case.seed)
    try:
        tree = tree_of(program, case.candidate)
        # No result of a fuzzed program is so large that it is written past the caches, unless all are.
        with patch.object(regalloc, "NONTEMPORAL_FROM", 0):
            code = compile_with(case.backend, tree)
    except PlanishError as error:
        return "refused", str(error)
    except Exception as error:  # noqa: BLE001 - whatever a generator raises is a failure of the pair
        return "crashed", f"{type(error).__name__}: {error}"
    if code.annotated is not None and points(program) <= EMULATED_MAX:
        message = _decided(code.annotated, inputs, expected)
        if message:
            return "wrong", message
    for again in (False, True):
        try:
            outputs = execute(tree, code, inputs, case.cores, again=again)
        except Fault as fault:
            return "wrong", str(fault)
        message = differences(outputs, expected)
        if message:
            return "wrong", message
    return "right", ""


def points(program: Program) -> int:
    """Count the points of all statements."""
    return sum(prod(program.size[axis] for axis in s.axes) for s in program.statements)


def _decided(annotated: AnnotatedTree, inputs: Mapping[str, Array], expected: Mapping[str, Inexact]) -> str:
    """Tell what is wrong with the decisions that a kernel carries out, whatever it makes of them."""
    try:
        message = differences(emulate(annotated, inputs), expected)
    except TreeFault as fault:
        message = str(fault)
    return message and f"in the annotated tree: {message}"


def differences(outputs: Mapping[str, Array], expected: Mapping[str, Inexact]) -> str:
    """Tell what is wrong with outputs, which may be flat; nothing where they are right."""
    for name, result in expected.items():
        message = _difference(name, outputs[name].astype(np.float64).reshape(result.value.shape), result)
        if message:
            return message
    return ""


def _difference(name: str, got: Array, expected: Inexact) -> str:
    value, error = expected.value, expected.error
    with np.errstate(invalid="ignore"):
        right = (np.abs(got - value) <= error) | (got == value) | (np.isnan(got) & np.isnan(value))
    right |= np.isinf(error)
    if right.all():
        return ""
    worst = np.unravel_index(int(np.argmin(right)), right.shape) if right.ndim else ()
    return (
        f"{name}[{', '.join(map(str, worst))}] is {float(got[worst]):.9g}, not {float(value[worst]):.9g} "
        f"within {float(error[worst]):.2g}; {right.size - np.count_nonzero(right)} of {right.size} are wrong"
    )
