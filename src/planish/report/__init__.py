"""Reports: HTML files of runs that need nothing else.

A report of several runs has a table, their charts beside each other, and what differs between them. That of
one run is made in `page`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from planish.core import Candidate, PlanishError, Ratio
from planish.core.arguments import check_path, check_type
from planish.core.files import StrPath, replace_text
from planish.core.wording import title, verdict_word
from planish.report.page import STEPS_MAX, TEXT_MAX, common_limit, drawn, provenance, render, repeat, run_page
from planish.tuning.result import Result
from planish.tuning.stored_run import value_of
from planish.tuning.verdict import RunVerdict, verdict_of

__all__ = ["write_report"]


def write_report(results: Result | Sequence[Result], path: StrPath) -> Path:
    """Write the report of a run, or a comparison of several, as one HTML file of at most 1.5 MB.

    The file works offline. A run without a result, or still under way, has a report, too.

    Args:
        results: a run, or several of the same level and leading objective; their store is open, and may be
            read-only.
        path: the file; what is there is replaced, missing folders are made.

    Returns:
        The path.

    Raises:
        ArgumentError: an argument has a wrong type.
        StoreError: the store cannot be read.
        ProgramError: the level does not have a step of a trial.
        PlanishError: the runs cannot be compared, or the file cannot be written.
    """
    check_path("path", path)
    runs = list(results) if isinstance(results, Sequence) else [results]
    for each in runs:
        check_type("results", each, Result, "a Result or a list of them")
    path = Path(path)
    page = run_page(runs[0]) if len(runs) == 1 else runs_page(runs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What failed programs say may hold halves of characters.
        replace_text(path, page, errors="backslashreplace")
    except OSError as error:
        what = f"the report cannot be written to {path}: {error.strerror}"
        raise PlanishError(what, "Name another file.") from error
    return path


_STEPS_BYTES = 200_000


@dataclass(frozen=True)
class RunRow:
    """A run in the table.

    Args:
        run: its id.
        searcher: its name.
        program: the first line of its program.
        trials: how many there are.
        failed: how many of them failed.
        seconds: of all stages, all workers together.
        verdict: on the run.
        word: the same in a word, since the gain stands beside it.
        candidate: the best one; None where nothing was measured.
        best: its value by the leading objective, from the comparison, else from the search.
        baseline: the value of the run's baseline; None where the run was not compared.
        gain: how many times better than its baseline the best one is; None where the run was not compared.
        repeat: the lines that search again.
    """

    run: str
    searcher: str
    program: str
    trials: int
    failed: int
    seconds: float
    verdict: RunVerdict
    word: str
    candidate: Candidate | None
    best: float | None
    baseline: float | None
    gain: Ratio | None
    repeat: str


def runs_page(runs: Sequence[Result]) -> str:
    """Return a comparison of runs as HTML.

    Raises:
        StoreError: the store cannot be read.
        ProgramError: the level does not have a step of a trial.
        PlanishError: two runs are the same, of different levels, or have different leading objectives.
    """
    from planish.plot.runs import check_comparable

    ids = [each.run.id for each in runs]
    if twice := next((run for run in ids if ids.count(run) > 1), None):
        raise PlanishError(f"run {twice} is named twice", "Name each run once.")
    check_comparable(runs)
    rows = [_row(each) for each in runs]
    programs = list(dict.fromkeys(each.stored.program for each in runs))
    return render(
        "runs.html.jinja",
        level=runs[0].stored.level,
        objective=runs[0].objective,
        rows=rows,
        programs=programs if len(programs) == 1 else [],
        mixed=len(programs) > 1,
        notes=_notes(runs, len(programs)),
        sections=_sections(runs),
        differences=differences([provenance(each) for each in runs]),
        text_max=TEXT_MAX,
        steps_max=common_limit([str(row.candidate) for row in rows], STEPS_MAX, _STEPS_BYTES),
    )


_WORDS = {"open": "not compared", "nothing": "nothing measured"}


def _row(result: Result) -> RunRow:
    verdict = verdict_of(result)
    comparison, best = result.comparison, result.best_trial
    found = comparison.contender(result.baseline_candidate) if comparison else None
    return RunRow(
        run=result.run.id,
        searcher=result.run.searcher,
        program=title(result.stored.program),
        trials=len(result.stored_trials),
        failed=result.failed,
        seconds=sum(result.run.seconds.values())
        or sum(sum(trial.seconds.values()) for trial in result.stored_trials if not trial.cached),
        verdict=verdict,
        word=_WORDS.get(verdict.kind) or verdict_word(verdict.kind, result.objective),
        candidate=found.candidate if found else best.candidate if best else None,
        best=found.lead.median if found else value_of(best, result.objective) if best else None,
        baseline=comparison.baseline.lead.median if comparison else None,
        gain=found.lead.gain if found else None,
        repeat=repeat(result),
    )


def _notes(runs: Sequence[Result], programs: int) -> list[str]:
    notes = []
    if programs > 1:
        notes.append(f"The runs are of {programs} programs: compare their gains, and not their values.")
    if any(each.stored.target != runs[0].stored.target for each in runs):
        targets = "another processor, number of cores, or version of a tool"
        notes.append(
            f"The runs differ in their target ({targets}): compare their gains, and not their values."
        )
    return notes


@dataclass(frozen=True)
class Section:
    """Charts under a heading.

    Args:
        name: of the link to it.
        title: the heading.
        caption: what the charts show.
        charts: the figures as JSON; without any, the section is left out.
    """

    name: str
    title: str
    caption: str
    charts: Sequence[Mapping[str, Any]]


def _sections(runs: Sequence[Result]) -> list[Section]:
    from planish import plot

    def charts(*draws: Callable[..., Any], **options: Any) -> list[Mapping[str, Any]]:
        found = (drawn(partial(draw, runs, template=plot.PLAIN, **options)) for draw in draws)
        return [figure for figure in found if figure is not None]

    gains = (
        "How many times better than its own baseline the best finalist of each run is, with the 95 % "
        "confidence interval. Two runs differ if their intervals do not overlap."
    )
    search = "The best value so far; the thin lines are the runs' baselines. Pauses are omitted."
    distribution = (
        "The share of trials that are at least as good as each value. A line ends at the share that was "
        "measured: the others failed."
    )
    return [
        Section("gains", "Gains", gains, charts(plot.compare_runs)),
        Section(
            "search",
            "Search",
            search,
            [*charts(plot.history, over="trials"), *charts(plot.history, over="time")],
        ),
        Section(
            "front", "Front", "The front of each run, as the search measured it.", charts(plot.pareto_front)
        ),
        Section("distribution", "Distribution", distribution, charts(plot.distribution)),
        Section(
            "time",
            "Time by stage",
            "The whole run, all workers together, and the median trial.",
            [*charts(plot.stages, of="run"), *charts(plot.stages, of="trial")],
        ),
    ]


def differences(runs: Sequence[Mapping[str, Mapping[str, str]]]) -> Mapping[str, Sequence[str]]:
    """Return the facts in which runs differ, with a value for each run.

    Args:
        runs: what decided each; see `planish.report.page.provenance`.
    """
    tables = [
        {f"{title} · {name}": text for title, facts in each.items() for name, text in facts.items()}
        for each in runs
    ]
    names = dict.fromkeys(name for table in tables for name in table)
    rows = {name: [table.get(name, "—") for table in tables] for name in names if name != "run · run"}
    return {name: values for name, values in rows.items() if len(set(values)) > 1}
