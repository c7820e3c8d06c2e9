"""Space of pass lists: drawing and changing lists, their features, and those with which a search begins.

Functions are compiled by lists in forked children: a list that a model writes may end LLVM. Modules are
similar that have each opcode about as often: to compare them takes microseconds, and what is similar so has
mostly the same idioms of the same source.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    FeatureSchema,
    ProgramError,
    SearchContext,
    Space,
    Step,
    Tried,
    unknown,
)
from planish.core.own_tables import read_table
from planish.levels.llvm.bindings.protocol import Bindings, IRError, PassError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.functions import normalize
from planish.levels.llvm.passes.catalogue import (
    PassElement,
    base_name,
    drop_unsafe_passes,
    elements,
    load_coreset,
)
from planish.levels.llvm.passes.pipeline import Pass, candidate_of, pass_step, passes_of, print_pipeline
from planish.sandbox.fork_pool import Watchdog, forked

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

Passes = tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """A function as a list compiles it.

    Args:
        instructions: of it.
        code: it, normalized as the corpus is.
    """

    instructions: int
    code: str


def compile_lists(bindings: Bindings, jobs: Iterable[tuple[str, Passes]]) -> list[Compiled | None]:
    """Run lists on functions, prepared for size as clang's -Oz has it.

    Returns:
        In the order of the jobs; None where the list is refused, is invalid, or ends LLVM.
    """

    def work(job: tuple[int, str, Passes], watchdog: Watchdog) -> tuple[int, Compiled | None]:
        return job[0], _compiled(bindings, *job[1:], watchdog)

    numbered = [(index, *job) for index, job in enumerate(jobs)]
    found: list[Compiled | None] = [None] * len(numbered)
    with closing(forked(numbered, work, tuple[int, Compiled | None], 1, at_once=64)) as over:
        for one in over:
            one.check()
            if one.answer:
                found[one.answer[0]] = one.answer[1]
    return found


def reading_error(bindings: Bindings, ir: str) -> str:
    """Return LLVM's error for a text that a model wrote; "" where it is a valid module."""
    try:
        bindings.parse(ir).close()
    except IRError as error:
        return error.message
    return ""


def _compiled(bindings: Bindings, ir: str, passes: Sequence[str], watchdog: Watchdog) -> Compiled | None:
    try:
        pipeline = print_pipeline(passes)
        if not watchdog.enter(pipeline):
            return None
        with closing(bindings.parse(for_size(ir))) as module:
            module.run(pipeline)
            return None if module.verify() else Compiled(module.instructions(), normalize(module.text()))
    except (ProgramError, PassError):  # a model may write IR that is malformed, and passes that do not exist
        return None


T = TypeVar("T", bound=Hashable)


class Weighted(Generic[T]):
    """Things that are drawn each in proportion to its weight.

    Args:
        weights: thing to weight, not negative, and above 0 for one of them.
    """

    def __init__(self, weights: Mapping[T, float]) -> None:
        self.items = tuple(weights)
        sums = list(accumulate(weights.values()))
        self._bounds = [each / sums[-1] for each in sums]  # the last is 1 exactly, which no chance reaches

    def draw(self, count: int, rng: Generator) -> list[T]:
        """Draw with replacement."""
        # To the right of equal bounds: what weighs 0 has the bound of the one before it, and is never drawn.
        return [self.items[bisect(self._bounds, chance)] for chance in rng.random(count).tolist()]


@dataclass(frozen=True)
class ListShape:
    """A pattern of sampled lists: random passes, and one anchor at a given position.

    Args:
        weight: how often it is drawn, relative to the other shapes.
        anchors: of these one is in the list, each alike; none: the list is random throughout.
        position: of the anchor.
    """

    weight: float
    anchors: tuple[str, ...] = ()
    position: Literal["first", "last", "anywhere"] = "anywhere"

    def within(self, texts: Collection[str]) -> ListShape | None:
        """Return the shape with those anchors alone that are among these passes; None where none is."""
        kept = tuple(anchor for anchor in self.anchors if anchor in texts)
        return replace(self, anchors=kept) if kept or not self.anchors else None

    def anchor(self, rng: Generator) -> Sequence[str]:
        """Draw the anchor, as a list of one or none."""
        return [self.anchors[int(rng.integers(len(self.anchors)))]] if self.anchors else []

    def placed(self, anchor: Sequence[str], passes: Sequence[str], rng: Generator) -> list[str]:
        """Insert the anchor at its position among random passes."""
        last = len(passes)
        index = {"first": 0, "last": last}.get(self.position)
        if index is None:
            index = int(rng.integers(last + 1))
        return [*passes[:index], *anchor, *passes[index:]]


