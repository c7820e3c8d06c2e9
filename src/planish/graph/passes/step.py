"""The steps of the level, and candidates as selections of passes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from planish.core import Candidate, ScheduleError, Step
from planish.graph.passes.catalogue import find_pass, passes


@dataclass(frozen=True)
class Rewrite(Step):
    """Make another model by a rewriting pass.

    Args:
        name: a pass of onnxoptimizer or onnxscript, or one that a user must intend.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Disable(Step):
    """Keep ONNX Runtime from a pass of its own; all others it runs as it does by default.

    Args:
        name: one of its transformers or rules.
    """

    name: str

    def __str__(self) -> str:
        return f"without {self.name}"


@dataclass(frozen=True)
class Offline(Step):
    """Optimise once: what ONNX Runtime makes is kept as a file, and loaded as it is."""

    def __str__(self) -> str:
        return "offline"


STEPS: Mapping[str, type[Step]] = {"Rewrite": Rewrite, "Disable": Disable, "Offline": Offline}


@dataclass(frozen=True)
class Selection:
    """What a candidate selects; `Selection()` is the file as it came, under ONNX Runtime's defaults.

    Args:
        rewrites: rewriting passes in their order; one may come again.
        disabled: ONNX Runtime's passes that are left out.
        offline: whether the runtime's work is done once, and kept.
    """

    rewrites: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()
    offline: bool = False

    @property
    def candidate(self) -> Candidate:
        """The candidate: the rewriting passes, then what is left out in the catalogue's order."""
        out = sorted(self.disabled, key=_place)
        return Candidate(
            (*map(_rewrite, self.rewrites), *map(_disable, out), *([Offline()] if self.offline else []))
        )


def selection(
    rewrites: Iterable[str] = (), disabled: Collection[str] = (), *, offline: bool = False
) -> Selection:
    """Make a selection of names.

    Raises:
        ProgramError: a pass is unknown or kept out.
        ScheduleError: a pass is not of the kind that its place takes.
    """
    chosen = Selection(tuple(rewrites), frozenset(disabled), offline)
    for name in (*chosen.rewrites, *chosen.disabled):
        if find_pass(name).is_rewriting == (name in chosen.disabled):
            where = "left out of ONNX Runtime" if name in chosen.disabled else "run before ONNX Runtime"
            raise ScheduleError(f"pass '{name}' cannot be {where}")
    return chosen


def selection_of(candidate: Candidate) -> Selection:
    """Read a candidate.

    Raises:
        ProgramError: a pass is unknown or kept out.
        ScheduleError: the steps are not in their order: `Rewrite`, then `Disable`, then `Offline`.
    """
    rewrites = [step.name for step in candidate.steps if isinstance(step, Rewrite)]
    disabled = [step.name for step in candidate.steps if isinstance(step, Disable)]
    offline = any(isinstance(step, Offline) for step in candidate.steps)
    found = selection(rewrites, disabled, offline=offline)
    if found.candidate != candidate:
        raise ScheduleError(f"not in canonical order: {candidate}", f"Write it so: {found.candidate}.")
    return found


@cache
def _rewrite(name: str) -> Rewrite:
    return Rewrite(name)


@cache
def _disable(name: str) -> Disable:
    return Disable(name)


@cache
def _places() -> Mapping[str, int]:
    return {name: place for place, name in enumerate(passes())}


def _place(name: str) -> int:
    return _places()[name]
