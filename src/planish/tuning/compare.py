"""Comparisons of searchers by what they find in as many trials, and of stored winners, measured again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from planish.core import ExecutorFactory, Level, Objective, PlanishError, Program, Ratio, Trial
from planish.core.capabilities import HasHosts, executors_for
from planish.core.files import StrPath
from planish.core.registry import load_program
from planish.measure import PairedSamples, Plan, Variant, judged
from planish.measure.comparison import remeasure
from planish.measure.executors import LocalExecutor
from planish.store import Reader, Store, open_store
from planish.tuning.api import require_fit, tune_program
from planish.tuning.recorder import Listener
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings


@dataclass(frozen=True)
class SearchConfig:
    """Configuration of a search.

    Args:
        name: for people.
        program: a file, or a program's text.
        settings: how it is tuned; its seed is the first of several.
        options: how to read the program, as on the command line.
    """

    name: str
    program: str
    settings: Settings = field(default_factory=Settings)
    options: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class ConvergenceCurves:
    """Best values by the number of trials, once for each seed.

    Args:
        config: of the searches.
        objective: what was improved.
        runs: the runs' ids in the store, by seed.
        best: by seed, then by trial: the best value so far; not a number before the first measured one.
    """

    config: SearchConfig
    objective: Objective
    runs: tuple[str, ...]
    best: tuple[tuple[float, ...], ...]

    def after(self, trials: int) -> tuple[float, ...]:
        """List the best values after some trials, by seed; a search that ended earlier keeps its last."""
        return tuple(row[min(trials, len(row)) - 1] for row in self.best)

    def median(self, trials: int) -> float:
        """Return the median over the seeds after some trials; not a number if a seed had none by then."""
        values = self.after(trials)
        return math.nan if any(map(math.isnan, values)) else statistics.median(values)

    @property
    def winner(self) -> str:
        """The run that found the best value of all seeds."""
        last = [self.objective.cost(row[-1]) for row in self.best]
        return self.runs[last.index(min(last))]


def compare_searches(
    configs: Sequence[SearchConfig],
    *,
    trials: int = 100,
    seeds: int = 3,
    store: Store | StrPath | None = None,
    listener: Listener | None = None,
    start: ExecutorFactory = LocalExecutor,
) -> list[ConvergenceCurves]:
    """Search by each configuration, once for each seed; return the best values by the number of trials.

    All runs are stored. A candidate that several searches propose is measured once, so that luck favors
    none of them.

    Args:
        configs: one at least.
        trials: the budget of each run.
        seeds: how many runs each configuration has.
        store: an open store, or where it is; None for the user's own.
        listener: is notified of each run's progress.
        start: starts the workers.

    Raises:
        PlanishError: fewer than one configuration or seed, or one cannot be tuned.
    """
    if not configs or seeds < 1:
        raise PlanishError("nothing to compare", "Name one search and one seed at least.")
    if not isinstance(store, Store):
        with open_store(store) as opened:
            return compare_searches(
                configs, trials=trials, seeds=seeds, store=opened, listener=listener, start=start
            )
    budget = Budget(trials=trials)
    programs = [load_program(each.program, each.settings.level, each.options) for each in configs]
    for each, (level, program) in zip(configs, programs, strict=True):
        require_fit(level, program, each.settings)  # or the others would have searched in vain
    return [
        _curves(each, *loaded, budget, seeds, store, listener, start)
        for each, loaded in zip(configs, programs, strict=True)
    ]


def _curves(
    config: SearchConfig,
    level: Level,
    program: Program,
    budget: Budget,
    seeds: int,
    store: Store,
    listener: Listener | None,
    start: ExecutorFactory,
) -> ConvergenceCurves:
    results: list[Result] = []
    for number in range(seeds):
        settings = replace(config.settings, seed=config.settings.seed + number)
        results.append(
            tune_program(
                level,
                program,
                budget=budget,
                settings=settings,
                store=store,
                listener=listener,
                start=start,
                compares=False,
            )
        )
        # Ctrl-C ended one run in order; a comparison must not go on with the next.
        if results[-1].stopped:
            raise KeyboardInterrupt
    objective = results[0].objective
    best = (_best_so_far(r.stored_trials[: budget.trials], objective) for r in results)
    return ConvergenceCurves(config, objective, tuple(r.run.id for r in results), tuple(best))


def _best_so_far(trials: Sequence[Trial], objective: Objective) -> tuple[float, ...]:
    costs = (math.inf if (cost := trial.cost(objective)) is None else cost for trial in trials)
    best = accumulate(costs, min)
    return tuple(math.nan if math.isinf(cost) else objective.cost(cost) for cost in best)


@dataclass(frozen=True)
class RemeasuredWinner:
    """The best candidate of a stored run, measured again beside others.

    Args:
        result: its run.
        sampled: what was measured of it; its ratio is to the baseline of its own task.
        baseline: how that baseline did in the same run.
    """

    result: Result
    sampled: PairedSamples
    baseline: PairedSamples

    @property
    def gain(self) -> Ratio | None:
        """Return how many times better than the baseline; None where it failed."""
        over = self.sampled.ratio
        return None if over is None else over.gain(self.result.objective)


def compare_results(
    run_ids: Sequence[str],
    *,
    store: Reader | StrPath | None = None,
    processes: int = Plan.most,
    start: ExecutorFactory = LocalExecutor,
) -> list[RemeasuredWinner]:
    """Measure the best candidates of runs again, interleaved in one run, beside the baselines of their tasks.

    Where the result of a run is the baseline itself, its best other candidate is measured.

    Args:
        run_ids: ids of runs, or unique beginnings.
        store: an open store, or where it is; None for the user's own.
        processes: how many fresh processes measure at most, while too little is known.
        start: starts the workers.

    Returns:
        One for each id, in their order.

    Raises:
        PlanishError: a run has no result, a baseline fails, or the runs' leading objectives differ.
    """
    if not isinstance(store, Reader):
        with open_store(store, read_only=True) as opened:
            return compare_results(run_ids, store=opened, processes=processes, start=start)
    results = [read_result(store, run_id) for run_id in run_ids]
    objective = _common_objective(results)
    tasks = {result.task.key: result for result in results}
    if isinstance(start, HasHosts):
        if len({result.task.target.text for result in results}) > 1:
            what = "runs of several targets are not measured side by side"
            raise PlanishError(what, "Name runs of one target.")
        start = executors_for(start, results[0].level, results[0].task)
    specs = {key: r.level.evaluator(r.task, final=True) for key, r in tasks.items()}
    baselines = [Variant("baseline", r.level.baseline(r.task), specs[key]) for key, r in tasks.items()]
    winners = [Variant(r.run.id, r.contender, specs[r.task.key]) for r in results]
    paired = remeasure(baselines[0], [*baselines[1:], *winners], objective, start, Plan(most=processes))
    # The baselines come first.
    base = dict(zip(tasks, paired, strict=False))
    again = paired[len(tasks) :]
    return [
        RemeasuredWinner(r, _beside(base[r.task.key], s, r, len(results)), base[r.task.key])
        for r, s in zip(results, again, strict=True)
    ]


def _beside(base: PairedSamples, sampled: PairedSamples, result: Result, winners: int) -> PairedSamples:
    """Judge a winner beside the baseline of its own task; it was judged beside that of the first task."""
    if base.failures:
        raise PlanishError(f"the baseline of run {result.run.id} failed: {base.why}")
    if not base.values:
        return replace(
            sampled, ratio=None, evidence=None, verdict="undecided", lost=sampled.lost or base.lost
        )
    return judged(sampled, base, result.objective, winners)


def _common_objective(results: Sequence[Result]) -> Objective:
    objectives = list(dict.fromkeys(result.objective for result in results))
    if len(objectives) != 1:
        names = " and ".join(objective.name for objective in objectives) or "nothing"
        raise PlanishError(f"cannot compare {names}", "Name runs with the same leading objective.")
    return objectives[0]
