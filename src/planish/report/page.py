"""A run's report: one HTML file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import Level, Objective, PlanishError, canonical_json, growth_of
from planish.core.files import replace_text
from planish.report import wording
from planish.report.chart_data import (
    CURVE_POINTS,
    TRADEOFF_POINTS,
    by_number,
    by_time,
    curve,
    strip_of,
    tradeoffs,
    value_for,
)
from planish.report.data import ReportData, read_report_data
from planish.report.front_table import effect_grids, front_table
from planish.report.predictions import Guidance, Proposal, guidance_of, proposals_of
from planish.report.trial_statistics import MEANING, StageTime, failure_groups, stage_times, work_of
from planish.report.verdict import verdict_of
from planish.report.wording import duration, label, when

if TYPE_CHECKING:
    from planish.store.reader import Reader


def captions(story: ReportData) -> Mapping[str, str]:
    """Explain the charts of each section."""
    return {
        "search": _search_caption(story),
        "finalists": "The samples of the comparison: the box holds the middle half, the line in it is the "
        "median, whiskers reach 1.5 times the box at most, and what lies beyond the chart is counted.",
        "tradeoffs": _tradeoff_caption(story),
        "growth": "The hypervolume is the space between the front and a point twice as bad as the baseline "
        "in each objective, in units of what the baseline alone has. It counts what the search measured.",
        "model": "Each batch is predicted by a model that has learnt from the trials before it alone. Its "
        "order is compared with the measured one by Spearman's rank correlation: 1 is the same order, 0 is "
        "chance. A batch holds what the model takes for good, which is harder to put in order than all there "
        "is. Last, the winner is given other trials' values, one feature at a time: how much worse it is "
        "predicted to be then.",
        "time": _time_caption(story),
    }


def _search_caption(story: ReportData) -> str:
    cached = f", {story.cached:,} taken from the store" if story.cached else ""
    failed = f"{story.failed:,} failed, marked below the curve" if story.failed else "none failed"
    thinned = (
        f" At most {CURVE_POINTS:,} are drawn, evenly chosen." if len(story.trials) > CURVE_POINTS else ""
    )
    counts = f"{len(story.trials):,} trials{cached}; {failed}.{thinned}"
    paused = by_time(story.trials, story.run.started).paused
    return f"{counts} {duration(paused)} between the run's parts are left out." if paused else counts


def _tradeoff_caption(story: ReportData) -> str:
    better = "; ".join(
        f"{label(o)}: {'less' if o.direction == 'down' else 'more'} is better" for o in story.task.objectives
    )
    thinned = (
        f" At most {TRADEOFF_POINTS:,} trials are drawn, and all of the front."
        if len(story.trials) > TRADEOFF_POINTS
        else ""
    )
    front = f"The front holds what no other trial beats in every objective ({better})."
    return f"{front} What is far worse than all that is marked lies beyond the chart.{thinned}"


def _time_caption(story: ReportData) -> str:
    whole = "First the whole run, all workers together; then the median trial."
    if story.run.seconds:
        return whole
    state = "The run is under way" if story.run.status == "running" else "The run has not ended in good order"
    return f"{whole} {state}: what belongs to no trial (search, store, comparison) is not known."


_LONG = 2000


def provenance(story: ReportData) -> Mapping[str, Mapping[str, str]]:
    """List what decided the run: title to table, name to text."""
    run, task = story.run, story.task
    hosts = sorted({trial.host for trial in story.trials if trial.host} | {run.host})
    cached = f", {story.cached:,} taken from the store" if story.cached else ""
    return {
        "run": {
            "run": run.id,
            "status": run.status,
            "started": when(run.started),
            "ended": when(run.ended),
            "host": ", ".join(hosts),
            "trials": f"{len(story.trials):,} ({story.failed:,} failed{cached})",
            **run.versions,
        },
        "search": {
            "searcher": run.searcher,
            **{f"{name} (option)": _text(value) for name, value in run.options.items()},
            "space": run.space,
            "seed": str(run.seed),
        },
        "task": {
            "key": task.key,
            "level": f"{task.level}, version {task.level_version}",
            "objectives": "; ".join(map(_objective, task.objectives)),
        },
        "target": {
            "processor": task.target.processor,
            "cores": str(task.target.cores),
            "features": ", ".join(sorted(task.target.features)) or "—",
            **dict(sorted(task.target.toolchain.items())),
        },
    }


def _objective(objective: Objective) -> str:
    unit = f" ({objective.unit})" if objective.unit else ""
    return f"{objective.name}{unit}, {'less' if objective.direction == 'down' else 'more'} is better"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def repeat(story: ReportData) -> str:
    """Write the Python lines that search again by the same seed, and measure everything anew."""
    run, task = story.run, story.task
    short = len(task.program) <= _LONG
    settings = {
        "level": task.level,
        "objectives": tuple(o.name for o in task.objectives),
        "searcher": run.searcher,
        "space": run.space,
        "searcher_options": dict(run.options),
        "seed": run.seed,
        "cores": task.target.cores,
        "remeasure": True,
    }
    return "\n".join(
        (
            *(() if short else ("from pathlib import Path", "")),
            "from planish import tune",
            "from planish.budget import Budget",
            "from planish.settings import Settings",
            "",
            *(() if short else ("# The program's whole text; it is too long to be shown here.",)),
            f"program = {task.program!r}" if short else "program = Path('program').read_text()",
            "settings = Settings(",
            *(f"    {name}={value!r}," for name, value in settings.items()),
            ")",
            f"tune(program, budget=Budget(trials={max(1, len(story.trials))}), settings=settings)",
        )
    )


_TEXT_MAX = 200_000
_DETAIL_MAX = 4_000
_STEPS_MAX = 20_000
_GROUPS_MAX = 50


def write_report(store: Reader, run_id: str, level: Level, path: Path) -> Path:
    """Write a run's report: one HTML file that works offline, of some 5 MB for the charts' code.

    A run without a result, or still under way, has one too.

    Args:
        store: where the run is; it may be read-only.
        run_id: the run's id, or a unique beginning of it.
        level: the level of the run's task.
        path: the file; what is there is replaced, missing folders are made.

    Returns:
        The path.

    Raises:
        StoreError: there is no such run, or the store cannot be read.
        ProgramError: the level does not have a step of a trial.
        PlanishError: the file cannot be written.
    """
    story = read_report_data(store, run_id, level)
    page = _render(story, guidance_of(story, level), proposals_of(story, level))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What failed programs say may hold halves of characters.
        replace_text(path, page, errors="backslashreplace")
    except OSError as error:
        raise PlanishError(
            f"the report cannot be written to {path}: {error.strerror}", "Name another file."
        ) from error
    return path


def _render(story: ReportData, guidance: Guidance | None, proposals: Sequence[Proposal]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("planish.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("amount", "duration", "interval", "label", "multiple", "number", "shorten")
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters.update({name: getattr(wording, name) for name in names})
    environment.filters["title_of"] = wording.title  # `title` is one of Jinja's own
    template = environment.get_template("report.html.jinja")
    return template.render(_contents(story, guidance), proposals=proposals, plotly_js=get_plotlyjs())


def _contents(story: ReportData, guidance: Guidance | None) -> dict[str, Any]:
    front = story.front
    stages = stage_times(story.trials, story.run.seconds)
    groups = failure_groups(story.trials)
    return {
        "story": story,
        "objective": story.objective,
        "verdict": verdict_of(story),
        "words": wording.words(story.objective),
        "captions": captions(story),
        "comparison": story.comparison,
        "front": front_table(front) if front else None,
        "grids": [effect_grids(member, front.objectives) for member in front.finalists] if front else [],
        "work": work_of(story.trials, story.objective),
        "stages": stages,
        "meaning": MEANING,
        "failures": groups[:_GROUPS_MAX],
        "other_failures": sum(group.count for group in groups[_GROUPS_MAX:]),
        "provenance": provenance(story),
        "repeat": repeat(story),
        "charts": {**_charts(story, stages), "model": _model(story, guidance)},
        "text_max": _TEXT_MAX,
        "detail_max": _DETAIL_MAX,
        "steps_max": _STEPS_MAX,
    }


def _charts(story: ReportData, stages: Sequence[StageTime]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the figures of each section."""
    from planish.report import figures

    sides = (*story.finalists, story.comparison.baseline) if story.comparison else ()
    strip = strip_of({each.name: each.lead.samples for each in sides})
    bars = figures.totals_figure(stages), figures.medians_figure(stages)
    return {
        "search": _search(story) if story.best else [],
        "finalists": [figures.samples_figure(strip, story.objective)] if strip else [],
        "tradeoffs": _tradeoffs(story),
        "growth": _growth(story),
        "time": [figure for figure in bars if figure],
    }


