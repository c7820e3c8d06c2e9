"""Steps on single functions of a module: an attribute for inlining, and a pipeline of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from planish.core import Candidate, ProgramError, Step
from planish.levels.llvm.passes.pipeline import parse_pipeline

Attribute = Literal["noinline", "alwaysinline"]


@dataclass(frozen=True)
class FunctionAttribute(Step):
    """Set an attribute of a function while the passes on the whole module, which inline, are run.

    Args:
        function: its name in the module.
        attribute: "noinline" (it is inlined nowhere) or "alwaysinline" (it is inlined everywhere).
    """

    function: str
    attribute: Attribute

    def __str__(self) -> str:
        return f"{self.attribute} {self.function}"


@dataclass(frozen=True)
class FunctionPasses(Step):
    """Run a pipeline of function passes on some functions; all others are kept out.

    Args:
        pipeline: as `opt -passes=` takes it.
        functions: their names in the module; none means all that no other step names.
    """

    pipeline: str
    functions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.pipeline} on {', '.join(self.functions) or 'all others'}"


@dataclass(frozen=True)
class FunctionPlan:
    """A candidate of steps on functions, as it is carried out.

    Args:
        inlining: functions and their attributes while the passes on the whole module run.
        lists: pipelines, each with the functions that it runs on; at most one without, for all others.
    """

    inlining: tuple[tuple[str, Attribute], ...]
    lists: tuple[tuple[str, tuple[str, ...]], ...]

    def resolved(self, names: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each pipeline that runs on functions, with them, of those that there are when it runs."""
        named = {name for _, functions in self.lists for name in functions}
        others = tuple(name for name in names if name not in named)
        for pipeline, functions in self.lists:
            if chosen := functions or others:
                yield pipeline, chosen

    def list_of(self, name: str) -> str:
        """Return the pipeline of a function; empty where it has none."""
        others = ""
        for pipeline, functions in self.lists:
            if name in functions:
                return pipeline
            others = others if functions else pipeline
        return others


def is_of_functions(candidate: Candidate) -> bool:
    """Return whether a candidate has steps on functions, and is not a pass list."""
    return any(isinstance(step, FunctionAttribute | FunctionPasses) for step in candidate.steps)


@cache
def check_pipeline(text: str) -> None:
    """Raise ProgramError where a pipeline has a pass that is unknown, or that a pass list may not have."""
    parse_pipeline(text)


def plan_of(candidate: Candidate) -> FunctionPlan:
    """Return how a candidate of steps on functions is carried out.

    Raises:
        ProgramError: it has other steps, two lists for one function, or a pass that a list may not have.
    """
    marked = [step for step in candidate.steps if isinstance(step, FunctionAttribute)]
    inlining: tuple[tuple[str, Attribute], ...] = tuple((s.function, s.attribute) for s in marked)
    lists = tuple((s.pipeline, s.functions) for s in candidate.steps if isinstance(s, FunctionPasses))
    for pipeline, _ in lists:
        check_pipeline(pipeline)
    for name, attribute in inlining:
        if attribute not in get_args(Attribute):
            raise ProgramError(f"function '{name}' cannot be '{attribute}'", f"Known: {get_args(Attribute)}.")
    named = [name for _, functions in lists for name in functions or ("",)]
    if len(inlining) + len(lists) < len(candidate.steps):
        raise ProgramError("a pass on the whole module is among steps on functions")
    if len(set(named)) < len(named) or len(dict(inlining)) < len(inlining):
        raise ProgramError("a function has two lists, or two attributes")
    return FunctionPlan(inlining, lists)
