"""Pass lists as candidates, and as LLVM's pipelines, printed with explicit nesting and read back.

The canonical form is the only one that `print_pipeline` writes:

- Neighbors in function managers share one: `function(sroa<modify-cfg>,gvn)`. In a module of several
  functions LLVM then runs all of them on one function before it turns to the next, where separate
  managers would run each pass on all functions first. A function pass sees and changes its own function
  only, so the code is the same, and analyses are kept, which saves about a fifth of the time.
- Every loop pass has a manager of its own: `function(loop(indvars),loop(loop-deletion))`. In a shared one
  LLVM runs all of its passes on an inner loop before it turns to the outer one, which makes other code.
- For the same reason every cgscc pass has a manager of its own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Protocol

from planish.core import Candidate, ProgramError, Step
from planish.levels.llvm.passes.catalogue import Nesting, PassElement, elements, find_element


@dataclass(frozen=True)
class Pass(Step):
    """Run a pass.

    Args:
        name: the element's text in the catalogue: "sroa<modify-cfg>".
    """

    name: str

    def to_json(self) -> list[Any]:
        """Return `["Pass", {"name": name}]`; written out, since thousands are made each second."""
        return ["Pass", {"name": self.name}]

    def __str__(self) -> str:
        return self.name


@cache
def pass_step(text: str) -> Pass:
    """Return the step of a pass; one object for one text."""
    return Pass(text)


def candidate_of(texts: Iterable[str]) -> Candidate:
    """Return the candidate that runs these passes, in this order; `passes_of` is its inverse."""
    return Candidate(tuple(map(pass_step, texts)))


def passes_of(candidate: Candidate) -> tuple[str, ...]:
    """Return the passes of a candidate in their order.

    Raises:
        TypeError: a step is of another level.
    """
    return tuple(map(_text, candidate.steps))


def _text(step: Step) -> str:
    if not isinstance(step, Pass):
        raise TypeError(f"expected a pass, got {step}")
    return step.name


_TOKEN = re.compile(r"\s*([^\s,()<>]+(?:<[^<>()]*>)?|[,()])\s*")

DEEPEST = 8
"""Managers within each other; LLVM's own nest four deep, as in module(cgscc(function(loop(...))))."""


@dataclass(frozen=True)
class PipelineItem:
    """A pass, or a manager and its items.

    Args:
        text: the pass with its parameters, or the manager's name.
        inner: what the manager holds; None for a pass.
    """

    text: str
    inner: tuple[PipelineItem, ...] | None = None


def read_items(text: str) -> tuple[PipelineItem, ...]:
    """Split a pipeline into its items; a blank text has none.

    Raises:
        ProgramError: a bracket is not closed, or a name is missing; the message says where.
    """
    if not text.strip():
        return ()
    tokens, index = deque[tuple[str, int]](), 0
    while index < len(text):
        if (match := _TOKEN.match(text, index)) is None:
            raise _expected((text[index:], index), "a name, a comma or a bracket")
        tokens.append((match[1], match.start(1)))
        index = match.end()
    tokens.append(("", len(text)))
    items = _take_items(tokens, 0)
    if tokens[0][0]:
        raise _expected(tokens[0], "a comma or the end")
    return items


def _take_items(tokens: deque[tuple[str, int]], depth: int) -> tuple[PipelineItem, ...]:
    """Take items with commas between them, at a depth of nested managers."""
    found: list[PipelineItem] = []
    while not found or tokens[0][0] == ",":
        if found:
            tokens.popleft()
        if tokens[0][0] in ("", *",()"):
            raise _expected(tokens[0], "the name of a pass")
        name, inner = tokens.popleft()[0], None
        if tokens[0][0] == "(":
            # Without a limit, a text of brackets alone would exhaust Python's stack.
            if depth == DEEPEST:
                raise _expected(tokens[0], f"at most {DEEPEST} managers within each other")
            tokens.popleft()
            inner = _take_items(tokens, depth + 1)
            if (end := tokens.popleft())[0] != ")":
                raise _expected(end, "a closing bracket")
        found.append(PipelineItem(name, inner))
    return tuple(found)


