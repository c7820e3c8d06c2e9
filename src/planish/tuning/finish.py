"""The end of a run in stages, each within its share of the time; the state is stored after each.

The stages in their order are in `stages`: select, minimize or prune, compare, cross-check, scores on
held-out data, another baseline, effects of steps, and the analysis for the description.

Finalists are the best trials, the default candidate and members of the Pareto front. Members of a front are
ordered by how much hypervolume they add to those before them, so that a comparison that runs out of time has
covered the front in its breadth.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from itertools import islice
from operator import le
from typing import Any

from planish.core import (
    NOTICED,
    Analyze,
    Candidate,
    CrossCheck,
    Failed,
    Level,
    Lost,
    LostError,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    Step,
    StoreError,
    Task,
    Trial,
)
from planish.core.front import Costs, best_non_regressing, bounds, hypervolume, pareto_front
from planish.measure import CutShortError, Plan, by_processor_time, ends_by, seconds_left
from planish.measure.timing import error
from planish.tuning.ablation import ablate, minimize, prune
from planish.tuning.budget import StageBudget
from planish.tuning.comparison import Finalist
from planish.tuning.comparison_codec import decode, encode, encode_notes
from planish.tuning.final_state import FinalState, SearchOutcome, SearchTrials
from planish.tuning.recorder import Listener
from planish.tuning.remeasure import (
    compare,
    compare_secondary_baseline,
    drop_and_rank,
    judge_by_heldout,
    rank,
    withdraw_wins,
)
from planish.tuning.result import Result, read_comparison

ERRORS = 2.0
"""Standard errors that chance may explain (95 %)."""


def least_costs(trial: Trial, costs: Costs, objectives: tuple[Objective, ...]) -> Costs:
    """Return the costs of a trial less what noise may have added: two standard errors, 1 % at least.

    They select what is measured again, interleaved and in fresh processes, and prove nothing: a single
    process allows no estimate of the variance between processes.

    Args:
        trial: with samples, where its level keeps them.
        costs: its own.
        objectives: by which; what is exact has no noise.
    """
    pairs = zip(costs, objectives, strict=True)
    return tuple(cost if o.exact else cost - abs(cost) * _share(trial, o) for cost, o in pairs)


def _share(trial: Trial, objective: Objective) -> float:
    """Estimate within which share of itself a value is known."""
    outcome = trial.outcome
    assert isinstance(outcome, Measured)
    names = (objective.name, by_processor_time(objective.name))
    # The value is the median of one of both.
    known = [found for name in names if (found := outcome.samples.get(name))]
    same = [f for f in known if statistics.median(f) == outcome.values[objective.name]]
    return max([NOTICED, *(ERRORS * error(found) for found in same if len(found) > 1)])


def greedy_hypervolume_order(
    costs: Sequence[Costs], worst: Costs | None, baseline: Costs | None, least: Sequence[Costs] | None = None
) -> Iterator[int]:
    """Put the members of a front in the order in which they add the most, wherever the time ends.

    First comes the knee, which is the one that dominates most, of those that are worse than the baseline in
    nothing, if there are any: they alone may be called better, so on a busy machine, where one or two can be
    measured, it is one of them. Then come the best by each objective; then always the one that adds most to
    what those before it dominate.

    Args:
        costs: of the members, no two equal.
        worst: what is worse than this in any objective is of no use; None where the baseline is not known.
        baseline: its costs; None where they are not known.
        least: how low the costs of each may be, since they are noisy: what may be no worse than the baseline
            counts as such. None: as measured.

    Yields:
        The indices of those that are of use.
    """
    useful = [index for index, vector in enumerate(costs) if worst is None or _within(vector, worst)]
    if not useful:
        return
    # Without a baseline: the worst of all, beside which the ends of the front add nothing.
    reference = worst or tuple(map(max, zip(*costs, strict=True)))
    # Only one of these goes first: the front is to be shown in its breadth.
    lowest = costs if least is None else least
    harmless = [index for index in useful if baseline is not None and _within(lowest[index], baseline)]
    first = islice(_adding(harmless, [], costs, reference), 1)
    columns = zip(*(costs[index] for index in useful), strict=True)
    ends = [useful[column.index(min(column))] for column in columns]  # of equals the first
    order = list(dict.fromkeys([*first, *ends]))
    yield from order
    yield from _adding([index for index in useful if index not in order], order, costs, reference)


def _within(costs: Costs, most: Costs) -> bool:
    return all(map(le, costs, most))


def _adding(
    indices: Sequence[int], before: Sequence[int], costs: Sequence[Costs], reference: Costs
) -> Iterator[int]:
    """Order indices so that each adds the most hypervolume to what is before it."""
    left, held = list(indices), [costs[index] for index in before]
    while left:
        # Greedy: hypervolume is submodular, so what is added first comes near the best choice of as many.
        best = max(left, key=lambda index: hypervolume([*held, costs[index]], reference))
        yield best
        left.remove(best)
        held.append(costs[best])


FEW = 3
FEW_OF_FRONT = 8


def select(search: SearchOutcome, state: FinalState, _end: float) -> FinalState:
    """Choose the finalists, and the best of the search where there are several objectives."""
    first, count = search.space().start(), search.settings.finalists
    candidates, best = choose(search.level, search.task, search.trials, count, first)
    if where := search.settings.where:  # the first guess, and other ways to build the best, may be rejected
        known = search.trials.of(candidates)
        candidates = [each for each in candidates if each.hash in known or where(each)]
    tried = search.trials.of(candidates)
    outcomes = [tried[each.hash].outcome if each.hash in tried else None for each in candidates]
    finalists = (
        Finalist(
            candidate=candidate,
            label=finalist_label(candidate, candidates[0], first, known=candidate.hash in tried),
            n_steps_found=len(candidate.steps),
            trial=outcome.values if isinstance(outcome, Measured) else {},
        )
        for candidate, outcome in zip(candidates, outcomes, strict=True)
    )
    return replace(state, finalists=tuple(finalists), best=best)


def finalist_label(candidate: Candidate, best: Candidate, first: Candidate, *, known: bool) -> str:
    """Say what a finalist is: the default, or the best candidate built in another way, not a trial."""
    if candidate == first and candidate.steps:
        return "default"
    if known or candidate == best:
        return ""
    own = [f"with {_options(step)}" for step in candidate.steps if step not in best.steps]
    missing = [f"without {_options(step)}" for step in best.steps if step not in candidate.steps]
    return " ".join(["best trial", *own, *missing])


def _options(step: Step) -> str:
    name, options = step.to_json()
    return " ".join(map(str, options.values())) or name


def choose(
    level: Level, task: Task, trials: SearchTrials, count: int | None, first: Candidate
) -> tuple[list[Candidate], Trial | None]:
    """Choose the best distinct candidates, the default candidate, and the other ways to build the very best.

    The best of many noisy measurements is often the luckiest, and no better than the default. So that
    one is always chosen, and early, since where the time is short the last are left out; unless it failed.
    So are other ways to build the best, which the search could not try; the next best are much like it.
    Where a space begins with the unchanged program there is no guess.

    Of several objectives, they are members of the Pareto front, in the order of `greedy_hypervolume_order`;
    what is more than twice as bad as the baseline in anything is none of them.

    Args:
        level: the task's.
        task: what was tuned.
        trials: of the search; gone through once.
        count: how many of the best; None for the usual number.
        first: what the space begins with.

    Returns:
        Them, and of several objectives the best trial that is worse than the baseline in nothing.
    """
    several = len(task.objectives) > 1
    few = count or (FEW_OF_FRONT if several else FEW)
    candidates, best = _of_front(level, task, trials, few) if several else (_best(task, trials, few), None)
    if not candidates:
        return [], best
    guess = trials.of([first]).get(first.hash)
    guesses = [first] if first.steps and not (guess and isinstance(guess.outcome, Failed)) else []
    variants = [] if several else level.variants(task, candidates[0])
    return list(dict.fromkeys((candidates[0], *guesses, *variants, *candidates[1:]))), best


def _best(task: Task, trials: Iterable[Trial], count: int) -> list[Candidate]:
    measured = (
        (cost, t.index, t.candidate) for t in trials if (cost := t.cost(task.objectives[0])) is not None
    )
    # Of equal costs the earlier one; candidates themselves have no order.
    return [candidate for _, _, candidate in nsmallest(count, measured, key=lambda m: m[:2])]


def _of_front(
    level: Level, task: Task, trials: SearchTrials, count: int
) -> tuple[list[Candidate], Trial | None]:
    """Choose of the front what is of use, what adds most hypervolume first; the baseline where nothing is."""
    baseline, objectives = level.baseline(task), task.objectives
    base = trials.of([baseline]).get(baseline.hash)
    start = None if base is None else base.costs(objectives)
    best: tuple[float, Trial | None] = math.inf, None

    def watched() -> Iterator[Trial]:
        """Yield all trials, which are gone through once, and note the best that is worse in nothing."""
        nonlocal best
        for trial in trials:
            costs = trial.costs(objectives)
            if costs and start and costs[0] < best[0] and _within(costs, start):
                best = costs[0], trial
            yield trial

    members = [t for t in pareto_front(watched(), objectives) if t.candidate.hash != baseline.hash]
    worst = None if start is None else bounds(start, objectives)
    costs = [trial.costs(objectives) or () for trial in members]
    least = [least_costs(trial, known, objectives) for trial, known in zip(members, costs, strict=True)]
    order = islice(greedy_hypervolume_order(costs, worst, start, least), count)
    return [members[index].candidate for index in order] or [baseline], best[1]


def cross_check(search: SearchOutcome, state: FinalState, _end: float) -> FinalState:
    """Ask for a cross-check on each finalist, and on the baseline."""
    asks, base = search.final_checks().cross_check, state.baseline
    assert asks is not None
    assert base is not None
    try:
        own, *answers = asks(_with_baseline(search, state), search.start)
    except PlanishError as error:
        why = f"not cross-checked: {error}".rstrip(".")
        silent = tuple(replace(each, cross_check=CrossCheck(why=why)) for each in state.finalists)
        return replace(state, finalists=silent).noted(why)
    pairs = zip(state.finalists, answers, strict=True)
    asked = tuple(withdraw_wins(replace(each, cross_check=answer)) for each, answer in pairs)
    differs = f"the cross-check differs on the baseline too: {own.why}" if own.agrees is False else ""
    return replace(state, finalists=asked, baseline=replace(base, cross_check=own)).noted(differs)


def eval_heldout(search: SearchOutcome, state: FinalState, _end: float) -> FinalState:
    """Score each finalist, and the baseline, on what no search has seen."""
    scores, base = search.final_checks().heldout_scores, state.baseline
    assert scores is not None
    assert base is not None
    own, *outcomes = scores(_with_baseline(search, state), search.start)
    pairs = list(zip(state.finalists, outcomes, strict=True))
    scored = replace(state, finalists=tuple(_scored(each, outcome) for each, outcome in pairs))
    if not isinstance(own, Measured):
        return scored.noted(f"the baseline cannot be scored on unseen data: {_why(own)}")
    # Lost is not failed: a worker that was killed from outside says nothing of the candidate.
    unjudged = {each.candidate for each, outcome in pairs if isinstance(outcome, Lost)}
    return judge_by_heldout(replace(scored, baseline=replace(base, scores=own.values)), unjudged)


def _scored(finalist: Finalist, outcome: Outcome) -> Finalist:
    if isinstance(outcome, Measured):
        return replace(finalist, scores=outcome.values)
    return replace(finalist, notes=(*finalist.notes, f"cannot be scored on unseen data: {_why(outcome)}"))


def _with_baseline(search: SearchOutcome, state: FinalState) -> list[Candidate]:
    """List the baseline, then the finalists."""
    return [search.level.baseline(search.task), *(each.candidate for each in state.finalists)]


def _why(failed: Failed | Lost) -> str:
    return f"{failed.reason}: {failed.detail}" if failed.detail else failed.reason


def measure_secondary_baseline(search: SearchOutcome, state: FinalState, _end: float) -> FinalState:
    """Measure another baseline, where there is one."""
    find, base = search.final_checks().secondary_baseline, state.baseline
    assert find is not None
    assert base is not None
    try:
        return replace(state, secondary_baseline=compare_secondary_baseline(search, find(), base))
    except CutShortError:
        return state.noted("the secondary baseline was not measured: no time left")
    except PlanishError as error:
        return state.noted(f"the secondary baseline was not measured: {error}".rstrip("."))


def measure_parts(analyze: Analyze, search: SearchOutcome, state: FinalState, _end: float) -> FinalState:
    """Measure what the parts of the winner do, or of each member of a front, until the deadline."""
    level, task = search.level, search.task
    comparison = state.comparison(level.baseline(task))
    ranked = comparison.finalists if comparison else ()
    first = [*filter(None, [comparison and comparison.undecided(level.baseline(task))]), *ranked]
    wanted = [each.candidate for each in (ranked if len(task.objectives) > 1 else first[:1])]
    analyses: dict[Candidate, Mapping[str, Any]] = {}
    with search.start(level.evaluator(task)) as executor:
        for candidate in wanted:
            # The best first: where the time ends, the others have no analysis.
            if seconds_left() > 0:
                analyses[candidate] = analyze(candidate, executor)
    return replace(state, analyses=analyses)


@dataclass(frozen=True)
class FinalStage:
    """A stage of the end.

    Args:
        name: of its share of the time (see `WEIGHTS`); empty where it takes none.
        work: makes the next state, by a time of the monotonic clock.
        message: what the listener receives, with the `count` of finalists and the `time` that it takes.
        skip_message: what is said where there is no time left to begin; empty where it begins all the same.
    """

    name: str
    work: Callable[[SearchOutcome, FinalState, float], FinalState]
    message: str = ""
    skip_message: str = ""


def stages(search: SearchOutcome) -> Iterator[FinalStage]:
    """List the stages that the end of a run has."""
    level, several, checks = search.level, len(search.task.objectives) > 1, search.final_checks()
    yield FinalStage("", select)
    if several:
        yield FinalStage("minimize", minimize, "minimizing {count}")
    elif level.identities(search.task) is not None:
        yield FinalStage("minimize", prune, "removing steps that do nothing")
    yield FinalStage("compare", compare, "comparing {count} with the baseline: {time}")
    if checks.cross_check:
        yield FinalStage("cross_check", cross_check, "cross-checking the outputs", "not cross-checked")
    yield FinalStage("", drop_and_rank)
    if checks.heldout_scores:
        said = "scoring on unseen data"
        yield FinalStage("eval_heldout", eval_heldout, said, "the finalists were not scored on unseen data")
        yield FinalStage("", rank)
    if checks.secondary_baseline:
        said = "the secondary baseline was not measured"
        yield FinalStage("secondary_baseline", measure_secondary_baseline, "", said)
    if several:
        said = "the effects of single steps"
        yield FinalStage("ablate", ablate, f"measuring {said}", f"{said} were not measured")
    if analyze := level.analyzer(search.task):
        what, work = "the parts of the winner", partial(measure_parts, analyze)
        # Counts are exact, and take no time that is worth saving.
        exact = all(objective.exact for objective in search.task.objectives)
        said = "" if exact else f"{what} were not measured"
        yield FinalStage("describe", work, f"measuring {what}", said)


def finish(search: SearchOutcome, listener: Listener, *, at_once: bool = False) -> Result:
    """Compare the best few with the baseline, store the result and return it.

    It takes at most as long as the search did (see `StageBudget`), and notes what did not fit. Ctrl-C skips
    what is not done yet; without the comparison the result is the search's best. There is none where the
    progress says so.

    Args:
        search: at least one of its trials is measured.
        listener: is notified when a stage begins.
        at_once: leave all out.

    Raises:
        PlanishError: the baseline cannot be measured; the run is stored as finished, without a comparison.
    """
    store, run_id, stopped = search.store, search.progress.run_id, search.stopped
    state = FinalState(notes=search.notes)
    budget = StageBudget(search.wall_s, [*filter(None, (s.name for s in stages(search)))], search.limits)
    try:
        if search.progress.compares and not at_once:
            for reached in _states(search, state, budget, listener):
                state = reached
                _save(search, state)
    except KeyboardInterrupt:
        stopped = True
    except LostError as error:
        state = state.noted(f"not compared with the baseline: {error.message}")
    except Exception as error:  # such as a baseline that fails; what was searched is kept all the same
        with suppress(StoreError):  # it may be why this failed, and the first error says more
            if isinstance(error, PlanishError):
                _save_notes(search, state.noted(f"not compared with the baseline: {error.message}"))
            store.finish_run(run_id, "finished", search.seconds)
        raise
    _save_notes(search, state)
    store.finish_run(run_id, "stopped" if stopped else "finished", search.seconds)
    return _result(search, state)


def _states(
    search: SearchOutcome, state: FinalState, budget: StageBudget, listener: Listener
) -> Generator[FinalState]:
    """Go through the stages; each state outlives a kill once it is stored."""
    for stage in stages(search):
        if stage.skip_message and not budget.has(search.startup_s, stage.name):
            state = state.noted(f"{stage.skip_message}: no time left")
        else:
            with _timed(search, stage, budget) as end:
                if stage.message:
                    listener.ending(search.progress, _message(stage, search, state, budget))
                state = _worked(stage, search, state, end)
        yield state
        if not state.finalists and state.baseline is None:  # there is nothing to be measured, or no time
            return


def _message(stage: FinalStage, search: SearchOutcome, state: FinalState, budget: StageBudget) -> str:
    """Describe a stage: what it does, with what, and for how long."""
    baseline = search.level.baseline(search.task)
    candidates = [each.candidate for each in state.finalists if each.candidate != baseline]
    count = f"{len(candidates)} candidate{'' if len(candidates) == 1 else 's'}"
    return stage.message.format(count=count, time=_time(search, candidates, budget.seconds_left))


def _time(search: SearchOutcome, candidates: Sequence[Candidate], left_s: float) -> str:
    """Estimate how long a comparison takes by how long its sides took in the search."""
    most = f"at most {max(1.0, left_s):.0f} s"
    known = [sum(each.seconds.values()) for each in search.trials.of(candidates).values()]
    if not known or all(objective.exact for objective in search.task.objectives):
        return most
    plan = Plan()
    # The baseline, and what was not tried, is taken to need as long as the others.
    round_s = statistics.fmean(known) * (1 + len(candidates))
    needed_s = plan.processes * (search.startup_s + plan.rounds * round_s)
    if needed_s <= left_s:
        return f"about {max(1.0, needed_s):.0f} s, {most} while it is undecided"
    return f"{most}; all repeats would need about {needed_s:.0f} s"


def _worked(stage: FinalStage, search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Do a stage; once there is a comparison, what fails after it is a note beside it."""
    try:
        return stage.work(search, state, end)
    except PlanishError as error:
        # Candidates that could not be minimized for lost workers are compared as they are.
        if state.baseline is None and not (stage.name == "minimize" and isinstance(error, LostError)):
            raise
        return state.noted(f"{stage.skip_message or f'no {stage.name}'}: {error}".rstrip("."))


