"""Tuning: where levels, spaces, searchers, executors and the store meet.

`tune` checks what a user gives; `tune_source` and `tune_program` are what it and the other products call.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from inspect import signature
from typing import TYPE_CHECKING

from planish.core import (
    EMPTY_CONTEXT,
    ArgumentError,
    CanEnumerate,
    Executor,
    ExecutorFactory,
    Level,
    Objective,
    PlanishError,
    Program,
    Searcher,
    Space,
    StoreError,
    Target,
    Task,
    UnknownNameError,
    WrongBaselineError,
    did_you_mean,
    unknown,
)
from planish.core.arguments import check_type, wrong_argument
from planish.core.capabilities import HasHosts, executors_for
from planish.core.files import StrPath
from planish.core.front import HypervolumeTracker
from planish.core.registry import level_named, load_program
from planish.measure.executors import LocalExecutor
from planish.search import make_searcher
from planish.store import STARTED_BY, HeldError, Run, Store, store_at
from planish.tuning.budget import LEAST_S, FinalLimits
from planish.tuning.engine import TuningRun
from planish.tuning.progress import is_shown, run_progress
from planish.tuning.recorder import Listener, Progress, Silent, TrialRecorder, Trials
from planish.tuning.remeasure import drop_interim
from planish.tuning.result import A_STORE, STORES, Result, read_comparison
from planish.tuning.settings import Budget, Settings, synonyms_of
from planish.tuning.transfer import context_of, stored

if TYPE_CHECKING:
    from planish.tuning.callbacks import TrialCallback
    from planish.tuning.constraint import Constraint

DEFAULT_BUDGET = Budget(seconds=10)
LONGER = 3
"""Times as long as before that a comparison that was undecided has at least when it is repeated."""

_FIELDS = {"objective": "objectives"}
"""Arguments of `tune` that `Settings` has under another name."""

_log = logging.getLogger("planish")


def tune(
    program: StrPath | Program,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    searcher: str | None = None,
    objective: str | Sequence[str] | None = None,
    cores: int | None = None,
    seed: int | None = None,
    store: Store | StrPath | None = None,
    callbacks: Iterable[TrialCallback] = (),
    where: Constraint | None = None,
    executor: ExecutorFactory = LocalExecutor,
    show_progress: bool | None = None,
    budget: Budget | None = None,
    settings: Settings | None = None,
    **options: object,
) -> Result:
    """Make a program faster (or smaller, or whatever the objective is) by search.

    The same call on the same store resumes the run: its trials are read from the store, and only what is new
    is measured. Ctrl-C ends the search and keeps the best.

    Args:
        program: a file, a program's text, or a program object.
        trials: distinct candidates to try at most, those of earlier calls included.
        seconds: of the search at most; 10 where neither `trials` nor `seconds` is given. The comparison at
            the end takes as many again at most, or 5.
        target: a value of the leading objective that is good enough.
        searcher: as listed by `planish searchers`; None for the level's default.
        objective: what is to be improved, or several names, the first of which leads.
        cores: how many cores the program may use; 1 by default.
        seed: all the search's randomness comes from it; 0 by default.
        store: an open store, or its location; None for the user's own.
        callbacks: each is called as `callback(run, trial)` after a trial is stored; see `planish.callbacks`.
        where: a function of a candidate that returns whether it may be measured; see `planish.Settings`. The
            baseline is always measured.
        executor: starts what evaluates candidates: workers of this machine by default; a `planish.RayCluster`
            has them measured on its hosts.
        show_progress: whether the progress is shown on standard error. None: in terminals and notebooks.
        budget: `trials`, `seconds` and `target` as one object, in place of these.
        settings: `searcher`, `objective`, `cores`, `seed`, `where` and more as one object, in place of these.
        options: how to read the program, as on the command line: `size="m=192,n=192,k=192"`, or a dict,
            `size={"m": 192, "n": 192, "k": 192}`. What is not text, as a path, is taken as its text.

    Returns:
        The best candidates, measured again interleaved with the baseline.

    Raises:
        ArgumentError: an argument has a wrong type or value, or two of them contradict each other.
        PlanishError: the program, an option or a name is wrong, or the store cannot be used.
        AllFailedError: no candidate could be measured.
        StoppedError: Ctrl-C came before anything was measured.

    Examples:
        >>> import planish
        >>> result = planish.tune("C[m] += A[m,k]", size={"m": 8, "k": 8}, trials=2, store="planish.db")
        >>> result.run.trials
        2
    """
    from planish.tuning.callbacks import CallbackListener, checked_callbacks

    if not isinstance(program, str | os.PathLike) and not hasattr(program, "text"):
        raise wrong_argument("program", program, "a file, a program's text or a program object")
    short = {"trials": trials, "seconds": seconds, "target": target}
    _refuse_both("budget", budget, Budget, short)
    limits = budget or _budget(trials, seconds, target)
    how = {"searcher": searcher, "objective": objective, "cores": cores, "seed": seed, "where": where}
    _refuse_both("settings", settings, Settings, how)
    chosen = settings or _settings(searcher, objective, cores, seed, where)
    check_type("store", store, STORES, A_STORE)
    if not callable(executor):
        raise wrong_argument("executor", executor, "a factory of executors, as planish.RayCluster(...)")
    check_type("show_progress", show_progress, (bool, type(None)), "True, False or None")
    called = checked_callbacks(callbacks)
    show = is_shown() if show_progress is None else show_progress
    try:
        with store_at(store) as opened, run_progress(opened, limits, show=show) as listener:
            observed = CallbackListener(listener, called)
            with observed:
                observed.result = tune_source(
                    program,
                    options,
                    budget=limits,
                    settings=chosen,
                    store=opened,
                    listener=observed,
                    start=executor,
                )
            return observed.result
    except UnknownNameError as error:
        if error.name not in options or not error.what.endswith("has no option"):
            raise
        raise _unknown_argument(error, limits, options[error.name]) from None


def _unknown_argument(error: UnknownNameError, budget: Budget, value: object) -> ArgumentError:
    """Make the error for a keyword that neither `tune` nor the level of the program has."""
    name, own = error.name, {*signature(tune).parameters} - {"options", "program"}
    what = f"tune() has no argument '{name}', and {error.what} of that name"
    kinds = {"settings": vars(Settings()), "budget": vars(budget)}
    # What `tune` has itself is suggested first, as `cores` for `threads`.
    for meant in (name, synonyms_of(own).get(name), synonyms_of(kinds["settings"]).get(name)):
        if meant in own:
            return ArgumentError(what, f"Did you mean '{meant}'?")
        for kind, fields in kinds.items():
            if meant in fields:
                return ArgumentError(what, f"Write {kind}={kind.capitalize()}({meant}=...).")
    if "size" in error.known and len(name) == 1 and isinstance(value, int):
        return ArgumentError(what, f"Write size={{'{name}': {value}}} for the extent of an axis.")
    return ArgumentError(what, did_you_mean(name, {*own, *error.known}))


def _refuse_both(name: str, whole: object, kind: type, parts: Mapping[str, object]) -> None:
    """Raise ArgumentError where an argument is of a wrong type, or is given together with its parts."""
    if whole is None:
        return
    check_type(name, whole, kind, f"planish.{kind.__name__}(...)")
    if given := [part for part, value in parts.items() if value is not None]:
        both = ", ".join(f"{part}=" for part in given)
        fields = ", ".join(f"{_FIELDS.get(part, part)}=..." for part in given)
        what = f"{both} cannot be given together with {name}="
        raise ArgumentError(what, f"Write {name}={kind.__name__}({fields}).")


def _budget(trials: int | None, seconds: float | None, target: float | None) -> Budget:
    """Make a budget; where neither trials nor seconds are given, the default's seconds hold."""
    if trials is None and seconds is None:
        seconds = DEFAULT_BUDGET.seconds
    return Budget(trials, seconds, target)


