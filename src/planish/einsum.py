"""`numpy.einsum`, tuned: the best kernel that is known or can be found in a second."""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planish.budget import Budget
from planish.core import AllFailedError, Candidate, PlanishError, ProgramError, Task, best_trial
from planish.loops.build import kernel_of, tree_of
from planish.loops.inputs import aligned, make_inputs
from planish.loops.level import LoopsLevel
from planish.loops.library import Library, library_of
from planish.loops.program import DTYPES, Access, Apply, Expr, Index, Program, Statement, TensorType
from planish.loops.runtime import Kernel
from planish.measure import SEARCH_TIMING, exclusive, repeated, time_call
from planish.settings import Settings
from planish.store import store_at
from planish.tune import tune

if TYPE_CHECKING:
    from planish.store import Store

Array = NDArray[Any]
NUMPY = Candidate((Library("numpy"),))
START_S = 0.35
"""Seconds of a budget that go to starting workers and to the comparison with NumPy."""


class FallbackWarning(UserWarning):
    """An einsum is left to NumPy; the text says why."""


@dataclass(frozen=True)
class _Plan:
    """How a program is computed from now on; None leaves it to NumPy."""

    kernel: Kernel | None


_plans: dict[tuple[Hashable, ...], _Plan] = {}


def einsum(
    subscripts: str,
    *operands: Array,
    budget_s: float = 1.0,
    cores: int = 1,
    store: Store | str | Path | None = None,
) -> Array:
    """Evaluate Einstein's summation, as `numpy.einsum` does, with a kernel tuned for these shapes.

    The best kernel that the store knows is used. Where it knows none, the first call tunes one; it is kept
    only if it is faster than NumPy. Later calls in the process take it at once.

    Args:
        subscripts: as for `numpy.einsum`; one letter for each dimension.
        operands: arrays of one type, float32 or float64.
        budget_s: seconds to tune on first use; 0 never tunes.
        cores: how many the kernel may use.
        store: an open store, or where it is; None for the user's own.

    Returns:
        A new array.

    Raises:
        ValueError: NumPy refuses the operands too.

    Warns:
        FallbackWarning: NumPy computes it, because it is not supported, nothing is known and nothing may be
            tuned, or the store cannot be used; once for each reason.
    """
    key = subscripts, cores, *((a.shape, a.dtype) for a in operands)
    plan = _plans.get(key)
    if plan is None:
        try:
            plan = _plans[key] = _planned(program_of(subscripts, operands), cores, budget_s, store)
        except PlanishError as error:
            return _left_to_numpy(str(error), subscripts, operands)
    if plan.kernel is None:
        return np.einsum(subscripts, *operands, optimize=True)
    inputs = {f"in{i}": np.ascontiguousarray(a) for i, a in enumerate(operands)}
    kind = plan.kernel.program.type["out"]
    output = np.empty(kind.shape, kind.dtype)
    plan.kernel.bind(inputs, {"out": output})()
    return output


def program_of(subscripts: str, operands: Sequence[Array]) -> Program:
    """Write an einsum as a tensor program with operands `in0`, `in1`, ... and the result `out`.

    Raises:
        ProgramError: the subscripts or the operands are not supported.
    """
    dtypes = {a.dtype.name for a in operands}
    if len(dtypes) != 1 or not dtypes <= DTYPES.keys():
        raise ProgramError(
            f"operands of type {', '.join(sorted(dtypes))}", "Supported: one of float32, float64."
        )
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if not all(t.isalpha() or not t for t in (*terms, right)) or len(terms) != len(operands):
        raise ProgramError(f"einsum subscripts '{subscripts}'", "Supported: one letter for each dimension.")
    letters = "".join(terms)
    output = right if arrow else "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    sizes = _sizes(terms, operands)
    return _program(terms, output, sizes, operands, dtypes.pop())