ANY_LIST = (ListShape(1.0),)
"""The shape of lists that are random throughout."""


OF_LIST = (
    "passes",  # how many
    "pipelines",  # LLVM's own among them
    "different",  # passes, whatever their parameters
)
OF_PASS = (
    "times",  # that it comes
    "first",  # its first position, from 1; 0 where it is absent
    "after last",  # passes after its last position, and 1; 0 where it is absent
)


@cache
def list_schema() -> FeatureSchema:
    """Name the columns: those of the list, then AutoPhase's 56 of the module as it came, as log2(1 + x)."""
    from planish.levels.llvm.ir.features import FEATURES, VERSION  # with NumPy

    of_passes = [f"{name} {text}" for text in elements() for name in OF_PASS]
    of_module = [f"AutoPhase {VERSION}: {name}" for name in FEATURES]
    return FeatureSchema("llvm/list", 1, (*OF_LIST, *of_passes, *of_module))


def list_features(module: NDArray[np.int64], candidates: Sequence[Candidate]) -> NDArray[np.float32]:
    """Describe lists; (lists, width of `list_schema()`).

    Args:
        module: AutoPhase's features of the module as it came.
        candidates: lists; a pass that the catalogue does not have counts as one of the passes alone.
    """
    import numpy as np  # here: to import it takes long

    known, width = elements(), list_schema().width
    found = np.zeros((len(candidates), width), np.float32)
    found[:, width - len(module) :] = np.log2(1 + module)
    for row, candidate in zip(found, candidates, strict=True):
        texts = passes_of(candidate)
        pipelines = sum(known[text].is_pipeline for text in texts if text in known)
        row[: len(OF_LIST)] = len(texts), pipelines, len(set(map(base_name, texts)))
        for index, text in enumerate(texts):
            if text not in known:
                continue
            column = _columns()[text]
            row[column] += 1
            row[column + 1] = row[column + 1] or index + 1
            # Overwritten each time it comes: the last position stays.
            row[column + 2] = len(texts) - index
    return found


@cache
def _columns() -> dict[str, int]:
    """Return the first column of each pass."""
    return {text: len(OF_LIST) + number * len(OF_PASS) for number, text in enumerate(elements())}


LONGEST = 20
"""Passes of the longest list, unless said otherwise."""

FOCUS = 0.5
"""The share of draws that `focused` gives to the passes that it was shown."""


