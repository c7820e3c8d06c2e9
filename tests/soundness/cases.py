"""The pass lists that are tried: each pass in several contexts, random lists, and the coresets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planish.core import rng
from planish.llvm.passes import PassElement, PassSpace, load_coreset, passes_of

LONGEST = 20
_BEFORE = "sroa<modify-cfg>"
_OBJECTIVES = ("instructions", "text_bytes")


@dataclass(frozen=True)
class Case:
    """One list to try.

    Args:
        passes: the list, as the catalogue writes it.
        about: the pass that is tried; empty for lists of many.
        context: where the pass stands, or where the list is from.
        without: the list without the pass that is tried; it tells whether the pass changed anything.
    """

    passes: tuple[str, ...]
    about: str = ""
    context: str = ""
    without: tuple[str, ...] = ()


def in_contexts(element: PassElement, small: str) -> Iterator[Case]:
    """List the contexts of one pass.

    Args:
        element: the pass.
        small: LLVM's pipeline for small code: "default<Oz>".
    """
    text = element.text
    yield Case((text,), text, "alone")
    yield Case((_BEFORE, text), text, "after sroa", (_BEFORE,))
    yield Case((_BEFORE, text, text), text, "twice", (_BEFORE,))
    yield Case((text, small), text, f"before {small}", (small,))
    yield Case((small, text), text, f"after {small}", (small,))


def random_lists(elements: Sequence[PassElement], count: int, seed: int, place: int) -> Iterator[Case]:
    """Draw lists of 2 to 20 passes, each pass and length alike.

    Args:
        elements: what they are drawn from.
        count: how many.
        seed: the run's.
        place: another place in the run gives other lists.
    """
    space = PassSpace(elements, longest=LONGEST)
    for number in range(count):
        draws = rng(seed, place, number)
        passes = passes_of(space.sample(draws))
        while len(passes) < 2:
            passes = passes_of(space.sample(draws))
        yield Case(passes, context="random")


def coreset_lists(elements: Sequence[PassElement]) -> Iterator[Case]:
    """List the shipped coresets, of all objectives, less what the back end cannot run."""
    known = {element.text for element in elements}
    for passes in dict.fromkeys(passes for objective in _OBJECTIVES for passes in load_coreset(objective)):
        if known.issuperset(passes):
            yield Case(passes, context="coreset")