def _sizes(terms: Sequence[str], operands: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, array in zip(terms, operands, strict=True):
        if len(term) != array.ndim or len(set(term)) != len(term) or not array.size:
            raise ProgramError(
                f"operand '{term}' of shape {array.shape}", "Supported: distinct letters, not empty."
            )
        for letter, extent in zip(term, array.shape, strict=True):
            if sizes.setdefault(letter, extent) != extent:
                raise ProgramError(f"axis '{letter}' has extents {sizes[letter]} and {extent}")
    return sizes


def _program(
    terms: Sequence[str], output: str, sizes: Mapping[str, int], operands: Sequence[Array], dtype: str
) -> Program:
    if not set(output) <= sizes.keys() or len(set(output)) != len(output):
        raise ProgramError(f"einsum output '{output}'", "Supported: distinct letters of the operands.")
    names = _names(operands)
    value: Expr = _access(names[0], terms[0])
    for name, term in zip(names[1:], terms[1:], strict=True):
        value = Apply("mul", (value, _access(name, term)))
    reduce = "add" if set("".join(terms)) - set(output) else None
    statement = Statement(_access("out", output), reduce, value)
    types = [(n, TensorType(a.shape, dtype)) for n, a in zip(names, operands, strict=True)]
    types.append(("out", TensorType(tuple(sizes[c] for c in output), dtype)))
    return Program((statement,), tuple(sorted(sizes.items())), tuple(types))


def _names(operands: Sequence[Array]) -> list[str]:
    return [f"in{i}" for i in range(len(operands))]


def _access(tensor: str, letters: str) -> Access:
    return Access(tensor, tuple(Index(((c, 1),)) for c in letters))


_said: set[str] = set()


def _left_to_numpy(reason: str, subscripts: str, operands: Sequence[Array]) -> Array:
    if reason not in _said:
        _said.add(reason)
        warnings.warn(f"NumPy computes this einsum: {reason}", FallbackWarning, stacklevel=3)
    return np.einsum(subscripts, *operands, optimize=True)


def _planned(program: Program, cores: int, budget_s: float, store: Store | str | Path | None) -> _Plan:
    level = LoopsLevel()
    task = Task(program, level.target(cores), (level.objectives["time_s"],), level.version)
    started = time.monotonic()
    candidate = _known(level, task, store)
    if candidate is None:
        left = budget_s - (time.monotonic() - started) - START_S
        if left <= 0:
            raise PlanishError("no kernel is known for it, and the budget allows no tuning", "Give budget_s.")
        candidate = _tuned(program, cores, left, store)
    return _faster_of(task, candidate)


def _known(level: LoopsLevel, task: Task, store: Store | str | Path | None) -> Candidate | None:
    """The best candidate that the store knows: a run's result, else its best trial."""
    with store_at(store) as opened:
        result = opened.best_result(task, level.steps)
        if result is not None:
            return result.candidate
        best = best_trial(opened.trials(task.key, level.steps), task.objectives[0])
        return best.candidate if best else None


def _tuned(program: Program, cores: int, seconds: float, store: Store | str | Path | None) -> Candidate:
    settings = Settings(cores=cores, finalists=0)
    with suppress(AllFailedError):
        return tune(program, budget=Budget(seconds=seconds), settings=settings, store=store).candidate
    return NUMPY


def _faster_of(task: Task, candidate: Candidate) -> _Plan:
    """Build a candidate, and keep it if it is faster than NumPy here and now."""
    if library_of(candidate):
        return _Plan(None)
    program = task.program
    assert isinstance(program, Program)
    kernel = kernel_of(program, candidate, task.target, tree_of(program, candidate))
    return _Plan(kernel if _is_faster(kernel) else None)


def _is_faster(kernel: Kernel) -> bool:
    """Whether a kernel is faster than NumPy here and now."""
    from planish.loops.numpy_baseline import numpy_callable

    program = kernel.program
    inputs, outputs = make_inputs(program), {n: aligned(program.type[n]) for n in program.outputs}
    library = numpy_callable(program, {**inputs, **outputs})
    bound = kernel.bind(inputs, outputs)
    with exclusive():
        ours = time_call(bound.repeat, SEARCH_TIMING).median
        theirs = time_call(repeated(library), SEARCH_TIMING).median
    return ours < theirs
