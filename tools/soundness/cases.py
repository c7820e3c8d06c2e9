"""The pass lists that are tried: passes in contexts, random lists, the coresets, and hot functions'."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planish.core import rng
from planish.levels.llvm.hot.lists import BEGIN, LAST, USUAL, drawn, first_lists, pipeline
from planish.levels.llvm.passes.catalogue import PassElement, load_coreset
from planish.levels.llvm.passes.pipeline import passes_of, print_pipeline
from planish.levels.llvm.passes.space import PassSpace

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
        without: the list without the pass that is tried; it shows whether the pass changed anything.
        frame: the pipeline in which the list, with commas, stands for `{}`; empty: it is one by itself.
    """

    passes: tuple[str, ...]
    about: str = ""
    context: str = ""
    without: tuple[str, ...] = ()
    frame: str = ""

    def pipeline(self, passes: Sequence[str]) -> str:
        """Write a part of the list as `opt -passes=` takes it."""
        return self.frame.format(",".join(passes)) if self.frame else print_pipeline(passes)


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


def random_lists(elements: Sequence[PassElement], count: int, seed: int, stream: int) -> Iterator[Case]:
    """Draw lists of 2 to 20 passes, each pass and length alike.

    Args:
        elements: what they are drawn from.
        count: how many.
        seed: the run's.
        stream: of random numbers; another one has other lists.
    """
    space = PassSpace(elements, longest=LONGEST)
    for number in range(count):
        draws = rng(seed, stream, number)
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


def hot_lists(count: int, seed: int, stream: int) -> Iterator[Case]:
    """List what is run on hot functions, here on all: first what is tried first, then what is drawn.

    Args:
        count: how many are drawn.
        seed: the run's.
        stream: of random numbers; another one has other lists.
    """
    draws = random.Random(f"{seed} {stream}")
    frame = f"{BEGIN},{pipeline(('{}',))},{LAST}"
    tried = [*first_lists(), *(drawn(draws.choice((USUAL, *first_lists())), draws) for _ in range(count))]
    for parts in dict.fromkeys(tried):
        yield Case(parts, context="hot", frame=frame)