class PassSpace(Space):
    """Lists of at most `longest` passes, in any order; a pass may come again.

    Every list is legal, since each element is printed with the managers of its own nesting. The thesis
    (4.2.1) lets each default pipeline occur once in a list; here it may come again, as any pass.

    Args:
        elements: what lists are made of; at least one.
        longest: passes of the longest list, at least 1.
        weights: text to how often it is drawn, relative to the others, not negative; all alike by default.
        seeds: lists that are known to be good elsewhere, the best first; those that are not of this space
            are left out.
        shapes: patterns of sampled lists; those whose anchors are not of this space are left out.
        ir: the module that the lists are for, as LLVM prints it; features describe it.
        small: returns what -Oz makes of it; without, it is observed as it is.
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
        self._seeds = tuple(
            candidate_of(seed) for seed in seeds if len(seed) <= longest and self._weights.keys() >= set(seed)
        )

    def start(self) -> Candidate:
        """Return the empty list."""
        return Candidate()

    def steps(self, candidate: Candidate) -> Sequence[Step]:
        """List every element, until the list is full."""
        return self._steps if len(candidate.steps) < self.longest else ()

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Append a pass."""
        return candidate.then(step)

    def state_key(self, candidate: Candidate) -> str:
        """Return the list's hash: only LLVM can decide whether two lists make the same program."""
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
        changes = ["insert"] if len(passes) < self.longest else []
        changes += ["replace", "delete"] if passes else []
        # To swap equal passes changes nothing.
        changes += ["swap"] if len(set(passes)) > 1 else []
        change, new = changes[int(rng.integers(len(changes)))], self._passes.draw(1, rng)[0]
        if change == "swap":
            here, there = rng.integers(len(passes), size=2).tolist()
            passes[here], passes[there] = passes[there], passes[here]
        elif change == "insert":
            passes.insert(int(rng.integers(len(passes) + 1)), new)
        else:
            index = int(rng.integers(len(passes)))
            passes[index : index + 1] = [new] if change == "replace" else []
        return candidate_of(passes)

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Cut each list at a point and swap the rests; a list that grows too long loses its end."""
        cut, other = (int(rng.integers(len(parent.steps) + 1)) for parent in (a, b))
        first = (a.steps[:cut] + b.steps[other:])[: self.longest]
        second = (b.steps[:other] + a.steps[cut:])[: self.longest]
        return Candidate(first), Candidate(second)

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> Sequence[Candidate]:
        """List what is known to be good elsewhere: the best, those of similar modules, and the others."""
        similar = [each for each in context.warm_start if self._holds(each)]
        return tuple(dict.fromkeys((*self._seeds[:1], *similar, *self._seeds[1:])))

    def _holds(self, candidate: Candidate) -> bool:
        return len(candidate.steps) <= self.longest and set(self._steps).issuperset(candidate.steps)

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate:
        """Return the passes at these indices alone; every list is legal."""
        return Candidate(tuple(candidate.steps[index] for index in indices))

    def focused(self, candidates: Sequence[Candidate]) -> PassSpace:
        """Return this space with half of its draws from the passes of these lists, by frequency."""
        seen = Counter(text for candidate in candidates for text in passes_of(candidate))
        ours = {text: seen[text] for text in self._weights if text in seen}
        if not ours:
            return self
        # The weights of each part sum to its share of the draws.
        usual, shown = (1 - FOCUS) / sum(self._weights.values()), FOCUS / sum(ours.values())
        space = copy(self)
        space._weights = {text: usual * w + shown * ours.get(text, 0) for text, w in self._weights.items()}
        space._passes = Weighted(space._weights)
        return space

    @property
    def schema(self) -> FeatureSchema:
        """Return the schema of `features`; see `planish.levels.llvm.passes.space`."""
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
        """Return the schema of `observe`; see `planish.levels.llvm.ir.features`."""
        from planish.levels.llvm.ir.features import instruction_schema

        return instruction_schema(self._objective)

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:  # noqa: ARG002
        """Describe the module by its instructions, before and after -Oz; the same for every list."""
        from planish.levels.llvm.ir.features import observe_module

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
        """Return the module after a list, prepared for size; None where the list fails, or ends LLVM."""
        made = _made(self._ir, passes_of(candidate))
        return made.code if made else None

    def refused(self, text: str) -> str:
        """Return LLVM's error for a text; "" where it is a module."""
        from planish.levels.llvm.bindings.libraries import open_bindings

        return reading_error(open_bindings(), text)


@lru_cache(maxsize=4)
def _made(ir: str, passes: tuple[str, ...]) -> Compiled | None:
    from planish.levels.llvm.bindings.libraries import open_bindings

    return compile_lists(open_bindings(), [(ir, passes)])[0]


@lru_cache(maxsize=4)
def _autophase(ir: str) -> NDArray[np.int64]:
    from planish.levels.llvm.ir.features import autophase

    return autophase(ir)


SPACES = ("passes", "uniform", "safe")
"""The names: what does best, what the thesis does, and what LLVM itself does by default."""

SMOOTHING = 0.5
"""Addition to each pass's count in the coreset, so that every pass can be drawn."""

_DEFAULTS = tuple(f"default<{level}>" for level in ("Oz", "Os", "O1", "O2", "O3"))

SHAPES = (
    ListShape(0.4),
    ListShape(0.2, ("sroa<modify-cfg>",), "first"),
    ListShape(0.15, ("default<Oz>",), "last"),
    ListShape(0.1, ("default<Oz>",), "first"),
    ListShape(0.15, _DEFAULTS, "anywhere"),
)
"""The shapes of lists that gained most over -Oz in a trial of 1,500 lists on 300 functions."""


