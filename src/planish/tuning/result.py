"""Results of runs: what was asked for, what came of it, and what can be done with the winner."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from planish.core import (
    Candidate,
    Failed,
    Level,
    Measured,
    Objective,
    PlanishError,
    StoreError,
    TargetError,
    Task,
    Trial,
    describe,
    register_file,
)
from planish.core.arguments import check_path, check_paths, check_type, check_whole_number
from planish.core.files import StrPath
from planish.core.registry import level_named
from planish.core.wording import title, verdict_word
from planish.store import Reader, Run, Store, StoredTask, has_default_store, open_store
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.comparison_codec import decode, decode_notes
from planish.tuning.result_text import heading, html, summary
from planish.tuning.stored_run import StoredRun

EINSUM = "einsum"
"""The product as it is named in runs that it starts; in place of a searcher in one that holds the selected
backend of an einsum, by whole calls, which has no trials and is resumed by no search."""


NOT_DESCRIBED = "not described"
"""Beginning of the title of what a level refuses to describe; its text is the error."""

STORES = (Store, str, os.PathLike, type(None))
"""Types of the argument `store`."""
A_STORE = "an open store, a file or a URL"


def read_comparison(
    store: Reader, run_id: str, level: Level, objectives: Sequence[Objective]
) -> Comparison | None:
    """Look up the comparison of a run; None where there was none.

    Args:
        store: open for reading, at least.
        run_id: the whole id.
        level: of the run's task.
        objectives: of the run's task.

    Raises:
        StoreError: it is damaged.
        ProgramError: the level lacks a step.
    """
    return decode(store.result_rows(run_id, level.steps), objectives)


@dataclass(frozen=True)
class ListedVerdict:
    """The verdict on a run in a list of runs.

    Args:
        word: in the words of the objective; empty where nothing was compared, or it cannot be read here.
        gain: of the best candidate over the baseline; None where nothing was compared.
    """

    word: str = ""
    gain: float | None = None


def listed_verdict(store: Reader, run: Run, task: StoredTask) -> ListedVerdict:
    """Return the verdict on a run; neither its program nor its trials are read."""
    try:
        comparison = read_comparison(store, run.id, level_named(task.level), task.objectives)
    except PlanishError:  # what a level here does not read must not keep the others from being listed
        return ListedVerdict()
    if comparison is None:
        return ListedVerdict()
    # The baseline, where it is among the finalists, has the measurements of the baseline.
    base = comparison.baseline.lead
    same = next((each.candidate for each in comparison.finalists if each.lead == base), None)
    best = comparison.contender(same)
    if best is None:
        return ListedVerdict("undecided" if comparison.undecided(same) else "same")
    found = "undecided" if comparison.undecided(same) else best.lead.verdict
    return ListedVerdict(verdict_word(found, task.objectives[0]), best.lead.gain.value)


def _comparison_of(store: Reader, run_id: str, task: Task) -> Comparison | None:
    return read_comparison(store, run_id, level_named(task.level), task.objectives)


def known_baseline(
    store: Reader, task: Task, read: Callable[[Reader, str, Task], Comparison | None] = _comparison_of
) -> float | None:
    """Return the baseline's value of the newest comparison for a task; None where there is none.

    Args:
        store: where the runs are.
        task: of the runs.
        read: reads the comparison of a run; raises StoreError where it cannot be read.
    """
    for run in store.runs(task.key):
        with suppress(StoreError):  # it is only shown: what cannot be read must not keep a run from beginning
            if found := read(store, run.id, task):
                return found.baseline.lead.median
    return None


@dataclass(frozen=True, repr=False)
class Result(StoredRun):
    """A run with its result; it describes, exports and calls the program by its candidate.

    Its `repr` has three lines: the run, its program and the verdict. Notebooks also show the comparison and a
    chart of the search.

    What is not at hand is read when it is first asked for: the program is parsed, and the trials are read
    from the store, which is opened again for it where it was closed.

    Args:
        run: what was asked for, how it ended, and where its time went.
        stored: what was tuned, with the program as its text, which the level may not read any more.
        comparison: of the best few with the baseline; None where it was left out.
        notes: how candidates were measured, or why nothing was compared, in sentences.
        pick: which of the finalists is meant, from 1; without any it is the search's best.
        store: where the trials are; None after pickling.

    Examples:
        >>> import numpy as np
        >>> import planish
        >>> result = planish.tune("C[m] += A[m,k]", size={"m": 8, "k": 8}, trials=2, store="planish.db")
        >>> result
        Run ... (level loops, searcher genetic): finished, 2 trials
        Program: C[m...
        Verdict: ...
        >>> [trial["state"] for trial in result.trials()]
        ['measured', 'measured']
        >>> result(np.ones((8, 8), np.float32)).sum()
        np.float32(64.0)
    """

    pick: int = 1

    def __repr__(self) -> str:
        return "\n".join(heading(self))

    def _repr_html_(self) -> str:
        return html(self)

    def summary(self) -> str:
        """Return a text for people: the verdict, the comparison, the failures and the notes.

        Raises:
            StoreError: the trials are needed for it, and the store cannot be read.
        """
        return summary(self)

    def trials(self) -> list[dict[str, Any]]:
        """Return all trials as records, by index; `pandas.DataFrame` takes them as they are.

        Returns:
            For each trial its `index`, `state` ("measured" or "failed"), the value of each objective by its
            name (None where it failed), `steps` as texts, the `stage`, `reason` and `detail` of a failure,
            the `seconds` that it took, the `time` of its end in seconds since the epoch, the `host` that
            measured it, the `client` that submitted it (empty in a search), and whether its outcome is
            `cached`, that is, was taken from another run.

        Raises:
            StoreError: the store cannot be read, or the result was pickled.
            ProgramError: the level does not have a step of a trial.
        """
        names = [objective.name for objective in self.stored.objectives]
        return [_record(trial, names) for trial in self.stored_trials]

    def trials_dataframe(self) -> Any:
        """Return the records of `trials` as a table of pandas, with a row for each trial.

        Raises:
            TargetError: pandas is not installed.
            StoreError: as `trials`.
        """
        try:
            pandas = import_module("pandas")  # no dependency of planish, and not known to its type checker
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            hint = "Install it with 'pip install pandas', or use trials(), which returns plain records."
            raise TargetError("trials_dataframe() needs pandas, which is not installed", hint) from error
        return pandas.DataFrame.from_records(self.trials())

    @property
    def best(self) -> Trial:
        """The best trial of the search.

        Raises:
            PlanishError: no candidate was measured.
        """
        if self.best_trial is None:
            raise PlanishError(f"run {self.run.id} has no result: no candidate was measured", "Tune again.")
        return self.best_trial

    @property
    def baseline(self) -> Compared | None:
        """Return how the baseline did in the comparison; None where that was left out."""
        return self.comparison.baseline if self.comparison else None

    @property
    def finalist(self) -> Finalist | None:
        """The finalist that is meant; None where there was no comparison."""
        return self.finalists[self.pick - 1] if self.finalists else None

    @property
    def candidate(self) -> Candidate:
        """The winner, or the finalist that was picked; the search's best if there was no comparison."""
        return self.finalist.candidate if self.finalist else self.best.candidate

    @property
    def contender(self) -> Candidate:
        """Return the best candidate apart from the baseline; where there is no other one, the result."""
        found = self.comparison.contender(self.baseline_candidate) if self.comparison else None
        return found.candidate if found else self.candidate

    @property
    def exported(self) -> Candidate:
        """Return the candidate that `export` writes: the best one that is not a call of a library.

        Where a compiler may be wrong for the program, the comparison alone verifies on inputs that the search
        did not see: without it the baseline is written.
        """
        if not self.finalists and not self.level.exports_unverified:
            return self.level.baseline(self.task)
        ways = (self.candidate, *(each.candidate for each in self.finalists))
        # The winner where none can be: its export says why.
        return next((each for each in ways if self.level.exportable(each)), self.candidate)

    @property
    def value(self) -> float:
        """Return the candidate's value of the leading objective."""
        if self.finalist is not None:
            return self.finalist.lead.median
        assert isinstance(self.best.outcome, Measured)
        return self.best.outcome.values[self.objective.name]

    @property
    def gain(self) -> float | None:
        """Return how many times better than the baseline the candidate is; None if they were not compared."""
        return self.finalist.lead.gain.value if self.finalist else None

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Function that computes the program by the candidate, of the program's inputs in their order.

        Raises:
            PlanishError: programs of this level cannot be called from Python.
        """
        return self.level.function(self.task, self.candidate)

    def __call__(self, *inputs: Any) -> Any:
        """Compute the program by the candidate: `function(*inputs)`."""
        return self.function(*inputs)

    @property
    def described(self) -> Candidate:
        """Return the candidate; of an undecided run, whose result is the baseline, the best other one."""
        kept = self.keeps_baseline and self.pick == 1 and self.comparison
        return self.contender if kept and kept.undecided(self.baseline_candidate) else self.candidate

    def _analysis_of(self, candidate: Candidate) -> Mapping[str, Any]:
        return next((each.analysis for each in self.finalists if each.candidate == candidate), {})

    def describe(self) -> Mapping[str, str]:
        """Show what the candidate does, or the best one of an undecided run: title to text."""
        return self._describe(self.described, self._analysis_of(self.described))

    def _describe(self, candidate: Candidate, analysis: Mapping[str, Any]) -> Mapping[str, str]:
        return describe(self.level, self.task, candidate, analysis, self.notes if self.finalists else None)

    @cached_property
    def description(self) -> Mapping[str, str]:
        """Title to text of what the candidate does; its steps alone where the level refuses the program.

        Empty where nothing was measured.
        """
        if self.finalist is None and self.best_trial is None:
            return {}
        return self._description(self.described, self._analysis_of(self.described))

    @cached_property
    def descriptions(self) -> Sequence[Mapping[str, str]]:
        """The same of each finalist, where there are several objectives."""
        found = self.finalists if self.front else ()
        return [self._description(each.candidate, each.analysis) for each in found]

    def _description(self, candidate: Candidate, analysis: Mapping[str, Any]) -> Mapping[str, str]:
        try:
            return self._describe(candidate, analysis)
        except PlanishError as error:  # must not keep the rest from being shown
            refused = {f"{NOT_DESCRIBED} by level '{self.level.name}'": str(error)}
            return {**refused, "steps": "\n".join(map(str, candidate.steps))}

    def export(self, path: StrPath, name: str = "") -> Sequence[Path]:
        """Write `exported` into a folder, for use without planish.

        Args:
            path: the folder; it is made if it is not there.
            name: of a kernel's C function and of its files; empty for one made from the program and schedule.

        Returns:
            The files.

        Raises:
            ArgumentError: an argument has a wrong type.
            PlanishError: there is nothing to export, or a file cannot be written.
        """
        check_path("path", path)
        check_type("name", name, str, "a name")
        if name:
            return self.level.export_as(self.task, self.exported, Path(path), name)
        return self.level.export(self.task, self.exported, Path(path))


def _record(trial: Trial, objectives: Sequence[str]) -> dict[str, Any]:
    outcome = trial.outcome
    measured = outcome.values if isinstance(outcome, Measured) else {}
    failed = outcome if isinstance(outcome, Failed) else None
    return {
        "index": trial.index,
        "state": "measured" if failed is None else "failed",
        **dict.fromkeys(objectives),
        **measured,
        "steps": [str(step) for step in trial.candidate.steps],
        "stage": failed.stage if failed else None,
        "reason": failed.reason if failed else None,
        "detail": failed.detail if failed else None,
        "seconds": sum(trial.seconds.values()),
        "time": trial.time,
        "host": trial.host,
        "client": trial.client,
        "cached": trial.cached,
    }


def read_result(
    store: Reader, run_id: str, pick: int = 1, files: Iterable[StrPath] = (), level: Level | None = None
) -> Result:
    """Look up a run and its result; nothing is written.

    Args:
        store: open for reading, at least.
        run_id: the run's id, or a unique beginning of it.
        pick: which of the finalists is meant, from 1, in the order that they are shown.
        files: that the program refers to; those are known which were named here before, as by tuning them.
        level: that of its task; it is looked up by name where none is given.

    Raises:
        StoreError: there is no such run, or the store cannot be read.
        PlanishError: its level is not installed, or there are fewer finalists.
        ProgramError: the level lacks a step.
    """
    run = store.run(run_id)
    task = store.task(run.task_key)
    level = level or level_named(task.level)
    for path in map(Path, files):
        register_file(level.digest(path), path)
    rows = store.result_rows(run.id, level.steps)
    found = Result(run, task, decode(rows, task.objectives), decode_notes(rows), store, pick)
    if not 1 <= pick <= max(1, count := len(found.finalists)):
        what = f"run {run.id} has no #{pick}: {count} were compared"
        raise PlanishError(what, f"See 'planish show {run.id}'.")
    return found.at_hand(level=level)


def load_run(
    run_id: str | None = None,
    *,
    store: Store | StrPath | None = None,
    pick: int = 1,
    files: Iterable[StrPath] = (),
) -> Result:
    """Load a stored run with its result; nothing is written.

    Args:
        run_id: the run's id, or a unique beginning of it; None for the last one that a user
            started.
        store: an open store, or its location; None for the user's own.
        pick: which of the finalists is meant, from 1.
        files: models, weights or data that the program refers to, known by their content.

    Raises:
        ArgumentError: an argument has a wrong type.
        StoreError: there is no such run, or the store cannot be read.
        PlanishError: its level is not installed, or there are fewer finalists.

    Examples:
        >>> import planish
        >>> run = planish.tune("C[m] += A[m,k]", size={"m": 8, "k": 8}, trials=2, store="planish.db").run
        >>> planish.load_run(run.id, store="planish.db").run.trials
        2
    """
    check_type("run_id", run_id, (str, type(None)), "the id of a run")
    check_type("store", store, STORES, A_STORE)
    check_whole_number("pick", pick)
    check_paths("files", files)
    with _open_to_read(store) as opened:
        run = opened.last_run() if run_id is None else opened.run(run_id)
        if run is None:
            raise StoreError("the store has no run yet", "Tune something first.")
        return read_result(opened, run.id, pick, files)


@dataclass(frozen=True)
class RunSummary:
    """A run in the list of a store's runs.

    Args:
        id: eight hexadecimal digits, for `load_run`.
        level: the level's name.
        program: the first line of its canonical text.
        objectives: names of what is improved; the first leads.
        searcher: its name.
        seed: of the search.
        status: "running", "finished", "stopped", "failed", or "interrupted" where its process was killed.
        trials: how many are stored.
        started: when it began, in seconds since the epoch.
        host: the machine that it ran on.
    """

    id: str
    level: str
    program: str
    objectives: tuple[str, ...]
    searcher: str
    seed: int
    status: str
    trials: int
    started: float
    host: str


def runs(store: Store | StrPath | None = None, *, limit: int | None = None) -> list[RunSummary]:
    """List the runs of a store, the newest first; `pandas.DataFrame` takes the list as it is.

    Args:
        store: an open store, or its location; None for the user's own, which may be missing as yet.
        limit: most that are listed.

    Raises:
        ArgumentError: an argument has a wrong type.
        StoreError: the store cannot be read.

    Examples:
        >>> import planish
        >>> _ = planish.tune("C[m] += A[m,k]", size={"m": 8, "k": 8}, trials=2, store="planish.db")
        >>> [run.level for run in planish.runs("planish.db", limit=1)]
        ['loops']
    """
    check_type("store", store, STORES, A_STORE)
    if limit is not None:
        check_whole_number("limit", limit, 1)
    if store is None and not has_default_store():
        return []
    with _open_to_read(store) as opened:
        found = opened.runs(limit=limit)
        tasks = {key: opened.task(key) for key in {run.task_key for run in found}}
    return [_summary(run, tasks[run.task_key]) for run in found]


def _summary(run: Run, task: StoredTask) -> RunSummary:
    return RunSummary(
        run.id,
        task.level,
        title(task.program),
        tuple(objective.name for objective in task.objectives),
        run.searcher,
        run.seed,
        run.status,
        run.trials,
        run.started,
        run.host,
    )


@contextmanager
def _open_to_read(store: Store | StrPath | None) -> Generator[Reader]:
    if isinstance(store, Reader):
        with store.reading() as opened:
            yield opened
        return
    with open_store(store, read_only=True) as opened:
        yield opened