def _settings(
    searcher: str | None,
    objective: str | Sequence[str] | None,
    cores: int | None,
    seed: int | None,
    where: Constraint | None,
) -> Settings:
    names: Sequence[str] = objective or ()
    if isinstance(names, str):
        names = tuple(filter(None, (name.strip() for name in names.split(","))))
    check_type("objective", names, (tuple, list), "a name or a list of names")
    given = {"searcher": searcher, "cores": cores, "seed": seed, "where": where}
    return Settings(objectives=tuple(names), **{k: v for k, v in given.items() if v is not None})  # pyright: ignore[reportArgumentType]  (checked by Settings)


def _option_text(name: str, value: object) -> str:
    """Return an option of a level as on the command line: {"m": 8, "n": 8} is "m=8,n=8"."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_extents(each)}" for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        if meant := synonyms_of(signature(tune).parameters).get(name):
            raise ArgumentError(f"tune() has no argument '{name}'", f"Did you mean '{meant}'?")
        raise wrong_argument(name, value, "a text, a number, a path or a dict such as {'m': 64}")
    if isinstance(value, bool):
        return "yes" if value else ""
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _extents(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def tune_source(
    program: StrPath | Program,
    options: Mapping[str, object],
    *,
    budget: Budget,
    settings: Settings,
    store: Store | StrPath | None = None,
    listener: Listener | None = None,
    start: ExecutorFactory = LocalExecutor,
) -> Result:
    """Read a program, and tune it as `tune_program` does.

    Args:
        program: as for `tune`.
        options: how to read it.
        budget: when the search ends.
        settings: how it is done.
        store: as for `tune`.
        listener: is notified of the progress.
        start: as for `tune_program`.
    """
    began = time.monotonic()
    level, read = _read(program, settings, options)
    return tune_program(
        level,
        read,
        budget=budget,
        settings=settings,
        store=store,
        listener=listener,
        start=start,
        began=began,
    )


def tune_for_each_target(
    level: Level,
    program: Program,
    settings: Settings,
    budget: Budget,
    *,
    store: Store | StrPath | None = None,
    listener: Listener | None = None,
    start: ExecutorFactory,
) -> Iterator[Result]:
    """Tune a program once for each kind of host, one after the other, each time on all hosts of the kind.

    Args:
        level, program, settings, budget, store, listener: as for `tune_program`; the budget is that of each.
        start: has the hosts, as a `planish.RayCluster`.

    Yields:
        The result of each run.

    Raises:
        PlanishError: as for `tune_program`, or `start` has no hosts.
    """
    if not isinstance(start, HasHosts):
        raise PlanishError("only the hosts of a cluster may have several targets", 'Add executor="ray".')
    for target in start.targets(partial(level.target, program, settings.cores)):
        yield tune_program(
            level,
            program,
            budget=budget,
            settings=settings,
            store=store,
            listener=listener,
            start=start,
            target=target,
        )


def tune_program(
    level: Level,
    program: Program,
    *,
    budget: Budget = DEFAULT_BUDGET,
    settings: Settings | None = None,
    store: Store | StrPath | None = None,
    listener: Listener | None = None,
    executor: Executor | None = None,
    start: ExecutorFactory = LocalExecutor,
    compares: bool = True,
    searcher: Searcher | None = None,
    began: float | None = None,
    limits: FinalLimits | None = None,
    target: Target | None = None,
    started_by: str = "",
) -> Result:
    """Tune a program that a level has read; it may have been given a back end then.

    Args:
        level: of the program.
        program: what is tuned.
        budget: when the search ends.
        settings: how it is done; None for the defaults.
        store: an open store, or its location; None for the user's own.
        listener: is notified of the progress.
        executor: live workers to search with, which saves their start; None starts some and ends them.
        start: starts the workers that search, and those that compare what was found.
        compares: whether the best few are measured again at the end. Without that the result is the best as
            the search measured it, which may be the luckiest.
        searcher: proposes the candidates; the run is named after the one of the settings. None makes that.
        began: when the program began to be read, by the monotonic clock; None for now.
        limits: of the comparison at the end; None for as many seconds as the search took, or 5.
        target: of the hosts of `start` that measure; None for that of this machine.
        started_by: the product that tunes by itself, such as "einsum"; empty where a user asked for the run.
    """
    began = time.monotonic() if began is None else began
    chosen = settings or Settings()
    task = task_of(level, program, chosen, target)
    start = executors_for(start, level, task)
    with store_at(store) as opened:
        begin = partial(
            _begin,
            level,
            settings=chosen,
            budget=budget,
            store=opened,
            began=began,
            start=start,
            searcher=searcher,
            limits=limits or FinalLimits(),
            started_by=started_by,
        )
        found = _execute(partial(begin, listener=listener or Silent(), compares=compares), task, executor)
    _log.info("run %s: %s after %d trials", found.run.id, found.run.status, found.run.trials)
    return found


def _execute(begin: Callable[[Task], TuningRun], task: Task, executor: Executor | None) -> Result:
    """Run a search, and another one with another baseline where the level's is wrong and it finds one."""
    try:
        return begin(task).execute(executor)
    except WrongBaselineError as error:
        if error.instead is None:
            raise
        return begin(replace(task, program=error.instead)).execute(executor)


