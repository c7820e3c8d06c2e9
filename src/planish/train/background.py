"""Learning in the background: programs of a level are recorded, and what its searches begin with is fitted.

The trials are in a store, so that recording goes on where it was stopped. After every few programs a model or
a table is fitted to all of them. Searches use it only where it is better than what they would use without it
on programs to which it was not fitted.

For `loops` a cost model is fitted. For `llvm` it is a short list of pass lists, chosen by greedy cover among
the coreset's and those that were best on recorded modules; for `hlo`, what kinds of edits gained on recorded
modules. Either is compared with what is in use without it a fifth of the programs at a time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    Measured,
    Objective,
    PlanishError,
    Program,
    Trial,
    content_hash,
    unknown,
)
from planish.core.front import bounds, growth_of
from planish.core.installation import install_command
from planish.core.own_tables import table_path, write_table
from planish.core.registry import level_named
from planish.levels.hlo.edit_gains import (
    OWN_GAINS,
    GainRow,
    Kinds,
    by_expected_gain,
    gain_rows,
    kinds_of,
    module_profile,
    shipped_gains,
)
from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.llvm.passes.pipeline import Pass, passes_of
from planish.levels.llvm.passes.space import OWN_LISTS
from planish.models.model_files import SavedModel, models_folder
from planish.models.provenance import HeldOut
from planish.sandbox.fork_pool import forked
from planish.search.minimization import policy_proposals
from planish.train.corpus.shards import Row
from planish.train.labeling.choice import Costing, efforts, greedy_cover
from planish.train.labeling.function_search import observed_space
from planish.train.labeling.label_plan import LabelBench, LabelPlan, bench
from planish.train.samples import hash_number
from planish.tuning.batch import RecordedProgram
from planish.tuning.settings import Settings
from planish.tuning.transfer import KnownTask

SEED = 2609
"""Of the programs of `loops`; the shipped model has learnt from those of another one."""
HELD_OUT = ("bzip2", "lua5.4", "redis", "sqlite3", "zlib")
"""Packages of the sample of functions that benchmarks use; nothing is fitted to them."""
LEVELS = ("loops", "llvm", "hlo")
# A third of the trials is random, the others are near what is good. Without a model: what one holds for good
# would be most of what the next one learns from.
LOOPS = Settings("loops", searcher="genetic", searcher_options={"population": 32, "model": "none"})
"""Search of each program of `loops`."""


@dataclass(frozen=True)
class Fitted:
    """Result of a fit.

    Args:
        what: it is: "a model".
        programs: to how many it was fitted.
        held_out: its comparison on programs to which it was not fitted; None where there was none.
        is_used: whether searches use it.
    """

    what: str
    programs: int
    held_out: HeldOut | None
    is_used: bool


@dataclass(frozen=True)
class LearningPlan:
    """Plan of learning for a level.

    Args:
        settings: of the search of each program.
        trials: of each program.
        first: programs after which something is fitted for the first time.
        every: programs after which it is fitted again.
        fit: fits to what is recorded, and writes what searches use.
    """

    settings: Settings
    trials: int
    first: int
    every: int
    fit: Callable[[Sequence[KnownTask]], Fitted]


def plan_of(level: str) -> LearningPlan:
    """Return the plan of a level.

    Raises:
        PlanishError: nothing is learnt for it so, or XGBoost is not installed, which `loops` needs.
    """
    match level:
        case "loops":
            from planish.models.trees import can_grow

            if not can_grow():
                what = "models are trained by XGBoost, which is not installed"
                raise PlanishError(what, install_command("learn"))
            return LearningPlan(LOOPS, 96, 30, 10, _fit_model)
        case "llvm":
            # Without the policy: the coreset is tried as a whole, and beyond it what no list had.
            return LearningPlan(Settings(level, searcher_options={"policy": "none"}), 128, 20, 20, _fit_lists)
        case "hlo":
            return LearningPlan(Settings(level), 32, 5, 1, _fit_gains)
        case _:
            raise unknown("nothing is learnt in the background for the level", level, LEVELS)


def programs_of(level: str, sources: Sequence[str]) -> Iterator[Program]:
    """Yield the programs that are recorded: those named, or else drawn ones.

    Args:
        level: of them.
        sources: texts or files; of `llvm` each function of a module is a program.

    Raises:
        PlanishError: none is named, and the level `hlo` has none of its own; or one cannot be read.
    """
    if not sources:
        return _usual_programs(level)
    loaded = (level_named(level).load(source, {}) for source in sources)
    if level != "llvm":
        return loaded
    return chain.from_iterable(level_named(level).functions(module).values() for module in loaded)


def _usual_programs(level: str) -> Iterator[Program]:
    match level:
        case "loops":
            from planish.train.cost_models import random_programs

            return random_programs(SEED)
        case "llvm":
            from planish.train.corpus.reader import read_corpus

            rows = (row for row in read_corpus() if row.split == "train" and row.package not in HELD_OUT)
            return (level_named(level).load(row.ir, {}) for row in rows)
        case _:
            what = f"there are no random programs of the level '{level}' to learn from"
            raise PlanishError(what, "Name modules of yours: planish learn --level hlo FILE...")


def _fit_model(tasks: Sequence[KnownTask]) -> Fitted:
    from planish.train.cost_models import fit_recorded

    model: SavedModel = fit_recorded(tasks)
    is_used = model.held_out is None or not model.held_out.is_worse
    return Fitted("a model", model.programs, model.held_out, is_used)


def _fit_lists(tasks: Sequence[KnownTask]) -> Fitted:

    table = fit_lists(tasks)
    table.keep()
    return Fitted("lists", table.programs, table.held_out, table.held_out.is_better)


def _fit_gains(tasks: Sequence[KnownTask]) -> Fitted:

    table = fit_gains(tasks)
    table.keep()
    return Fitted("gains of edits", table.programs, table.held_out, table.held_out.is_better)


def default_store() -> Path:
    """Return the store of recorded programs: beside the user's models, apart from the user's runs."""
    return models_folder().parent / "learned.db"


def improve(
    recorded: Iterable[RecordedProgram], tasks: Callable[[], Sequence[KnownTask]], plan: LearningPlan
) -> Iterator[tuple[RecordedProgram | None, Fitted | None]]:
    """Fit after every few programs that are recorded, and at the end to those that came after that.

    Args:
        recorded: programs, each when it is in the store.
        tasks: reads what the store knows of the level by now.
        plan: of the level.

    Yields:
        Each program when it is recorded, with what was fitted then; None: nothing was due. At the end None,
        with what was fitted to the rest, unless there are too few programs.

    Raises:
        PlanishError: what is fitted cannot be written.
    """
    is_due = False
    for one in recorded:
        is_due = one.programs >= plan.first and (one.programs - plan.first) % plan.every == 0
        yield one, plan.fit(tasks()) if is_due else None
    # Where nothing was left to record, too: an earlier command may have ended before it had fitted.
    if not is_due and len(known := tasks()) >= plan.first:
        yield None, plan.fit(known)


# Tables

FOLDS = 5
FIRST = 8
"""Trials of a search that are compared: lists after -Oz, or patches after the unchanged module."""
WINNERS = 24
"""Lists that were best on recorded modules and are candidates for those to begin with."""
_OBJECTIVE = "instructions"
_Passes = tuple[str, ...]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OwnTable:
    """A table that was fitted.

    Args:
        name: of its file.
        version: of the level.
        rows: what it holds.
        programs: to how many it was fitted.
        held_out: its comparison on programs to which tables were not fitted.
    """

    name: str
    version: str
    rows: Any
    programs: int
    held_out: HeldOut

    def keep(self) -> None:
        """Write it for searches where it is better; else remove an earlier one, of which this is the update.

        Raises:
            PlanishError: it cannot be written.
        """
        path = table_path(self.name)
        try:
            if self.held_out.is_better:
                write_table(self.name, self.version, self.rows, self.held_out.text)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise PlanishError(f"cannot write {path}: {error.strerror}", "Free space there.") from error


def _fold(text: str) -> int:
    """Return the fold of a program: the same whatever else is recorded."""
    return hash_number(text) % FOLDS


@dataclass(frozen=True)
class _Module:
    """A recorded module of `llvm`.

    Args:
        row: it, as labeling reads functions.
        best: the list that was best on it; None where that is -Oz.
        saved: the logarithm of -Oz's cost over that list's.
    """

    row: Row
    best: _Passes | None
    saved: float


def fit_lists(tasks: Sequence[KnownTask]) -> OwnTable:
    """Choose the lists that searches of `llvm` begin with.

    Every list of the coreset, and those that were best on most modules, is run on each module.

    Args:
        tasks: of the level, as `known_tasks` returns them; those that count instructions are used.

    Raises:
        PlanishError: no task counts instructions, or no list saves anything on more than one fifth.
    """
    modules = [module for task in tasks if (module := _module(task))]
    if not modules:
        raise PlanishError("the store has no module whose instructions were counted", "Tune some first.")
    won = Counter[_Passes]()
    for module in modules:
        if module.best:
            won[module.best] += 1 + round(100 * module.saved)
    lists = list(dict.fromkeys([*load_coreset(), *(passes for passes, _ in won.most_common(WINNERS))]))
    made = bench(LabelPlan(jobs=1))
    kept, baseline, costs = _costs(made, modules, lists)
    folds, effort = np.array([_fold(module.row.ir) for module in kept]), efforts(lists)
    best, rival = baseline.copy(), baseline.copy()
    for fold in range(FOLDS):
        mine, others = folds == fold, [kept[i] for i in np.flatnonzero(folds != fold)]
        known = {*load_coreset(), *(module.best for module in others)}
        usable = np.array([i for i, passes in enumerate(lists) if passes in known])
        chosen = usable[greedy_cover(costs[~mine][:, usable], baseline[~mine], FIRST, effort[usable])].astype(
            int
        )
        best[mine] = np.minimum(baseline[mine], costs[mine][:, chosen].min(axis=1, initial=np.inf))
    place = {passes: index for index, passes in enumerate(lists)}
    for index, module in enumerate(kept):
        first = [place[passes] for passes in _proposed(made, module) if passes in place]
        rival[index] = min(baseline[index], costs[index, first].min(initial=np.inf))
    saved, other = (float(1 - each.sum() / baseline.sum()) for each in (best, rival))
    measure = f"share saved by the first {FIRST} lists"
    held_out = HeldOut(len(kept), measure, saved, "what searches begin with now", other)
    order = greedy_cover(costs, baseline, FIRST, effort)
    rows = [list(lists[index]) for index in order]
    return OwnTable(OWN_LISTS, tasks[0].level.version, rows, len(kept), held_out)


def _module(task: KnownTask) -> _Module | None:
    """Read what a task found; None where it is not a module, or counts no instructions."""
    if task.objective.name != _OBJECTIVE:
        return None
    try:
        bound = task.stored.bind(task.level.read(task.program, task.stored.target))
    except PlanishError:
        return None
    baseline, costs = task.level.baseline(bound), dict[Candidate, float]()
    for trial in task.trials():
        cost = trial.cost(task.objective)
        if cost is not None and all(isinstance(step, Pass) for step in trial.candidate.steps):
            costs[trial.candidate] = cost
    if not costs.get(baseline):
        return None
    best = min(costs, key=lambda one: costs[one])
    saved = math.log(costs[baseline] / max(costs[best], 1.0))
    ir = bound.program.ir
    origin = content_hash(ir), "recorded", "", "", "", "unknown"
    row = Row(*origin, "ir", "train", ir, int(costs[baseline]), len(ir), 0)
    return _Module(row, passes_of(best) if saved > 0 else None, saved)


def _costs(
    made: LabelBench, modules: Sequence[_Module], lists: Sequence[_Passes]
) -> tuple[list[_Module], _Floats, _Floats]:
    """Run lists on modules; those on which -Oz fails are left out."""
    answer = tuple[int | None, list[int | None]]
    rows = {module.row.identity: module for module in modules}
    work, at_once = Costing(made, lists), made.at_once(len(lists))
    done = forked([module.row for module in rows.values()], work, answer, 1, at_once=at_once)
    known = {
        one.item.identity: (first, costs)
        for one in done
        if one.answer and (first := one.answer[0]) and (costs := one.answer[1])
    }
    kept = [module for identity, module in rows.items() if identity in known]
    found = [known[module.row.identity] for module in kept]
    baseline = np.array([first for first, _ in found], float)
    costs = np.array([[np.inf if cost is None else cost for cost in each] for _, each in found], float)
    return kept, baseline, costs.reshape(len(kept), len(lists))


def _proposed(made: LabelBench, module: _Module) -> Sequence[_Passes]:
    """Return the lists after -Oz that a search begins with now: the policy's, or else the coreset's."""
    space = observed_space(made.bindings, made.space.elements, made.baseline, module.row.ir)
    proposals = policy_proposals(space, "auto", FIRST, EMPTY_CONTEXT)
    try:
        found = [passes_of(candidate) for candidate in proposals or ()]
    except (IRError, PassError):
        found = []
    return [*dict.fromkeys([*found, *load_coreset()])][:FIRST]


@dataclass(frozen=True)
class MeasuredPatches:
    """Patches of a module that were measured.

    Args:
        text: of the module.
        objectives: by which.
        baseline: values of the unchanged module.
        patches: in the order in which they were tried, each with its values; None where it failed.
    """

    text: str
    objectives: Sequence[Objective]
    baseline: Sequence[float]
    patches: Mapping[Candidate, Sequence[float] | None]

    def gain(self, values: Sequence[float] | None) -> float:
        """Return the gain of a patch; see `planish.levels.hlo.edit_gains.GainRow`."""
        if values is None:
            return 0.0
        limit = bounds(tuple(self.baseline), self.objectives)[1]
        room = limit - self.baseline[1] or 1.0
        rise = max(0.0, values[1] - self.baseline[1]) / room
        better = max(0.0, self.baseline[1] - values[1]) / room
        faster = max(0.0, math.log(self.baseline[0] / values[0]))
        return faster * max(0.0, 1 - rise) + min(better, 1.0)

    def row(self) -> dict[str, Any]:
        """Return the row of a table: the module's operations, and the mean gain of each kind of patch."""
        by_kinds = defaultdict[Kinds, list[float]](list)
        for patch, values in self.patches.items():
            by_kinds[kinds_of(patch)].append(self.gain(values))
        gains = [[kinds, round(fmean(each), 3)] for kinds, each in sorted(by_kinds.items())]
        digest = content_hash(self.text)
        return {"hash": digest, "operations": module_profile(self.text), "gains": gains}

    def growth(self, order: Sequence[Candidate]) -> list[float]:
        """Return by how much the hypervolume has grown after each patch of an order."""
        trials, found = [self._trial(Candidate(), self.baseline)], list[float]()
        start = growth_of(trials, self.objectives, Candidate()).volume or 0.0
        for patch in order:
            if (values := self.patches[patch]) is not None:
                trials.append(self._trial(patch, values))
            found.append((growth_of(trials, self.objectives, Candidate()).volume or 0.0) - start)
        return found

    def _trial(self, patch: Candidate, values: Sequence[float]) -> Trial:
        names = (objective.name for objective in self.objectives)
        return Trial(patch, Measured(dict(zip(names, values, strict=True))))


