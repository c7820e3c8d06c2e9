"""Packages go through the workers side by side: prepared by one, then compiled by all, a few files each."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from planish.core import PlanishError
from planish.corpus.crew import crew
from planish.corpus.manifest import key_of
from planish.corpus.room import is_no_room
from planish.corpus.source import Package, Prepared
from planish.corpus.unit import Crop, Recipe, Unit, harvest

_FILES_AT_ONCE = 8  # few enough that Ctrl-C is quick, many enough that sending them costs nothing
_AHEAD = 2  # packages that are prepared before a worker needs them
_TICK_S = 0.5


@dataclass
class Passage:
    """A package on its way through the workers.

    Args:
        package: it.
        version: of its sources.
        parts: what came of its files: by their order, as far as it is there.
        missing: how many parts are not there yet; None while it is prepared.
        error: why it cannot be had; empty where it can.
        begun: when, by the monotonic clock.
    """

    package: Package
    version: str = ""
    parts: dict[int, Crop] = field(default_factory=dict[int, Crop])
    missing: int | None = None
    error: str = ""
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return time.monotonic() - self.begun

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return bool(self.error) or self.missing == 0

    def crop(self) -> Crop:
        """Put the parts together, in the order of the files."""
        whole = Crop()
        for part in sorted(self.parts):
            whole.add(self.parts[part])
        return whole


@dataclass(frozen=True)
class Pipeline:
    """How packages are worked on.

    Args:
        recipe: how functions are made.
        system: where the compiler's own headers are.
        sources: a folder for packages' files.
        jobs: how many processes.
    """

    recipe: Recipe
    system: Sequence[Path]
    sources: Path
    jobs: int

    def run(self, packages: Sequence[Package]) -> Generator[Passage]:
        """Work on packages, and give each when it is over.

        A worker that dies takes the others along; the packages under way are then tried again one by one, and
        one at which a worker dies again is given up.

        Yields:
            A passage that is over; or one that is not, when there is news or half a second has passed.

        Raises:
            OSError: the disk is full.
        """
        waiting = deque(packages)
        suspects: deque[Package] = deque()
        while waiting or suspects:
            alone = bool(suspects)
            queue = deque([suspects.popleft()]) if alone else waiting
            under_way: list[Passage] = []
            try:
                with crew(self.jobs) as pool:
                    yield from self._drive(queue, pool, under_way)
            except BrokenProcessPool:
                if alone:
                    yield Passage(under_way[0].package, error="a worker died of it")
                else:
                    suspects += [passage.package for passage in under_way]

    def _drive(
        self, waiting: deque[Package], pool: ProcessPoolExecutor, under_way: list[Passage]
    ) -> Generator[Passage]:
        expected: dict[Future[Prepared | Crop], tuple[Passage, int]] = {}
        while waiting or under_way:
            while waiting and len(under_way) < self.jobs + _AHEAD:
                passage = Passage(waiting.popleft())
                under_way.append(passage)
                expected[pool.submit(_prepare, passage.package, *self._place(passage.package))] = (passage, 0)
            for future in wait(expected, _TICK_S, FIRST_COMPLETED).done:
                passage, part = expected.pop(future)
                result = _result(future, passage)
                if isinstance(result, Prepared):
                    expected.update(self._compile(passage, result, pool))
                elif result is not None and passage.missing is not None:
                    passage.parts[part] = result
                    passage.missing -= 1
                if passage.is_over:
                    under_way.remove(passage)
                yield passage
            yield from under_way[:1]

    def _place(self, package: Package) -> tuple[Path, Sequence[Path]]:
        return self.sources / key_of(package.kind, package.name), self.system

    def _compile(
        self, passage: Passage, prepared: Prepared, pool: ProcessPoolExecutor
    ) -> dict[Future[Prepared | Crop], tuple[Passage, int]]:
        starts = range(0, len(prepared.units), _FILES_AT_ONCE)
        passage.version, passage.missing = prepared.version, len(starts)
        units = [prepared.units[start : start + _FILES_AT_ONCE] for start in starts]
        return {pool.submit(_harvest, some, self.recipe): (passage, part) for part, some in enumerate(units)}


def _prepare(package: Package, work: Path, system: Sequence[Path]) -> Prepared | Crop:
    return package.prepare(work, system)


def _harvest(units: Sequence[Unit], recipe: Recipe) -> Prepared | Crop:
    return harvest(units, recipe)


def _result(future: Future[Prepared | Crop], passage: Passage) -> Prepared | Crop | None:
    try:
        return future.result()
    except PlanishError as error:  # of this package alone
        passage.error = error.message
    except OSError as error:
        if is_no_room(error):
            raise
        passage.error = str(error)
    return None