def require_fit(level: Level, program: Program, settings: Settings) -> None:
    """Raise PlanishError where settings do not fit a program, before anything is measured for others."""
    searcher_of(level, task_of(level, program, settings), settings)


def searcher_of(level: Level, task: Task, settings: Settings) -> Searcher:
    """Make the searcher of a task that settings ask for, which knows nothing of other programs.

    Raises:
        PlanishError: there is no such searcher or space, or they do not fit the task or each other.
    """
    space = settings.space or level.spaces[0]
    name, options = settings.searcher or level.default_searcher(task, space), settings.searcher_options
    others = _spaces(level, task)
    return make_searcher(
        name, level.space(task, space), task.objectives, settings.seed, options, EMPTY_CONTEXT, others
    )


def _spaces(level: Level, task: Task) -> Mapping[str, Callable[[], Space]]:
    return {name: partial(level.space, task, name) for name in level.spaces}


def _read(
    program: StrPath | Program, settings: Settings, options: Mapping[str, object]
) -> tuple[Level, Program]:
    if isinstance(program, str | os.PathLike):
        texts = {name: _option_text(name, each) for name, each in options.items() if each is not None}
        given = {name: text for name, text in texts.items() if text}
        return load_program(os.fspath(program), settings.level, given)
    if options:
        what = f"tune() was given a program object and the option {min(options)}="
        raise ArgumentError(what, "A program object is read already: leave the option out.")
    return level_named(program.level), program