@contextmanager
def _timed(search: SearchOutcome, stage: FinalStage, budget: StageBudget) -> Generator[float]:
    """Time a stage; yield the time when it is to be over.

    The comparison and the scores may take all the time that is left: without them there is no verdict.
    """
    end = budget.until(stage.name) if stage.name else math.inf
    # Minimizing heeds its end by itself, between measurements.
    whole = max(end, budget.ends)
    limit = {"minimize": math.inf, "compare": whole, "eval_heldout": whole}.get(stage.name, end)
    if stage.name == "describe" and not stage.skip_message:
        limit = math.inf
    started = time.monotonic()
    try:
        with ends_by(limit):
            yield end
    finally:
        if name := {"secondary_baseline": "compare"}.get(stage.name, stage.name):
            search.seconds[name] = search.seconds.get(name, 0.0) + time.monotonic() - started


def _save(search: SearchOutcome, state: FinalState) -> None:
    """Store what is known; a comparison that was left out must not erase an earlier one."""
    if found := state.comparison(search.level.baseline(search.task)):
        search.store.save_result(search.progress.run_id, encode(found))


def _save_notes(search: SearchOutcome, state: FinalState) -> None:
    """Store why nothing was compared, where no comparison is stored."""
    level, task, run_id = search.level, search.task, search.progress.run_id
    if state.baseline is not None or not (state.notes and search.progress.compares):
        return
    if not decode(search.store.result_rows(run_id, level.steps), task.objectives):
        search.store.save_result(run_id, [encode_notes(level.baseline(task), state.notes)])


def _result(search: SearchOutcome, state: FinalState) -> Result:
    task, best, baseline = search.task, search.progress.best, search.level.baseline(search.task)
    if len(task.objectives) > 1:
        best = state.best or best_non_regressing(search.trials, task.objectives, baseline)
    run, stored = search.store.run(search.progress.run_id), search.store.task(task.key)
    comparison = state.comparison(baseline)
    if comparison is None and search.progress.compares:  # an earlier session's stands
        comparison = read_comparison(search.store, run.id, search.level, task.objectives)
    return Result(run, stored, comparison, state.notes, store=search.store).at_hand(
        level=search.level,
        task=task,
        baseline_candidate=baseline,
        best_trial=best,
        failures=search.progress.failures,
    )