def _model(story: ReportData, guidance: Guidance | None) -> Sequence[Mapping[str, Any]]:
    from planish.report.figures import model_figures

    return [] if guidance is None else model_figures(guidance, story.objective)


def _search(story: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import figures

    baseline = _baseline(story)
    clock = by_time(story.trials, story.run.started).seconds
    return [
        figures.search_figure(
            curve(story.trials, places, story.objective), story.objective, baseline, timed=timed
        )
        for places, timed in ((by_number(story.trials), False), (clock, True))
    ]


def _baseline(story: ReportData) -> float | None:
    """Return the baseline's value as the search measured it, else that of the comparison.

    The two may be of other data or of other minutes: trials stand beside what was measured as they were.
    """
    known = value_for(story.trials, story.baseline, story.objective)
    if known is None and story.comparison and math.isfinite(final := story.comparison.baseline.lead.median):
        return final
    return known


def _tradeoffs(story: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import figures

    objectives = story.task.objectives
    finalists = [finalist.candidate for finalist in story.finalists]
    found = tradeoffs(story.trials, objectives, finalists, story.baseline, story.front)
    return [figures.tradeoff_figure(tradeoff, joined=len(objectives) == 2) for tradeoff in found]


def _growth(story: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import figures

    if len(story.task.objectives) < 2:
        return []
    figure = figures.volume_figure(growth_of(story.trials, story.task.objectives, story.baseline))
    return [figure] if figure else []