def task_of(level: Level, program: Program, settings: Settings, target: Target | None = None) -> Task:
    """Make the task that settings ask for, for this machine or another target.

    Raises:
        PlanishError: the level has no such objective, or the machine lacks what is asked of it.
    """
    names = settings.objectives or level.default_objectives(program)
    objectives = tuple(_objective(level, name) for name in names)
    program = level.specialize(program, objectives)
    return Task(program, target or level.target(program, settings.cores), objectives, level.version)


def _objective(level: Level, name: str) -> Objective:
    """Find an objective; its unit may be left out: `time` is `time_s`."""
    found = {known.rpartition("_")[0]: objective for known, objective in level.objectives.items()}
    # Full names last: they win where a short one is the same.
    found |= level.objectives
    if name not in found or not name:
        raise unknown("unknown objective", name, level.objectives)
    return found[name]


def _begin(
    level: Level,
    task: Task,
    settings: Settings,
    budget: Budget,
    store: Store,
    listener: Listener,
    began: float,
    start: ExecutorFactory,
    limits: FinalLimits,
    *,
    searcher: Searcher | None,
    compares: bool,
    started_by: str,
) -> TuningRun:
    """Begin a run, or take up the one that began in the same way; its program began to be read at `began`."""
    space_name = settings.space or level.spaces[0]
    name = settings.searcher or level.default_searcher(task, space_name)
    origin = {STARTED_BY: started_by} if started_by else {}
    decides = {**{k: str(v) for k, v in settings.searcher_options.items()}, **origin}
    if settings.where is not None:
        from planish.tuning.constraint import WHERE, constraint_key

        decides[WHERE] = constraint_key(settings.where)
    old = None if settings.remeasure else _same_run(store, task, name, space_name, settings.seed, decides)
    started = time.time() if old is None else old.started
    # As of the run's beginning: a run that is taken up proposes what it would have without the interruption.
    context = context_of(store, level, task, started, None if old is None else old.warm_start)
    context = replace(context, seconds=budget.seconds)
    space, seed = level.space(task, space_name), settings.seed
    others = _spaces(level, task)
    searcher = searcher or make_searcher(
        name, space, task.objectives, seed, settings.searcher_options, context, others
    )
    spec = level.evaluator(task)  # may raise, and then no run has begun
    if old is None:
        run_id = store.begin_run(
            task, searcher=name, space=space_name, seed=settings.seed, options=decides,
            versions={"planish": version("planish"), "python": platform.python_version()},
            warm_start=stored(context), started=started,
        )  # fmt: skip
    else:
        run_id = old.id
        try:
            store.resume_run(run_id)
        except HeldError:  # another process has taken it up just now; this one shares its trials
            arguments = level, task, settings, budget, store, listener, began, start, limits
            return _begin(*arguments, searcher=searcher, compares=compares, started_by=started_by)
        if dropped := store.drop_damaged_trials(run_id):
            what = "1 damaged trial" if dropped == 1 else f"{dropped} damaged trials"
            _log.warning("deleted %s of run %s; measuring again", what, run_id)
            old = replace(old, trials=old.trials - dropped)
        drop_interim(store, run_id, level, level.baseline(task))
    _log.info("run %s: %s, level %s, searcher %s", run_id, "resumed" if old else "begun", level.name, name)
    growth = HypervolumeTracker(task.objectives, level.baseline(task)) if len(task.objectives) > 1 else None
    loading_s = time.monotonic() - began
    progress = Progress(task, run_id, hypervolume=growth, compares=compares, loading_s=loading_s)
    progress.searcher, progress.seed = name, seed
    trials = Trials(store, run_id, level.steps)
    recorder = TrialRecorder(level, task, settings.seed, store, listener, progress, trials)
    recorder.where = settings.where
    recorder.seconds["load"] = progress.loading_s
    recompare_s = _recompare_s(store, level, task, budget, old) if compares and old is not None else None
    size = space.size() if isinstance(space, CanEnumerate) else None
    return TuningRun(
        settings,
        budget,
        searcher,
        spec,
        start,
        recorder,
        recompare_s=recompare_s,
        space_size=size,
        limits=limits,
    )


def _recompare_s(store: Store, level: Level, task: Task, budget: Budget, old: Run) -> float | None:
    """Return the seconds to repeat the comparison of a finished run; None where it needs no repetition.

    It has the time of the command, and at least `LONGER` times what it had before. A search that is to have
    more trials comes first: its end has a comparison of its own.
    """
    if old.status != "finished" or (budget.seconds is None and budget.trials_left(old.trials)):
        return None
    with suppress(StoreError):  # what cannot be read is made anew
        comparison = read_comparison(store, old.id, level, task.objectives)
        if comparison is None or comparison.undecided(level.baseline(task)) is not None:
            return max(budget.seconds or 0.0, LONGER * old.seconds.get("compare", 0.0), LEAST_S)
    return None


def _same_run(
    store: Store, task: Task, searcher: str, space: str, seed: int, options: Mapping[str, str]
) -> Run | None:
    wanted = (searcher, space, seed, dict(options))
    for run in store.runs(task.key):
        # One that another process holds is not taken up: this run begins beside it, and shares its trials.
        if (run.searcher, run.space, run.seed, dict(run.options)) == wanted and run.status != "running":
            return run
    return None
