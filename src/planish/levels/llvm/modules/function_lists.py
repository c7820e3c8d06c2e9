"""Search for a pass list for each function of a prepared module.

The shipped lists come first, the most useful before others; then lists are drawn. The module is cut into
chunks of few functions, so that a list that is tried on some costs nothing for the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from planish.levels.llvm.backend.c_module import CModule
from planish.levels.llvm.modules.budget import LIMITS, EvaluationBudget
from planish.levels.llvm.modules.results import ModuleRecipe
from planish.levels.llvm.modules.space import Lists, Passes, shipped_lists
from planish.levels.llvm.modules.transform import (
    FunctionCosts,
    PreparedModule,
    TriedLists,
    finish,
    keep_only,
    single,
    whole_backend,
)
from planish.levels.llvm.passes import parse_pipeline, print_pipeline
from planish.levels.llvm.passes.catalogue import MERGES, drop_unsafe_passes
from planish.sandbox import Done, ExitStatus, Watchdog, in_child

_KEPT = (0.9, 0.7, 0.5, 0.3)
_MOST_MORE = 3


def further_lists(seed: int = 0) -> Iterator[Passes]:
    """Draw lists without end: what -Oz runs, without some of it, and with few passes more."""
    lists, number = shipped_lists(), 0
    while True:
        number += 1
        yield _drawn(lists, random.Random(f"{seed} {number}"))


def _drawn(lists: Lists, rng: random.Random) -> Passes:
    kept = rng.choice(_KEPT)
    passes = [text for text in lists.simplify if rng.random() < kept]
    for _ in range(rng.randint(0, _MOST_MORE)):
        passes.insert(rng.randrange(len(passes) + 1), _one(lists.more, rng))
    return tuple(passes)


def _one(texts: Sequence[str], rng: random.Random) -> str:
    return texts[rng.randrange(len(texts))]


LEAST = 6
"""Functions of fewer instructions have nothing to choose."""
_MOST, _MOST_INSTRUCTIONS = 150, 5000


@dataclass(frozen=True)
class ModuleChunk:
    """Some functions of a module: all others are declarations.

    Args:
        module: it.
        names: of the functions.
        instructions: that they have together.
        breaking: passes that would break one of them.
    """

    module: CModule
    names: tuple[str, ...]
    instructions: int
    breaking: frozenset[str] = frozenset()


def cut(module: CModule, counts: Mapping[str, int], held: ExitStack) -> list[ModuleChunk]:
    """Cut a module.

    Args:
        module: it; it is not changed.
        counts: instructions of the functions that are wanted.
        held: closes the parts.

    Returns:
        The parts, the one with the largest functions first.
    """
    wanted = sorted((name for name in counts if counts[name] >= LEAST), key=lambda name: -counts[name])
    return list(_halves(module, list(_groups(wanted, counts)), counts, held)) if wanted else []


def _groups(names: Sequence[str], counts: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    group: list[str] = []
    size = 0
    for name in names:
        if group and (len(group) == _MOST or size + counts[name] > _MOST_INSTRUCTIONS):
            yield tuple(group)
            group, size = [], 0
        group.append(name)
        size += counts[name]
    yield tuple(group)


def _halves(
    module: CModule, groups: list[tuple[str, ...]], counts: Mapping[str, int], held: ExitStack
) -> Iterator[ModuleChunk]:
    """Cut by halves: each step copies what is left of the module, and not the whole."""
    part = module.clone()
    held.callback(part.close)
    keep_only(part, {name for group in groups for name in group})
    if len(groups) == 1:
        (names,) = groups
        kept = drop_unsafe_passes([MERGES], part.text())
        yield ModuleChunk(
            part, names, sum(counts[name] for name in names), frozenset([MERGES]).difference(kept)
        )
        return
    middle = len(groups) // 2
    yield from _halves(part, groups[:middle], counts, held)
    yield from _halves(part, groups[middle:], counts, held)
    part.close()


_OVERHEAD = 20.0
"""Instructions for which trying takes as long as it takes for a function at all."""


@dataclass(frozen=True)
class ListJob:
    """A list, and the part of a module that it is tried on."""

    passes: Passes
    chunk: ModuleChunk


def jobs(chunks: Sequence[ModuleChunk], known: Sequence[Passes] = (), tried: int = 0) -> Iterator[ListJob]:
    """Yield what is to be tried, where most is expected for the time first; it never ends.

    Args:
        chunks: of the module.
        known: lists that were good before; they come first.
        tried: how many of the others were tried before.
    """
    if not chunks:
        return
    yield from (_job(passes, chunk) for passes in known for chunk in chunks)
    yield from islice(_others(chunks), tried, None)


def _others(chunks: Sequence[ModuleChunk]) -> Iterator[ListJob]:
    lists = shipped_lists().first
    # Without the first: the module was made with it.
    worth = [(saves * _share(chunk), passes, chunk) for passes, saves in lists[1:] for chunk in chunks]
    worth.sort(key=lambda each: -each[0])
    yield from (_job(passes, chunk) for _, passes, chunk in worth)
    for passes in further_lists():
        yield from (_job(passes, chunk) for chunk in chunks)


def _job(passes: Passes, chunk: ModuleChunk) -> ListJob:
    """Leave out what breaks one function of a part: the list would be lost for all others too."""
    return ListJob(tuple(text for text in passes if text not in chunk.breaking), chunk)


def _share(chunk: ModuleChunk) -> float:
    """Return how much of the time for a part goes into its code."""
    mean = chunk.instructions / len(chunk.names)
    return mean / (mean + _OVERHEAD)


@dataclass(frozen=True)
class ModuleCandidate:
    """A whole module that was made.

    Args:
        recipe: how.
        made: what came of it.
    """

    recipe: ModuleRecipe
    made: PreparedModule

    @property
    def total(self) -> int:
        """Return what its functions cost; 0 where that was not measured."""
        return sum(self.made.tried.sizes.values())


@dataclass
class ListSearch:
    """Looks for the best list of each function.

    Args:
        whole: the module as it was begun, with one list for all functions, and measured.
        trier: measures functions.
        spending: what it may use.
        kept: is given what the functions are expected to cost, now and then, and how the module is made so.
        before: how the module was made at its best before; its lists are tried first. None: it was not.
        tried: pairs of a list and a part of the module that were tried before; it goes on behind them, and
            counts its own.
    """

    whole: ModuleCandidate
    trier: FunctionCosts
    spending: EvaluationBudget
    kept: Callable[[int, Callable[[], ModuleRecipe]], None]
    before: ModuleRecipe | None = None
    tried: int = 0
    _best: dict[str, tuple[int, Passes]] = field(init=False, default_factory=dict[str, tuple[int, Passes]])

    def run(self) -> ModuleCandidate | None:
        """Try lists, and put the best ones together; None: one list is the best for all, or LLVM refuses."""
        self._try_lists()
        return self._put_together()

    def _try_lists(self) -> None:
        usual = shipped_lists().first[0][0]
        self._best = {name: (size, usual) for name, size in self.whole.made.tried.sizes.items()}
        known = [parse_pipeline(pipeline) for pipeline, _ in self.before.lists] if self.before else []
        with ExitStack() as held:
            module = held.enter_context(closing(single(whole_backend().parse(self.whole.made.begun))))
            counts = module.definitions().instructions()
            wanted = {name: count for name, count in counts.items() if name in self._best}
            again = [passes for passes in known if passes != usual]
            chunks = cut(module, wanted, held)
            items = jobs(chunks, again, self.tried)
            left = len(again) * len(chunks)

            def work(item: ListJob, watchdog: Watchdog) -> TriedLists | None:
                watchdog.enter("list")
                return self.trier.try_list(item.chunk.module, print_pipeline(item.passes))

            def hear(over: Done[ListJob, TriedLists | None]) -> None:
                nonlocal left
                self.spending.done += len(over.item.chunk.names)
                self.tried += left <= 0
                left -= 1
                if over.answer:
                    self.trier.known.update(over.answer.texts)
                    self._take(over.item, over.answer)

            self.spending.spend(work, TriedLists, lambda: next(items, None), hear)

    def _take(self, job: ListJob, tried: TriedLists) -> None:
        for name in job.chunk.names:
            if name in tried.sizes and tried.sizes[name] < self._best[name][0]:
                self._best[name] = tried.sizes[name], job.passes
        total = sum(size for size, _ in self._best.values())
        self.kept(total, self._together)

    def _put_together(self) -> ModuleCandidate | None:
        recipe = self._together()
        # One list for all is what the module was made with already.
        if len(recipe.lists) < 2:
            return None
        made = in_child(
            partial(finish, self.whole.made.begun, recipe, self.trier), PreparedModule | None, LIMITS
        )
        return None if made is None or isinstance(made, ExitStatus) else ModuleCandidate(recipe, made)

    def _together(self) -> ModuleRecipe:
        return replace(self.whole.recipe, lists=tuple(self._groups()))

    def _groups(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each list that is run, as a pipeline, and on which functions."""
        groups: dict[Passes, list[str]] = {}
        for name, (_, passes) in self._best.items():
            groups.setdefault(passes, []).append(name)
        for passes, names in groups.items():
            yield print_pipeline(passes), tuple(names)