def pass_space(
    name: str,
    elements: Sequence[PassElement],
    objective: str = "instructions",
    longest: int = LONGEST,
    coreset: Sequence[Sequence[str]] | None = None,
    ir: str = "",
    small: Callable[[], str] | None = None,
) -> PassSpace:
    """Make a space of pass lists by name.

    `passes` draws from all elements, the more often the more they occur in the coreset; `uniform` draws
    length and passes evenly, as the thesis does (4.3.2); `safe` is `passes` with tier 1 alone.

    Args:
        name: one of `SPACES`.
        elements: those that the back end runs.
        objective: what is to be made less; it chooses the coreset.
        longest: passes of the longest list.
        coreset: the lists to begin with, and to draw passes after; the shipped ones by default.
        ir: the module that the lists are for; what is known to break it is not in the space.
        small: returns what -Oz makes of it; it is asked where a policy observes.

    Raises:
        PlanishError: there is no such space.
    """
    if name not in SPACES:
        raise unknown("level 'llvm' has no space", name, SPACES)
    coreset = load_coreset(objective) if coreset is None else coreset
    kept = [element for element in elements if element.tier == 1 or name != "safe"]
    # Before what breaks the module goes, so that a list with such a pass loses it, and stays.
    texts = {element.text for element in kept}
    kept = [element for element in kept if drop_unsafe_passes([element.text], ir)]
    small_code = oz_of({element.text for element in kept})
    # LLVM's own pipeline for small code comes first.
    seeds = [
        *([[small_code]] if small_code else []),
        *(drop_unsafe_passes(passes, ir) for passes in coreset if texts.issuperset(passes)),
    ]
    # LLVM's own pipelines count as unseen, for shapes bring them in.
    seen = Counter(text for passes in coreset for text in passes)
    weights = {e.text: SMOOTHING + (0 if e.is_pipeline else seen[e.text]) for e in kept}
    uniform = name == "uniform"
    return PassSpace(
        kept,
        longest=longest,
        weights=None if uniform else weights,
        seeds=seeds,
        shapes=ANY_LIST if uniform else SHAPES,
        ir=ir,
        small=small,
        objective=objective,
    )


def oz_of(texts: Collection[str]) -> str | None:
    """Return LLVM's pipeline for small code among some passes: -Oz, or -O2 where it has no -Oz any more.

    On functions that are `minsize optsize` the two make code of the same size. None: it has neither.
    """
    return next((text for text in ("default<Oz>", "default<O2>") if text in texts), None)


_OPCODE = re.compile(
    r"^ *(?:%\S+ = )?(?!(?:target|source_filename|define|declare|attributes)\b)"
    r"(?:(?:must|no)?tail )?([a-z]+)",
    re.MULTILINE,
)
"""Of an instruction, also where the text is normalized, which has no indentation."""
_CLOSE = 8
"""Power of the cosine between modules: what is similar by 0.95 counts two thirds."""
LEAST = 0.95
"""Similarity below which a module recommends nothing: its lists save less than those of the policy."""
RECOMMENDED = 6
"""Lists that are recommended at most."""


def opcode_profile(ir: str) -> Mapping[str, float]:
    """Describe a module by its opcodes: opcode to log(1 + count), as a vector of length 1."""
    counts = Counter(_OPCODE.findall(ir))
    length = math.sqrt(sum(math.log1p(count) ** 2 for count in counts.values())) or 1.0
    return {opcode: math.log1p(count) / length for opcode, count in counts.items()}


def similarity(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the cosine between two profiles."""
    return sum(value * other.get(opcode, 0.0) for opcode, value in one.items())


OWN_LISTS = "llvm-lists-instructions"
"""Name of the user's own table, which `planish learn` keeps."""


def own_lists(objective: str, version: str) -> list[Candidate]:
    """Return the lists that were best for the user's own modules; none where there is no table.

    Args:
        objective: what is to be made less.
        version: the level's.
    """
    table = read_table(OWN_LISTS, version) if OWN_LISTS.endswith(f"-{objective}") else None
    return [candidate_of(passes) for passes in table[0]] if table else []


def recommended(ir: str, winners: Tried, most: int = RECOMMENDED) -> list[Candidate]:
    """List what was good for similar modules, the best first.

    A list counts by what it gained on each module, weighted by how similar that is.

    Args:
        ir: the module.
        winners: finalists of runs for other modules, with their cost over the baseline's.
        most: how many lists at most.
    """
    own, votes = opcode_profile(ir), defaultdict[Candidate, float](float)
    for text, outcomes in winners.items():
        close = similarity(own, opcode_profile(text))
        if close < LEAST:
            continue
        for candidate, ratio in outcomes:
            # Of the space of passes: others have lists for functions by their names.
            if ratio is not None and 0 < ratio < 1 and all(isinstance(s, Pass) for s in candidate.steps):
                votes[candidate] -= close**_CLOSE * math.log(ratio)
    # Stable: of equals what the newest run found comes first.
    return sorted(votes, key=lambda each: -votes[each])[:most]
