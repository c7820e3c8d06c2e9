"""A finite space of candidates that were all measured: a search of it waits for no machine.

It stands for the template space that its rows come from. What random search draws are the rows that were
drawn there; a neighbor is one of the rows that differ in the fewest knobs, and a child the row nearest to
what crossing its parents' knobs gives. So many seeds can be searched with, and the best there is is known.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from representations import represented
from searching import AT_ONCE, Setting, trials_of

from planish.core import (
    EMPTY_CONTEXT,
    Cache,
    Candidate,
    FeatureSchema,
    Machine,
    SearchContext,
    Searcher,
    Space,
    Target,
)
from planish.levels.loops.gpu.devices import Gpu

FOLDER = Path(__file__).parent / "recordings"
CACHES = (Cache(1, 48 << 10), Cache(2, 1 << 20), Cache(3, 32 << 20))
WIDE = "x86-avx512"
OPENCL = "opencl:portable"
MACHINES = {
    WIDE: Machine(64, 32, CACHES),
    "x86-avx2": Machine(32, 16, CACHES),
    OPENCL: Machine(32, 16, (Cache(1, 32 << 10), Cache(2, 512 << 10), Cache(3, 32 << 20))),
}
"""What the machine of the recordings has, by back end: its spaces are the same wherever they are searched."""
DEVICES = {OPENCL: Gpu(1, 4096, 512 << 10, 8, 1, processor=True, l2=32 << 20)}
"""The same, of OpenCL devices."""
NEIGHBORS = 12
"""Rows that are a row's neighbors: as many as a template's candidate has for some of its knobs."""


@dataclass(frozen=True)
class Row:
    """A candidate that was measured.

    Args:
        choices: knob to alternative.
        cost: seconds; None where it failed.
        drawn: whether it was drawn by the knobs' weights, and not found by a search.
    """

    choices: Mapping[str, str]
    cost: float | None
    drawn: bool


def save(rows: Sequence[Row], path: Path) -> None:
    """Write rows as compressed JSON lines; equal rows make equal files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(vars(row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def path_of(setting: Setting) -> Path:
    """Tell where the rows of a program on a target are."""
    return FOLDER / f"{setting.text}.jsonl.gz"


def rows_at(path: Path) -> list[Row]:
    """Read rows; none where there is no file."""
    if not path.exists():
        return []
    return [Row(**json.loads(line)) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


@lru_cache(maxsize=64)
def recorded(setting: Setting) -> Recorded:
    """Read the rows of a program on a target."""
    return Recorded(setting, rows_at(path_of(setting)))


class Recorded:
    """The rows of a program on a target, and what is known of them whatever the representation.

    Args:
        setting: which program, and where.
        rows: each candidate once, the default schedule first.
    """

    def __init__(self, setting: Setting, rows: Sequence[Row]) -> None:
        self.setting = setting
        backend = setting.backend or WIDE
        has = DEVICES[backend].features | {"opencl"} if backend in DEVICES else frozenset({backend})
        there = Target("", has, setting.cores, {"backend": backend}, MACHINES[backend])
        self.template = represented(setting.program, there)
        made = {self.template.candidate(row.choices): row for row in reversed(rows)}
        self.candidates = [*made][::-1]
        kept = [made[each] for each in self.candidates]
        self.costs = {c.hash: row.cost for c, row in zip(self.candidates, kept, strict=True)}
        self.drawn = np.flatnonzero([row.drawn for row in kept])
        self.place = {candidate: i for i, candidate in enumerate(self.candidates)}
        self._described: dict[str, NDArray[np.float32]] = {}

    @property
    def best(self) -> float:
        """The least cost."""
        return min(cost for cost in self.costs.values() if cost is not None)

    @cached_property
    def numbers(self) -> NDArray[np.int16]:
        """Number each knob's alternatives; (rows, knobs)."""
        names = [self.template.choices(each) for each in self.candidates]
        columns = [[row.get(knob, "") for row in names] for knob in self.template.knob_names]
        return np.stack([np.unique(c, return_inverse=True)[1] for c in columns], axis=1).astype(np.int16)

    @cached_property
    def near(self) -> NDArray[np.intp]:
        """List each row's neighbors, (rows, `NEIGHBORS`); among equally near ones some, by chance."""
        random = np.random.default_rng(0)
        found = np.empty((len(self.candidates), NEIGHBORS), np.intp)
        for i, row in enumerate(self.numbers):
            apart = (self.numbers != row).sum(axis=1) + random.random(len(self.numbers))
            apart[i] = np.inf
            found[i] = np.argpartition(apart, NEIGHBORS)[:NEIGHBORS]
        return found

    def described(self, representation: str) -> NDArray[np.float32]:
        """Give the features of all rows."""
        if representation not in self._described:
            self._described[representation] = self.template.by(representation).features(self.candidates)
        return self._described[representation]


class RecordedSpace(Space):
    """A recorded space, described in one of the ways of `representations`.

    Args:
        recorded: the rows.
        representation: of candidates.
    """

    def __init__(self, recorded: Recorded, representation: str = "all") -> None:
        self._recorded, self._features = recorded, recorded.described(representation)
        self.schema: FeatureSchema = recorded.template.by(representation).schema

    def start(self) -> Candidate:
        """Give the default schedule."""
        return self._recorded.candidates[0]

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> tuple[Candidate, ...]:  # noqa: ARG002
        """Give the default schedule."""
        return (self.start(),)

    def focused(self, candidates: Sequence[Candidate]) -> RecordedSpace:
        """Give this space, as a template does."""
        del candidates
        return self

    def sample(self, rng: Generator) -> Candidate:
        """Draw one of the rows that were drawn."""
        return self._recorded.candidates[int(rng.choice(self._recorded.drawn))]

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Draw a neighbor."""
        near = self._recorded.near[self._recorded.place[candidate]]
        return self._recorded.candidates[int(near[rng.integers(len(near))])]

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Give the rows nearest to what has each knob of one or the other parent."""
        numbers, place = self._recorded.numbers, self._recorded.place
        first, second = numbers[place[a]], numbers[place[b]]
        side = rng.integers(2, size=len(first)).astype(bool)
        wanted = np.where(side, first, second), np.where(side, second, first)
        nearest = [int(np.argmin((numbers != each).sum(axis=1))) for each in wanted]
        one, other = (self._recorded.candidates[number] for number in nearest)
        return one, other

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates; (candidates, width of the schema)."""
        return self._features[[self._recorded.place[each] for each in candidates]]


def curve_of(searcher: Searcher, space: Recorded, trials: int) -> list[float]:
    """Search a recorded space; return the share of its best after each trial."""
    best, curve = math.inf, list[float]()
    while len(curve) < trials and (asked := searcher.ask(min(AT_ONCE, trials - len(curve)))):
        costs = [space.costs[candidate.hash] for candidate in asked]
        searcher.tell(trials_of(asked, costs, len(curve)))
        for cost in costs:
            best = best if cost is None else min(best, cost)
            curve.append(space.best / best)
    return curve
