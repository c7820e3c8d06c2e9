"""Candidates that are no schedules: the library's implementation, and the choice of back end."""

from collections.abc import Mapping
from dataclasses import dataclass

from planish.core import Candidate, ProgramError, Step, Target, did_you_mean
from planish.loops.backends import backend_named, backend_names


@dataclass(frozen=True)
class Library(Step):
    """Let a library compute the program; the baseline.

    Args:
        name: "numpy".
    """

    name: str = "numpy"


@dataclass(frozen=True)
class Backend(Step):
    """Let a certain code generator build the schedule; without this step it is the target's own.

    Args:
        name: one of `planish.loops.backends.backend_names()`.

    Raises:
        ProgramError: the name is unknown.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in backend_names():
            raise ProgramError(f"unknown back end '{self.name}'", did_you_mean(self.name, backend_names()))


def library_of(candidate: Candidate) -> str | None:
    """Name the library that computes a candidate; None if it is a schedule."""
    return next((s.name for s in candidate.steps if isinstance(s, Library)), None)


def backend_of(candidate: Candidate) -> str | None:
    """Name the back end that a candidate asks for; None if it leaves that to the target."""
    return next((s.name for s in candidate.steps if isinstance(s, Backend)), None)


def vector_builds(target: Target) -> Mapping[str, Step]:
    """Give our back ends whose vectors are shorter than those of the target's own, name to step.

    Some processors that have vectors of 512 bits pass what flows through memory faster in those of 256.
    """
    wide = target.toolchain.get("backend") == "x86-avx512"
    return {"x86-avx2": Backend("x86-avx2")} if wide and backend_named("x86-avx2").works() else {}


def schedule_steps(candidate: Candidate) -> Candidate:
    """Give the candidate without its choice of back end."""
    return Candidate(tuple(s for s in candidate.steps if not isinstance(s, Backend)))