def _expected(token: tuple[str, int], what: str) -> ProgramError:
    found = f"'{token[0][:20]}'" if token[0] else "its end"
    return ProgramError(f"pipeline, character {token[1] + 1}: found {found}", f"Expected {what} there.")


class CanRun(Protocol):
    """The one method of bindings that is used here."""

    def runs(self, pipeline: str) -> bool:
        """Return whether it can run a pipeline."""
        ...


def available(backend: CanRun) -> tuple[PassElement, ...]:
    """List the elements that bindings run, in the catalogue's order."""
    return tuple(element for text, element in elements().items() if backend.runs(print_pipeline([text])))


def print_pipeline(texts: Iterable[str]) -> str:
    """Write a list of passes as `opt -passes=` takes it.

    Returns:
        The canonical pipeline; empty for no passes.

    Raises:
        ProgramError: a pass is unknown or kept out.
    """
    groups = groupby(map(_placed, texts), key=lambda pair: pair[0])
    merged = ((inside, ",".join(text for _, text in group)) for inside, group in groups)
    return ",".join(f"function({passes})" if inside else passes for inside, passes in merged)


def parse_pipeline(text: str) -> tuple[str, ...]:
    """Read a pipeline back into its list of passes; `print_pipeline` is its inverse.

    Args:
        text: passes with or without their managers. A manager of loops or of cgscc holds one pass, since
            lists cannot express what LLVM does with several.

    Returns:
        The passes, as the catalogue writes them.

    Raises:
        ProgramError: the text is malformed, a pass is unknown or kept out, or it is in a manager that
            is not its own.
    """
    return tuple(element.text for element in _read(read_items(text), None))


_WITHIN_FUNCTION = {"function": "{}", "loop": "loop({})", "loop-mssa": "loop-mssa({})"}
_WITHIN_MODULE = {"module": "{}", "cgscc": "cgscc({})"}


@cache
def _placed(text: str) -> tuple[bool, str]:
    """Return whether a pass runs in a function manager, and its text there or at the top."""
    element = find_element(text)
    inside = element.nesting in _WITHIN_FUNCTION
    form = _WITHIN_FUNCTION[element.nesting] if inside else _WITHIN_MODULE[element.nesting]
    return inside, form.format(element.text)


_HOLDS: dict[Nesting, tuple[Nesting, ...]] = {
    "module": ("module", "cgscc", "function"),
    "cgscc": (),
    "function": ("function", "loop", "loop-mssa"),
    "loop": (),
    "loop-mssa": (),
}
"""Manager to the managers that may be in it; one that may hold no other holds a single pass."""

_MANAGERS: dict[str, Nesting] = {manager: manager for manager in _HOLDS}


def _read(items: Iterable[PipelineItem], manager: Nesting | None) -> Iterator[PassElement]:
    """List the passes within a manager; None is the top, where a pass needs no manager."""
    for item in items:
        if item.inner is None:
            element = find_element(item.text)
            if manager not in (None, element.nesting):
                what = f"pass '{element.text}' is in {manager}(...)"
                raise ProgramError(what, f"Write {print_pipeline([element.text])}.")
            yield element
            continue
        kind = _MANAGERS.get(item.text)
        if kind is None:
            raise ProgramError(f"unknown pass manager '{item.text}(...)'", f"Known: {', '.join(_HOLDS)}.")
        if manager is not None and kind not in _HOLDS[manager]:
            raise ProgramError(f"{kind}(...) is in {manager}(...)", f"Write it outside of {manager}(...).")
        if len(item.inner) > 1 and not _HOLDS[kind]:
            apart = ",".join(f"{kind}({one.text})" for one in item.inner)
            raise ProgramError(f"{kind}(...) holds {len(item.inner)} passes, not one", f"Write {apart}.")
        yield from _read(item.inner, kind)
