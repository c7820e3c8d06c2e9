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
from planish.report.predictions import ModelSection, Proposal, model_section, policy_section
from planish.report.trial_statistics import MEANING, StageTime, failure_groups, flops_of, stage_times
from planish.report.verdict import verdict_of
from planish.report.wording import duration, label, when

if TYPE_CHECKING:
    from planish.store.reader import Reader


def captions(data: ReportData) -> Mapping[str, str]:
    """Explain the charts of each section."""
    return {
        "search": _search_caption(data),
        "finalists": "The samples of the comparison: the box holds the middle half, the line in it is the "
        "median, whiskers reach 1.5 times the box at most, and what lies beyond the chart is counted.",
        "tradeoffs": _tradeoff_caption(data),
        "growth": "The hypervolume is the space between the front and a point twice as bad as the baseline "
        "in each objective, in units of what the baseline alone has. It counts what the search measured.",
        "model": "Each batch is predicted by a model that has learnt from the trials before it alone. Its "
        "order is compared with the measured one by Spearman's rank correlation: 1 is the same order, 0 is "
        "chance. A batch holds what the model takes for good, which is harder to put in order than all there "
        "is. Last, the winner is given other trials' values, one feature at a time: how much worse it is "
        "predicted to be then.",
        "time": _time_caption(data),
    }


def _search_caption(data: ReportData) -> str:
    cached = f", {data.cached:,} taken from the store" if data.cached else ""
    failed = f"{data.failed:,} failed, marked below the curve" if data.failed else "none failed"
    thinned = (
        f" At most {CURVE_POINTS:,} are drawn, evenly chosen." if len(data.trials) > CURVE_POINTS else ""
    )
    counts = f"{len(data.trials):,} trials{cached}; {failed}.{thinned}"
    paused = by_time(data.trials, data.run.started).paused
    return f"{counts} {duration(paused)} between the run's parts are left out." if paused else counts


def _tradeoff_caption(data: ReportData) -> str:
    better = "; ".join(
        f"{label(o)}: {'less' if o.direction == 'down' else 'more'} is better" for o in data.task.objectives
    )
    thinned = (
        f" At most {TRADEOFF_POINTS:,} trials are drawn, and all of the front."
        if len(data.trials) > TRADEOFF_POINTS
        else ""
    )
    front = f"The front holds what no other trial beats in every objective ({better})."
    return f"{front} What is far worse than all that is marked lies beyond the chart.{thinned}"


def _time_caption(data: ReportData) -> str:
    whole = "First the whole run, all workers together; then the median trial."
    if data.run.seconds:
        return whole
    state = "The run is under way" if data.run.status == "running" else "The run has not ended in good order"
    return f"{whole} {state}: what belongs to no trial (search, store, comparison) is not known."


_LONG = 2000


def provenance(data: ReportData) -> Mapping[str, Mapping[str, str]]:
    """List what decided the run: title to table, name to text."""
    run, task = data.run, data.task
    hosts = sorted({trial.host for trial in data.trials if trial.host} | {run.host})
    cached = f", {data.cached:,} taken from the store" if data.cached else ""
    return {
        "run": {
            "run": run.id,
            "status": run.status,
            "started": when(run.started),
            "ended": when(run.ended),
            "host": ", ".join(hosts),
            "trials": f"{len(data.trials):,} ({data.failed:,} failed{cached})",
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


def repeat(data: ReportData) -> str:
    """Write the Python lines that search again by the same seed, and measure everything anew."""
    run, task = data.run, data.task
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
            "from planish.core.budget import Budget",
            "from planish.tuning.settings import Settings",
            "",
            *(() if short else ("# The program's whole text; it is too long to be shown here.",)),
            f"program = {task.program!r}" if short else "program = Path('program').read_text()",
            "settings = Settings(",
            *(f"    {name}={value!r}," for name, value in settings.items()),
            ")",
            f"tune(program, budget=Budget(trials={max(1, len(data.trials))}), settings=settings)",
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
    data = read_report_data(store, run_id, level)
    page = _render(data, model_section(data), policy_section(data))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What failed programs say may hold halves of characters.
        replace_text(path, page, errors="backslashreplace")
    except OSError as error:
        raise PlanishError(
            f"the report cannot be written to {path}: {error.strerror}", "Name another file."
        ) from error
    return path


def _render(data: ReportData, model: ModelSection | None, proposals: Sequence[Proposal]) -> str:
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
    return template.render(_contents(data, model), policy_section=proposals, plotly_js=get_plotlyjs())


def _contents(data: ReportData, model: ModelSection | None) -> dict[str, Any]:
    front = data.front
    stages = stage_times(data.trials, data.run.seconds)
    groups = failure_groups(data.trials)
    return {
        "data": data,
        "objective": data.objective,
        "verdict": verdict_of(data),
        "words": wording.words(data.objective),
        "captions": captions(data),
        "comparison": data.comparison,
        "front": front_table(front) if front else None,
        "grids": [effect_grids(member, front.objectives) for member in front.finalists] if front else [],
        "flops": flops_of(data.trials, data.objective),
        "stages": stages,
        "meaning": MEANING,
        "failures": groups[:_GROUPS_MAX],
        "other_failures": sum(group.count for group in groups[_GROUPS_MAX:]),
        "provenance": provenance(data),
        "repeat": repeat(data),
        "charts": {**_charts(data, stages), "model": _model(data, model)},
        "text_max": _TEXT_MAX,
        "detail_max": _DETAIL_MAX,
        "steps_max": _STEPS_MAX,
    }


def _charts(data: ReportData, stages: Sequence[StageTime]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the figures of each section."""
    from planish.report import figures

    sides = (*data.finalists, data.comparison.baseline) if data.comparison else ()
    strip = strip_of({each.name: each.lead.samples for each in sides})
    bars = figures.totals_figure(stages), figures.medians_figure(stages)
    return {
        "search": _search(data) if data.best else [],
        "finalists": [figures.samples_figure(strip, data.objective)] if strip else [],
        "tradeoffs": _tradeoffs(data),
        "growth": _growth(data),
        "time": [figure for figure in bars if figure],
    }


def _model(data: ReportData, model: ModelSection | None) -> Sequence[Mapping[str, Any]]:
    from planish.report.figures import model_figures

    return [] if model is None else model_figures(model, data.objective)


def _search(data: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import figures

    baseline = _baseline(data)
    clock = by_time(data.trials, data.run.started).seconds
    return [
        figures.search_figure(
            curve(data.trials, positions, data.objective), data.objective, baseline, timed=timed
        )
        for positions, timed in ((by_number(data.trials), False), (clock, True))
    ]


def _baseline(data: ReportData) -> float | None:
    """Return the baseline's value as the search measured it, else that of the comparison.

    The two may be of other data or of other minutes: trials stand beside what was measured as they were.
    """
    known = value_for(data.trials, data.baseline, data.objective)
    if known is None and data.comparison and math.isfinite(final := data.comparison.baseline.lead.median):
        return final
    return known


def _tradeoffs(data: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import figures

    objectives = data.task.objectives
    finalists = [finalist.candidate for finalist in data.finalists]
    found = tradeoffs(data.trials, objectives, finalists, data.baseline, data.front)
    return [figures.tradeoff_figure(tradeoff, joined=len(objectives) == 2) for tradeoff in found]


def _growth(data: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import figures

    if len(data.task.objectives) < 2:
        return []
    figure = figures.volume_figure(growth_of(data.trials, data.task.objectives, data.baseline))
    return [figure] if figure else []
