"""Packages go through the workers side by side: prepared by one, then compiled by all, a few files each."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from planish.core import PlanishError
from planish.corpus.manifest import key_of
from planish.corpus.source import Package, Prepared
from planish.corpus.unit import CorpusRecipe, Crop, SourceUnit, harvest
from planish.sandbox import Done, ForkLimits, ForkPool, Watchdog
from planish.sandbox.scratch import is_no_room

_FILES_AT_ONCE = 8  # few enough that Ctrl-C is quick, many enough that sending them costs nothing
_AHEAD = 2  # packages that are prepared before a worker needs them
_TICK_S = 0.5
_LIMITS = ForkLimits(memory_bytes=0)  # compilers have limits of their own


@dataclass(eq=False)
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


@dataclass(frozen=True, eq=False)
class _Part:
    """What one worker does at once: prepare a package, or compile some of its files.

    Args:
        passage: of the package.
        place: of these files among all; 0 where it is prepared.
        units: the files; None where it is prepared.
    """

    passage: Passage
    place: int = 0
    units: Sequence[SourceUnit] | None = None


@dataclass(frozen=True)
class Pipeline:
    """How packages are worked on.

    Args:
        recipe: how functions are made.
        system: where the compiler's own headers are.
        sources: a folder for packages' files.
        jobs: how many processes.
    """

    recipe: CorpusRecipe
    system: Sequence[Path]
    sources: Path
    jobs: int

    def run(self, packages: Sequence[Package]) -> Generator[Passage]:
        """Work on packages, and give each when it is over; one at which a worker dies is given up.

        Yields:
            A passage that is over; or one that is not, when there is news or half a second has passed.

        Raises:
            OSError: the disk is full.
        """
        waiting, under_way = deque(packages), list[Passage]()
        with closing(ForkPool(self._work, Prepared | Crop | str, self.jobs, limits=_LIMITS)) as pool:
            while waiting or under_way:
                while waiting and len(under_way) < self.jobs + _AHEAD:
                    under_way.append(Passage(waiting.popleft()))
                    pool.add([_Part(under_way[-1])])
                for done in pool.over(_TICK_S):
                    passage = done.item.passage
                    if passage not in under_way:  # another part has failed
                        continue
                    pool.add(_taken(done))
                    if passage.is_over:
                        under_way.remove(passage)
                    yield passage
                yield from under_way[:1]

    def _work(self, part: _Part, _: Watchdog) -> Prepared | Crop | str:
        """Give what comes of a part, or why nothing does; in a worker."""
        package = part.passage.package
        try:
            if part.units is not None:
                return harvest(part.units, self.recipe)
            return package.prepare(self.sources / key_of(package.kind, package.name), self.system)
        except PlanishError as error:  # of this package alone
            return error.message
        except OSError as error:
            if is_no_room(error):
                raise
            return str(error)


def _taken(done: Done[_Part, Prepared | Crop | str]) -> Sequence[_Part]:
    """Take what came of a part; gives those that follow from it."""
    part, passage = done.item, done.item.passage
    match done.answer:
        case Prepared(version, units):
            starts = range(0, len(units), _FILES_AT_ONCE)
            passage.version, passage.missing = version, len(starts)
            some = [units[start : start + _FILES_AT_ONCE] for start in starts]
            return [_Part(passage, place, each) for place, each in enumerate(some)]
        case Crop() as crop:
            assert passage.missing is not None
            passage.parts[part.place] = crop
            passage.missing -= 1
        case why:
            passage.error = why or "a worker died of it"
    return ()
