"""Search over the parts of a program, such as functions: settings that join them, then each part by itself.

`SettingSearch` finds the settings, of which many are tried at once where they change other parts. `Parts`
then tries transformations on groups of parts, remembers the best of each part, and combines them: now and
then, and at the end of the search. The phases are divided by the seconds that trials took: they are stored
with the trials, so that a resumed search divides them as before.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from random import Random
from typing import Annotated

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    HasParts,
    Measured,
    Objective,
    PartGroup,
    SearchContext,
    Trial,
)
from planish.search.factory import Option
from planish.search.rounds import TrialRounds, TrialRoundSearcher, measured_of

Costs = Mapping[str, float]
"""A part's name to its cost."""
Settings = tuple[tuple[str, str], ...]
"""Parts and what they are set to, where that is not the default; sorted."""
Change = tuple[str, str]
"""A part, and what it is set to; "default" takes a setting back."""

_PASSES = 3


@dataclass
class SettingSearch:
    """Finds the settings of parts that are best together.

    A setting changes its own part and those that depend on it. Parts whose dependents are apart are set in
    one candidate, and each is judged by its own dependents. What is found so is combined now and then (a
    candidate without changes): only that shows whether it holds. Where it does not, each change is tried by
    itself.

    Args:
        space: lists changes, and what they reach.
        costs: of the program's parts without settings.
    """

    space: HasParts
    costs: dict[str, float]
    confirmed: dict[str, str] = field(default_factory=dict[str, str])
    _kept: dict[str, float] = field(init=False)
    _chosen: dict[str, str] = field(init=False)
    _waiting: list[Change] = field(default_factory=list[Change])
    _under_way: dict[Change, frozenset[str]] = field(default_factory=dict[Change, frozenset[str]])
    _since: list[Change] = field(default_factory=list[Change])
    _alone: set[Change] = field(default_factory=set[Change])
    _combining: bool = False
    _pass: int = 0
    _gained: bool = True

    def __post_init__(self) -> None:
        self._kept, self._chosen = dict(self.costs), dict(self.confirmed)

    @property
    def total(self) -> float:
        """Return the known costs of the parts."""
        return sum(self.costs.values())

    @property
    def settings(self) -> Settings:
        """Return the changes found so far; they may not have been measured together yet."""
        return _sorted(self._chosen)

    @property
    def is_confirmed(self) -> bool:
        """Return whether all of them were measured in one candidate."""
        return not self._since

    def next(self) -> tuple[tuple[Change, ...], Settings] | None:
        """Return changes to try together, and the settings with them; None where nothing is left now."""
        if self._combining:
            return None
        if not self._waiting and not self._under_way:
            if self._since:
                self._combining = True
                return (), self.settings
            if self._gained and self._pass < _PASSES:
                self._pass, self._gained = self._pass + 1, False
                self._waiting = list(self.space.changes(self._chosen, self.costs))
        batch = self._apart()
        return (tuple(batch), _sorted({**self._chosen, **dict(batch)})) if batch else None

    def tell(self, changes: tuple[Change, ...], costs: Costs | None) -> None:
        """Record the costs of the parts with some changes; None where the candidate failed."""
        regions = {change: self._under_way.pop(change) for change in changes}
        if not changes:
            self._confirm(costs)
        elif costs is None:
            self._retry(changes if len(changes) > 1 else ())
        # Alone: the sum of all parts decides, and no guess about regions is needed.
        elif len(changes) == 1 and not self._under_way and not self._since:
            if sum(costs.values()) < self.total:
                self._accept(changes[0], costs, {*self.costs, *costs})
                self._keep()
        else:
            self._judge(regions, costs)

    def _apart(self) -> list[Change]:
        """Select changes that do not affect the same parts; one that must be tried alone is the only one."""
        busy = set[str]().union(*self._under_way.values())
        batch: list[Change] = []
        later: list[Change] = []
        single = bool(self._under_way) and not self._alone.isdisjoint(self._under_way)
        for change in self._waiting:
            region = self.space.changed_by(change[0], self.costs)
            among = bool(batch or self._under_way)
            if single or not busy.isdisjoint(region) or (change in self._alone and among):
                later.append(change)
                continue
            busy |= region
            batch.append(change)
            self._under_way[change] = region
            single = change in self._alone
        self._waiting = later
        return batch

    def _judge(self, regions: Mapping[Change, frozenset[str]], costs: Costs) -> None:
        """Accept the changes whose own parts become less than what grows for them elsewhere."""
        known = frozenset[str]().union(*regions.values(), *self._under_way.values())
        # What grew outside of all regions may follow from any change.
        grown = {name for name in costs if costs[name] > self.costs.get(name, 0)} - known
        for change, region in regions.items():
            # Only what depends on the region can follow from its change; each change above it is blamed, for
            # it is not known which one it was.
            touched = region | (grown & self.space.below(region))
            if _sum(costs, touched) < _sum(self.costs, touched):
                self._accept(change, costs, touched)

    def _accept(self, change: Change, costs: Costs, touched: Iterable[str]) -> None:
        name, value = change
        self._gained = True
        self._since.append(change)
        if value == "default":
            self._chosen.pop(name, None)
        else:
            self._chosen[name] = value
        for each in touched:
            self.costs.pop(each, None)
            if each in costs:
                self.costs[each] = costs[each]

    def _confirm(self, costs: Costs | None) -> None:
        self._combining = False
        if costs is not None and sum(costs.values()) < sum(self._kept.values()):
            self.costs = dict(costs)
            self._keep()
            return
        changes, self._since = self._since, []
        self.costs, self._chosen = dict(self._kept), dict(self.confirmed)
        self._retry(changes)

    def _keep(self) -> None:
        self._kept, self.confirmed, self._since = dict(self.costs), dict(self._chosen), []

    def _retry(self, changes: Iterable[Change]) -> None:
        """Have changes tried by themselves, once: what fails by itself, too, is given up."""
        again = [change for change in changes if change not in self._alone]
        self._waiting += again
        self._alone.update(again)


