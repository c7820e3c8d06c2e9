"""The trials of a run: the store keeps them, and the run remembers which index each has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count, islice

from planish.core import Candidate, Step, Trial
from planish.store import Store

AHEAD = 500
"""Trials that are read at once where a run is replayed."""
NEAR = 2 * AHEAD
"""Trials that are held in memory at most."""


class Trials:
    """The trials of a run by index; a hash and a number is all that is kept of most of them.

    A stored candidate keeps its index, a new one gets the least free. So a run that was killed fills the gaps
    that it left, as if it had never been, and no index is given twice even where the candidates that are
    proposed have changed.

    Args:
        store: where the run is held for writing.
        run_id: the run.
        steps: step name to class, as the level lists them.
    """

    def __init__(self, store: Store, run_id: str, steps: Mapping[str, type[Step]]) -> None:
        self._store, self._run_id, self._steps = store, run_id, steps
        self._stored: dict[str, int] = {}
        self._under_way: dict[str, int] = {}
        self._near: dict[int, Trial] = {}
        self._free: Iterator[int] = count()
        self._gaps: frozenset[int] = frozenset()
        self._end = self._read_to = 0

    def take_up(self) -> Iterator[Trial]:
        """Give what the store holds of the run, by index; each candidate once.

        Raises:
            StoreError: it is damaged.
        """
        taken: set[int] = set()
        for trial in self:
            taken.add(trial.index)
            if trial.candidate.hash not in self._stored:
                self._stored[trial.candidate.hash] = trial.index
                yield trial
        self._end = max(taken, default=-1) + 1
        self._gaps = frozenset(range(self._end)) - taken
        self._free = chain(sorted(self._gaps), count(self._end))

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def placed(self) -> int:
        """How many candidates have an index; those that have no outcome yet too, or were lost."""
        return len(self._stored) + len(self._under_way)

    def __iter__(self) -> Iterator[Trial]:
        """Read all from the store, by index."""
        return self._store.each_trial(self._run_id, self._steps)

    def has(self, candidate: Candidate) -> bool:
        """Whether a candidate has an outcome."""
        return candidate.hash in self._stored

    @property
    def old(self) -> int:
        """How many there were when the run was taken up."""
        return self._end - len(self._gaps)

    def is_old(self, candidate: Candidate) -> bool:
        """Whether a candidate had an outcome when the run was taken up."""
        index = self._stored.get(candidate.hash, self._end)
        return index < self._end and index not in self._gaps

    def index(self, candidate: Candidate) -> int:
        """Give a candidate's index; the same one whenever it is asked for."""
        name = candidate.hash
        if name in self._stored:
            return self._stored[name]
        if name not in self._under_way:
            self._under_way[name] = next(self._free)
        return self._under_way[name]

    def add(self, trial: Trial) -> None:
        """Note a trial that is stored now."""
        name = trial.candidate.hash
        self._under_way.pop(name, None)
        self._stored[name] = trial.index
        self._hold([trial])

    def of(self, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Give the trials of those candidates that have an outcome, by hash."""
        places = {c.hash: self._stored[c.hash] for c in candidates if self.has(c)}
        found = {place: self._near[place] for place in places.values() if place in self._near}
        if far := {place for place in places.values() if place not in found}:
            if min(far) >= self._read_to:  # a replay goes on so
                far.update(range(min(far), min(far) + AHEAD))
                self._read_to = max(far) + 1
            read = {trial.index: trial for trial in self._read(far)}
            found |= read
            self._hold(read.values())
        return {name: found[place] for name, place in places.items()}

    def proposed(self, place: int) -> Candidate | None:
        """Give what had this index when the run was taken up; None where nothing had it."""
        if place >= self._end or place in self._gaps:
            return None
        if place not in self._near:
            self._hold(self._read(range(place, place + AHEAD)))
        return self._near[place].candidate

    def _read(self, places: Iterable[int]) -> Iterable[Trial]:
        return self._store.trials_at(self._run_id, places, self._steps)

    def _hold(self, trials: Iterable[Trial]) -> None:
        """Keep trials at hand, and let go of those that were taken up first."""
        self._near.update((trial.index, trial) for trial in trials)
        for place in list(islice(self._near, max(0, len(self._near) - NEAR))):
            del self._near[place]