def fit_gains(tasks: Sequence[KnownTask]) -> OwnTable:
    """Make the table of gains of kinds of edits of recorded modules of `hlo`.

    Args:
        tasks: of the level, as `known_tasks` returns them.

    Raises:
        PlanishError: there are none with two objectives and a patch that was measured.
    """
    modules = [module for task in tasks if (module := _patches(task))]
    if not modules:
        raise PlanishError("the store has no module with patches that were measured", "Tune some first.")
    folds, ours, theirs = [_fold(module.text) for module in modules], list[float](), list[float]()
    for module, fold in zip(modules, folds, strict=True):
        others = [each.row() for each, other in zip(modules, folds, strict=True) if other != fold]
        for rows, shares in (([], theirs), (gain_rows(others), ours)):
            share = _share(module, [*shipped_gains(), *rows])
            shares += [] if share is None else [share]
    measure = f"share of the hypervolume's growth after {FIRST} patches"
    one, other = (fmean(shares) if shares else 0.0 for shares in (ours, theirs))
    held_out = HeldOut(max(1, len(ours)), measure, one, "what comes with planish", other)
    rows = [module.row() for module in modules]
    return OwnTable(OWN_GAINS, tasks[0].level.version, rows, len(modules), held_out)


def _share(module: MeasuredPatches, rows: Sequence[GainRow]) -> float | None:
    """Return which share of what all patches grow the first ones grow; None where none does."""
    growth = module.growth(by_expected_gain(module.text, [*module.patches], rows))
    return growth[:FIRST][-1] / growth[-1] if growth and growth[-1] > 0 else None


def _patches(task: KnownTask) -> MeasuredPatches | None:
    objectives = task.stored.objectives
    names = [objective.name for objective in objectives]
    values = {
        trial.candidate: [trial.outcome.values[name] for name in names]
        if isinstance(trial.outcome, Measured)
        else None
        for trial in task.trials()
    }
    baseline = values.pop(Candidate(), None)
    if len(objectives) != 2 or baseline is None or not values:
        return None
    return MeasuredPatches(task.program, objectives, baseline, values)
