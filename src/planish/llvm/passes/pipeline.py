"""Pass lists as LLVM's pipelines: printed with explicit nesting, and read back.

The canonical form is the only one that `print_pipeline` writes:

- Neighbours in function managers share one: `function(sroa<modify-cfg>,gvn)`. In a module of several
  functions LLVM then runs all of them on one function before it turns to the next, where separate
  managers would run each pass on all functions first. A function pass sees and changes its own function
  only, so the code is the same, and analyses are kept, which saves about a fifth of the time.
- Every loop pass has a manager of its own: `function(loop(indvars),loop(loop-deletion))`. In a shared one
  LLVM runs all of its passes on an inner loop before it turns to the outer one, which gives other code.
- For the same reason every cgscc pass has a manager of its own.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Protocol

from planish.core import ProgramError
from planish.llvm.passes.catalogue import Nesting, PassElement, elements, find_element
from planish.llvm.passes.pipeline_syntax import PipelineItem, read_items


class CanRun(Protocol):
    """What is asked of a back end here."""

    def runs(self, pipeline: str) -> bool:
        """Whether it can run a pipeline."""
        ...


def available(backend: CanRun) -> tuple[PassElement, ...]:
    """List the elements that a back end runs, in the catalogue's order."""
    return tuple(element for text, element in elements().items() if backend.runs(print_pipeline([text])))


def print_pipeline(texts: Iterable[str]) -> str:
    """Write a list of passes as `opt -passes=` takes it.

    Args:
        texts: passes as the catalogue writes them, in their order.

    Returns:
        The canonical pipeline; empty for no passes.

    Raises:
        ProgramError: a pass is unknown or kept out.
    """
    return ",".join(_merged(map(_placed, texts)))


def parse_pipeline(text: str) -> tuple[str, ...]:
    """Read a pipeline back into its list of passes; `print_pipeline` is its inverse.

    Args:
        text: passes with or without their managers. A manager of loops or of cgscc holds one pass, since
            lists cannot tell what LLVM does with several.

    Returns:
        The passes, as the catalogue writes them.

    Raises:
        ProgramError: the text is malformed, a pass is unknown or kept out, or it stands in a manager that
            is not its own.
    """
    return tuple(element.text for element in _read(read_items(text), None))


_WITHIN_FUNCTION = {"function": "{}", "loop": "loop({})", "loop-mssa": "loop-mssa({})"}
_WITHIN_MODULE = {"module": "{}", "cgscc": "cgscc({})"}


@cache
def _placed(text: str) -> tuple[bool, str]:
    """Give whether a pass runs in a function manager, and its text there or at the top."""
    element = find_element(text)
    inside = element.nesting in _WITHIN_FUNCTION
    form = _WITHIN_FUNCTION[element.nesting] if inside else _WITHIN_MODULE[element.nesting]
    return inside, form.format(element.text)


def _merged(placed: Iterable[tuple[bool, str]]) -> Iterator[str]:
    for inside, group in groupby(placed, key=lambda pair: pair[0]):
        passes = ",".join(text for _, text in group)
        yield f"function({passes})" if inside else passes


_HOLDS: dict[Nesting, tuple[Nesting, ...]] = {
    "module": ("module", "cgscc", "function"),
    "cgscc": (),
    "function": ("function", "loop", "loop-mssa"),
    "loop": (),
    "loop-mssa": (),
}
"""Manager to the managers that may stand in it; one that may hold no other holds a single pass."""

_MANAGERS: dict[str, Nesting] = {manager: manager for manager in _HOLDS}


def _read(items: Iterable[PipelineItem], manager: Nesting | None) -> Iterator[PassElement]:
    """List the passes within a manager; None is the top, where a pass may stand without its own."""
    for item in items:
        if item.inner is None:
            yield _checked(find_element(item.text), manager)
        else:
            inside = _manager(item, manager)
            _read_alone(item, inside)
            yield from _read(item.inner, inside)


def _checked(element: PassElement, manager: Nesting | None) -> PassElement:
    if manager not in (None, element.nesting):
        raise ProgramError(
            f"pass '{element.text}' stands in {manager}(...)", f"Write {print_pipeline([element.text])}."
        )
    return element


def _manager(item: PipelineItem, outer: Nesting | None) -> Nesting:
    kind = _MANAGERS.get(item.text)
    if kind is None:
        raise ProgramError(f"'{item.text}(...)' is no pass manager", f"Known: {', '.join(_HOLDS)}.")
    if outer is not None and kind not in _HOLDS[outer]:
        raise ProgramError(f"{kind}(...) stands in {outer}(...)", f"Write it outside of {outer}(...).")
    return kind


def _read_alone(item: PipelineItem, kind: Nesting) -> None:
    inner = item.inner or ()
    if len(inner) > 1 and not _HOLDS[kind]:
        apart = ",".join(f"{kind}({one.text})" for one in inner)
        raise ProgramError(f"{kind}(...) holds {len(inner)} passes, not one", f"Write {apart}.")
