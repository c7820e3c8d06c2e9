"""The space of pass lists, up to a length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from planish.core import UNTAUGHT, Candidate, FeatureSchema, SearchContext, Step
from planish.llvm.passes.catalogue import PassElement
from planish.llvm.passes.list_features import list_features, list_schema
from planish.llvm.passes.random_lists import ANY_LIST, ListShape, Weighted
from planish.llvm.passes.step import candidate_of, pass_step, passes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from planish.llvm.passes.compiled_lists import Compiled

LONGEST = 20
"""Passes of the longest list, unless said otherwise."""

FOCUS = 0.5
"""The share of draws that `focused` gives to the passes that it was shown."""


class PassSpace:
    """Lists of at most `longest` passes, in any order; a pass may come again.

    Every list is legal, since each element is printed with the managers of its own nesting. The thesis
    (4.2.1) lets each default pipeline occur once in a list; here it may come again, as any pass.

    Args:
        elements: what lists are made of; at least one.
        longest: passes of the longest list, at least 1.
        weights: text to how often it is drawn beside the others, not negative; all alike by default.
        seeds: lists that are known to be good elsewhere, the best first; those that are not of this space
            are left out.
        shapes: patterns of sampled lists; those whose anchors are not of this space are left out.
        ir: the module that the lists are for, as LLVM prints it; features tell of it.
        small: gives what -Oz makes of it; without, it is observed as it is.
        objective: what is to be made less; a policy learns of one.
    """

    def __init__(
        self,
        elements: Sequence[PassElement],
        *,
        longest: int = LONGEST,
        weights: Mapping[str, float] | None = None,
        seeds: Iterable[Sequence[str]] = (),
        shapes: Sequence[ListShape] = ANY_LIST,
        ir: str = "",
        small: Callable[[], str] | None = None,
        objective: str = "instructions",
    ) -> None:
        self._ir, self._small, self._objective = ir, small, objective
        self._seen: NDArray[np.int64] | None = None
        self.elements = tuple(elements)
        self.longest = longest
        texts = tuple(element.text for element in elements)
        self._steps = tuple(map(pass_step, texts))
        self._weights = {text: 1.0 if weights is None else weights.get(text, 0.0) for text in texts}
        self._passes = Weighted(self._weights)
        kept = (shape.within(texts) for shape in shapes)
        self._shapes = Weighted({shape: shape.weight for shape in kept if shape} or {ANY_LIST[0]: 1.0})
        self._seeds = tuple(candidate_of(seed) for seed in seeds if self._holds(seed))

    def start(self) -> Candidate:
        """Give the empty list."""
        return Candidate()

    def steps(self, candidate: Candidate) -> Sequence[Step]:
        """List every element, until the list is full."""
        return self._steps if len(candidate.steps) < self.longest else ()

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Append a pass."""
        return candidate.then(step)

    def state(self, candidate: Candidate) -> str:
        """Give the list's hash: whether two lists make one program, only LLVM can tell."""
        return candidate.hash

    def sample(self, rng: Generator) -> Candidate:
        """Draw a shape, a length (each alike, from 1) and the passes."""
        shape = self._shapes.draw(1, rng)[0]
        length = int(rng.integers(1, self.longest, endpoint=True))
        anchors = shape.anchor(rng)
        return candidate_of(shape.placed(anchors, self._passes.draw(length - len(anchors), rng), rng))

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Replace, insert, delete or swap: each alike, of those that this list allows."""
        passes = list(passes_of(candidate))
        changes = [_insert] if len(passes) < self.longest else []
        changes += [_replace, _delete] if passes else []
        # To swap equal passes changes nothing.
        changes += [_swap] if len(set(passes)) > 1 else []
        changes[int(rng.integers(len(changes)))](passes, self._passes.draw(1, rng)[0], rng)
        return candidate_of(passes)

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Cut each list at a point and swap the rests; a list that grows too long loses its end."""
        cut, other = (int(rng.integers(len(parent.steps) + 1)) for parent in (a, b))
        first = (a.steps[:cut] + b.steps[other:])[: self.longest]
        second = (b.steps[:other] + a.steps[cut:])[: self.longest]
        return Candidate(first), Candidate(second)

    def seeds(self, context: SearchContext = UNTAUGHT) -> Sequence[Candidate]:  # noqa: ARG002
        """List what is known to be good elsewhere, the best first."""
        return self._seeds

    def selected(self, candidate: Candidate, places: Sequence[int]) -> Candidate:
        """Give the passes at these places alone; every list is legal."""
        return Candidate(tuple(candidate.steps[place] for place in places))

    def focused(self, candidates: Sequence[Candidate]) -> PassSpace:
        """Give this space, with half of its draws from the passes of these lists, as often as they occur."""
        seen = Counter(text for candidate in candidates for text in passes_of(candidate))
        ours = {text: seen[text] for text in self._weights if text in seen}
        if not ours:
            return self
        # The weights of each part sum to its share of the draws.
        usual, shown = (1 - FOCUS) / sum(self._weights.values()), FOCUS / sum(ours.values())
        return PassSpace(
            self.elements,
            longest=self.longest,
            weights={text: usual * w + shown * ours.get(text, 0) for text, w in self._weights.items()},
            seeds=map(passes_of, self._seeds),
            shapes=self._shapes.items,
            ir=self._ir,
            small=self._small,
            objective=self._objective,
        )

    @property
    def schema(self) -> FeatureSchema:
        """What `features` gives; see `planish.llvm.passes.list_features`."""
        return list_schema()

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe lists, and the module that they are for; it is read once."""
        return list_features(_autophase(self._ir), candidates)

    @property
    def actions(self) -> Sequence[Step]:
        """List every pass."""
        return self._steps

    @property
    def observed(self) -> FeatureSchema:
        """What `observe` gives; see `planish.llvm.features.instructions`."""
        from planish.llvm.features.instructions import instruction_schema

        return instruction_schema(self._objective)

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:  # noqa: ARG002
        """Describe the module by its instructions, before and after -Oz; the same for every list."""
        from planish.llvm.features.instructions import observe_module

        if self._seen is None:
            self._seen = observe_module(self._ir, self._small() if self._small else self._ir)
        return self._seen

    @property
    def text(self) -> str:
        """The module that the lists are for; empty where it was not given."""
        return self._ir

    def instructions(self, candidate: Candidate) -> int | None:
        """Count the instructions of what a list makes of the module; None where it fails, or ends LLVM."""
        made = _made(self._ir, passes_of(candidate))
        return made.instructions if made else None

    def compiled(self, candidate: Candidate) -> str | None:
        """Give what a list makes of the module, prepared for size; None where it fails, or ends LLVM."""
        made = _made(self._ir, passes_of(candidate))
        return made.code if made else None

    def refused(self, text: str) -> str:
        """Give what LLVM says of a text; "" where it is a module."""
        from planish.llvm.backend import open_backend
        from planish.llvm.passes.compiled_lists import reading_error

        return reading_error(open_backend(), text)

    def _holds(self, passes: Sequence[str]) -> bool:
        return len(passes) <= self.longest and self._weights.keys() >= set(passes)


@lru_cache(maxsize=4)
def _made(ir: str, passes: tuple[str, ...]) -> Compiled | None:
    from planish.llvm.backend import open_backend
    from planish.llvm.passes.compiled_lists import compile_lists

    return compile_lists(open_backend(), [(ir, passes)])[0]


@lru_cache(maxsize=4)
def _autophase(ir: str) -> NDArray[np.int64]:
    from planish.llvm.features.autophase import autophase

    return autophase(ir)


def _insert(passes: list[str], new: str, rng: Generator) -> None:
    passes.insert(int(rng.integers(len(passes) + 1)), new)


def _replace(passes: list[str], new: str, rng: Generator) -> None:
    passes[int(rng.integers(len(passes)))] = new


def _delete(passes: list[str], _: str, rng: Generator) -> None:
    del passes[int(rng.integers(len(passes)))]


def _swap(passes: list[str], _: str, rng: Generator) -> None:
    here, there = rng.integers(len(passes), size=2).tolist()
    passes[here], passes[there] = passes[there], passes[here]
