"""A run's report, as one HTML file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import Level, PlanishError, growth_of
from planish.core.replacing import replace_text
from planish.report import wording
from planish.report.captions import captions
from planish.report.curve import by_number, by_time, curve, value_for
from planish.report.data import ReportData, read_report_data
from planish.report.effect_grids import effect_grids
from planish.report.failure_groups import failure_groups
from planish.report.front_table import front_table
from planish.report.guidance import Guidance, guidance_of
from planish.report.pareto import tradeoffs
from planish.report.proposals import Proposal, proposals_of
from planish.report.provenance import provenance, repeat
from planish.report.sample_plots import strip_of
from planish.report.stages import MEANING, StageTime, stage_times
from planish.report.verdict import verdict_of
from planish.report.work import work_of

if TYPE_CHECKING:
    from planish.store.store_reader import Reader

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
    """Give the figures of each section."""
    from planish.report import draw

    everybody = (*story.finalists, story.comparison.baseline) if story.comparison else ()
    strip = strip_of({each.name: each.lead.samples for each in everybody})
    bars = draw.totals_figure(stages), draw.medians_figure(stages)
    return {
        "search": _search(story) if story.best else [],
        "finalists": [draw.samples_figure(strip, story.objective)] if strip else [],
        "tradeoffs": _tradeoffs(story),
        "growth": _growth(story),
        "time": [figure for figure in bars if figure],
    }


def _model(story: ReportData, guidance: Guidance | None) -> Sequence[Mapping[str, Any]]:
    from planish.report.draw_model import model_figures

    return [] if guidance is None else model_figures(guidance, story.objective)


def _search(story: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import draw

    baseline = _baseline(story)
    clock = by_time(story.trials, story.run.started).seconds
    return [
        draw.search_figure(
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
    from planish.report import draw_front

    objectives = story.task.objectives
    finalists = [finalist.candidate for finalist in story.finalists]
    found = tradeoffs(story.trials, objectives, finalists, story.baseline, story.front)
    return [draw_front.tradeoff_figure(tradeoff, joined=len(objectives) == 2) for tradeoff in found]


def _growth(story: ReportData) -> list[Mapping[str, Any]]:
    from planish.report import draw_front

    if len(story.task.objectives) < 2:
        return []
    figure = draw_front.volume_figure(growth_of(story.trials, story.task.objectives, story.baseline))
    return [figure] if figure else []