def _sum(costs: Costs, names: Iterable[str]) -> float:
    return sum(costs.get(name, 0) for name in names)


def _sorted(chosen: Mapping[str, str]) -> Settings:
    return tuple(sorted((name, value) for name, value in chosen.items() if value != "default"))


USUAL_S = 20.0
"""Seconds of a search that has no limit of time, of which the share for settings is taken."""
_FIRST, _MOST = 16, 256
"""Candidates of the first round on groups, and of the largest."""
_SPARSE = 8.0
"""Times of one evaluation after which whole programs are first combined; the time doubles with each."""


@dataclass(frozen=True)
class _Job:
    """A transformation, and the group of parts that it is tried on."""

    transformation: str
    group: PartGroup


@dataclass(frozen=True)
class _Whole:
    """A whole program, by the usual transformation alone, that was measured."""

    settings: Settings
    total: float
    costs: Costs


class Parts(TrialRoundSearcher):
    """Settings that join the parts of a program first, then the best transformation for each part."""

    needs = HasParts

    def __init__(
        self,
        space: HasParts,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,
        *,
        settings: Annotated[
            float, Option("share of the time that the start and settings may take", least=0, most=1)
        ] = 0.45,
    ) -> None:
        self._space, self._objective, self._seed = space, objectives[0], seed
        self._settings_s = settings * (context.seconds or USUAL_S)
        self._best: _Whole | None = None
        self._whole_s = 0.0
        self._chosen: dict[str, tuple[float, str]] = {}
        self._jobs: dict[str, _Job] = {}
        super().__init__(self._rounds_of_parts())

    @property
    def conclusion_s(self) -> float:
        """Return how long a whole program took."""
        return self._whole_s

    def conclude(self) -> Sequence[Candidate]:
        """Return the best transformations of all parts combined, those of an unfinished round too."""
        chosen = dict(self._chosen)
        self._learn(chosen, self._results)
        return [self._combined(chosen)] if chosen else []

    def _rounds_of_parts(self) -> TrialRounds:
        start = self._space.start()
        trial = (yield [start]).get(start.hash)
        self._whole_s = _seconds(trial)
        if not self._take((), trial):  # it failed, or has no parts
            return
        # What is under way when the time ends is lost: transformations need some time too.
        if self._whole_s < self._settings_s:
            yield from self._search_settings()
        yield from self._search_transformations()

    def _search_settings(self) -> TrialRounds:
        assert self._best
        search, spent = SettingSearch(self._space, dict(self._best.costs)), self._whole_s
        while spent < self._settings_s and (found := search.next()):
            changes, settings = found
            trial = yield from self._measure_whole(settings)
            spent += _seconds(trial)
            search.tell(changes, self._take(settings, trial))
        if not search.is_confirmed:
            trial = yield from self._measure_whole(search.settings)
            self._take(search.settings, trial)

    def _measure_whole(
        self, settings: Settings
    ) -> Generator[Iterable[Candidate], Mapping[str, Trial | None], Trial | None]:
        candidate = self._space.combined(dict(settings), {})
        return (yield [candidate]).get(candidate.hash)

    def _take(self, settings: Settings, trial: Trial | None) -> Costs | None:
        """Record a whole program; return what its parts cost, None where it failed."""
        if (measured := measured_of(trial)) is None:
            return None
        cost, costs = self._objective.cost(measured.values[self._objective.name]), self._costs(measured)
        if costs and (self._best is None or cost < self._best.total):
            self._best = _Whole(settings, cost, costs)
        return costs

    def _costs(self, outcome: Measured) -> Costs:
        return {name: self._objective.cost(value) for name, value in outcome.parts.items()}

    def _search_transformations(self) -> TrialRounds:
        assert self._best
        jobs, size = self._all_jobs(self._space.groups(self._best.costs)), _FIRST
        spent, due = 0.0, _SPARSE * self._whole_s
        while batch := list(islice(jobs, size)):
            combined: list[Candidate] = []
            if spent >= due and self._chosen:
                combined, due = [self._combined(self._chosen)], 2 * spent
            settings = dict(self._best.settings)
            candidates = [
                self._space.combined(settings, {job.transformation: job.group.parts}) for job in batch
            ]
            self._jobs = {candidate.hash: job for candidate, job in zip(candidates, batch, strict=True)}
            trials = yield [*combined, *candidates]
            self._learn(self._chosen, trials)
            self._jobs = {}
            spent += sum(_seconds(trial) for trial in trials.values())
            size = min(2 * size, _MOST)

    def _all_jobs(self, groups: Sequence[PartGroup]) -> Iterator[_Job]:
        """Yield what is to be tried, where most is expected for the time first; it never ends."""
        if not groups:
            return
        # Without the first: the program was measured with it.
        known = self._space.transformations()[1:]
        worth = [(saves * group.worth, _Job(text, group)) for text, saves in known for group in groups]
        yield from (job for _, job in sorted(worth, key=lambda each: -each[0]))
        for number in count():
            text = self._space.draw(Random(f"{self._seed} {number}"))
            yield from (_Job(text, group) for group in groups)

    def _learn(self, chosen: dict[str, tuple[float, str]], trials: Mapping[str, Trial | None]) -> None:
        """Record the parts that became better than they were by what was tried on them before."""
        for name, job in self._jobs.items():
            if (measured := measured_of(trials.get(name))) is None:
                continue
            assert self._best
            costs = self._costs(measured)
            for part in job.group.parts:
                if part not in costs:
                    continue
                before, _ = chosen.get(part, (self._best.costs[part], ""))
                if costs[part] < before:
                    chosen[part] = costs[part], job.transformation

    def _combined(self, chosen: Mapping[str, tuple[float, str]]) -> Candidate:
        assert self._best
        transformations: dict[str, list[str]] = {}
        for part, (_, text) in chosen.items():
            transformations.setdefault(text, []).append(part)
        return self._space.combined(dict(self._best.settings), transformations)


def _seconds(trial: Trial | None) -> float:
    """Return the seconds of a trial, without its wait for the machine."""
    return sum(s for stage, s in trial.seconds.items() if stage != "wait") if trial else 0.0
