"""Page of a run: its verdict, charts, tables and provenance."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from planish.core import Objective, canonical_json, registry, wording
from planish.core.wording import duration, label, when
from planish.report.front_table import effect_grids, front_table
from planish.tuning.constraint import WHERE
from planish.tuning.predictions import ModelSection, Proposal, model_section, policy_section
from planish.tuning.result import Result
from planish.tuning.trial_statistics import (
    MEANING,
    FailureGroup,
    by_time,
    failure_groups,
    flops_of,
    stage_times,
)
from planish.tuning.verdict import verdict_of

if TYPE_CHECKING:
    from jinja2 import Environment


FINALISTS = (
    "First the gain of each finalist, with its 95 % confidence interval: one that does not contain 1 is a "
    "difference. Then the samples of the comparison: the box contains the middle half, the line in it is the "
    "median, whiskers extend to 1.5 times the box, and samples beyond are counted."
)
"""Caption of the charts of a comparison."""
GROWTH = (
    "The hypervolume is the space between the front and a point twice as bad as the baseline in each "
    "objective, in units of what the baseline alone has. It counts what the search measured."
)
"""Caption of the chart of the hypervolume."""


def captions(result: Result) -> Mapping[str, str]:
    """Explain the charts of each section."""
    return {
        "search": _search_caption(result),
        "finalists": FINALISTS,
        "tradeoffs": _tradeoff_caption(result),
        "growth": GROWTH,
        "model": "Each batch is predicted by a model that has learned from the trials before it alone. Its "
        "order is compared with the measured one by Spearman's rank correlation: 1 is the same order, 0 is "
        "chance. A batch holds what the model takes for good, which is harder to put in order than all there "
        "is. Last, the winner is given other trials' values, one feature at a time: how much worse it is "
        "predicted to be then.",
        "steps": _STEPS_CAPTION,
        "time": _time_caption(result),
    }


_STEPS_CAPTION = (
    "Each line is a candidate, from its steps to the value that was measured. A step of which there are "
    "several is numbered; 0 or a dash is a candidate without it. Importance is the accuracy that a model of "
    "trees, which predicts the order of the trials from their steps, loses if the values of one step are "
    "exchanged between trials. It is not shown if such a model predicts badly, or its library is missing."
)


def _search_caption(result: Result) -> str:
    from planish.plot.search import CURVE_POINTS

    cached = f", {result.cached:,} taken from the store" if result.cached else ""
    failed = f"{result.failed:,} failed, marked below the curve" if result.failed else "none failed"
    thinned = (
        f" At most {CURVE_POINTS:,} are drawn, evenly chosen."
        if len(result.stored_trials) > CURVE_POINTS
        else ""
    )
    counts = f"{len(result.stored_trials):,} trials{cached}; {failed}.{thinned}"
    paused = by_time(result.stored_trials, result.run.started).paused
    return f"{counts} Pauses of {duration(paused)} in total are omitted." if paused else counts


def _tradeoff_caption(result: Result) -> str:
    from planish.plot.fronts import TRADEOFF_POINTS

    better = "; ".join(f"{label(o)}: {_better(o)}" for o in result.stored.objectives)
    thinned = (
        f" At most {TRADEOFF_POINTS:,} trials are drawn, evenly chosen."
        if len(result.stored_trials) > TRADEOFF_POINTS
        else ""
    )
    front = f"The front contains the trials that no other one beats in every objective ({better})."
    return f"{front} Points that are far worse than all marked ones lie outside of the chart.{thinned}"


def _time_caption(result: Result) -> str:
    whole = "The whole run, all workers together, and the median trial."
    if result.run.seconds:
        return whole
    state = "The run is under way" if result.run.status == "running" else "The run did not end normally"
    return f"{whole} {state}: the time outside of trials (search, store, comparison) is not known."


_LONG = 2000
_SEARCHERS = "planish.searchers"


@dataclass(frozen=True)
class TrialCounts:
    """Counts of a run's trials.

    Args:
        tried: how many there are.
        failed: how many of them failed.
        cached: how many outcomes were taken from the store.
        hosts: the machines that measured them.
    """

    tried: int
    failed: int
    cached: int
    hosts: frozenset[str]


def _counts(result: Result) -> TrialCounts:
    hosts = frozenset(trial.host for trial in result.stored_trials if trial.host)
    return TrialCounts(len(result.stored_trials), result.failed, result.cached, hosts)


def provenance(result: Result, counts: TrialCounts | None = None) -> Mapping[str, Mapping[str, str]]:
    """List what decided the run: title to table, name to text.

    Args:
        result: of the run.
        counts: of its trials; None counts them.
    """
    run, task, counts = result.run, result.stored, counts or _counts(result)
    hosts = sorted(counts.hosts | {run.host})
    cached = f", {counts.cached:,} taken from the store" if counts.cached else ""
    return {
        "run": {
            "run": run.id,
            "status": run.status,
            "started": when(run.started),
            "ended": when(run.ended),
            "host": ", ".join(hosts),
            "trials": f"{counts.tried:,} ({counts.failed:,} failed{cached})",
            **run.versions,
        },
        "search": {
            "searcher": run.searcher,
            **{
                f"{name} (option)": value if isinstance(value, str) else canonical_json(value)
                for name, value in run.options.items()
            },
            "space": run.space,
            "seed": str(run.seed),
        },
        "task": {
            "key": task.key,
            "level": f"{task.level}, version {task.level_version}",
            "objectives": "; ".join(
                f"{o.name}{f' ({o.unit})' if o.unit else ''}, {_better(o)}" for o in task.objectives
            ),
        },
        "target": {
            "processor": task.target.processor,
            "cores": str(task.target.cores),
            "features": ", ".join(sorted(task.target.features)) or "—",
            **dict(sorted(task.target.toolchain.items())),
        },
    }


def _better(objective: Objective) -> str:
    return f"{'less' if objective.direction == 'down' else 'more'} is better"


def repeat(result: Result) -> str:
    """Write the Python lines that search again by the same seed, and measure everything anew."""
    run, task = result.run, result.stored
    short, constrained = len(task.program) <= _LONG, WHERE in run.options
    submitted = run.searcher not in registry.names(_SEARCHERS)
    settings = {
        "level": task.level,
        "objectives": tuple(o.name for o in task.objectives),
        "searcher": run.searcher,
        "space": run.space,
        "searcher_options": {name: value for name, value in run.options.items() if name != WHERE},
        "seed": run.seed,
        "cores": task.target.cores,
        "remeasure": True,
    }
    return "\n".join(
        (
            *(() if short else ("from pathlib import Path", "")),
            "from planish import Budget, Settings, tune",
            "",
            *((f"# '{run.searcher}' is no installed searcher: choose another one.",) if submitted else ()),
            *(("# The constraint where= is not stored: add yours to the settings.",) if constrained else ()),
            *(() if short else ("# The program's whole text; it is too long to be shown here.",)),
            f"program = {task.program!r}" if short else "program = Path('program').read_text()",
            "settings = Settings(",
            *(f"    {name}={value!r}," for name, value in settings.items()),
            ")",
            f"tune(program, budget=Budget(trials={max(1, run.trials)}), settings=settings)",
        )
    )


TEXT_MAX = 200_000
DETAIL_MAX = 4_000
STEPS_MAX = 20_000
_GROUPS_MAX = 50

# A report has at most 1.5 MB: some 0.55 are the code of the charts and the page itself, 0.4 the charts.
_TEXT_BYTES = 300_000
_DETAIL_BYTES = 100_000
_STEPS_BYTES = 100_000


def common_limit(texts: Iterable[str], most: int, budget: int) -> int:
    """Return how many characters of each text are shown, so that together they fit into a part of the page.

    Args:
        texts: that are shown.
        most: characters of each, at most.
        budget: bytes of all of them, as HTML.
    """
    known = [text[:most] for text in texts]
    while known and sum(len(escape(text).encode(errors="backslashreplace")) for text in known) > budget:
        most = most * 3 // 4
        known = [text[:most] for text in known]
    return most


def _limits(
    result: Result, groups: Sequence[FailureGroup], proposals: Sequence[Proposal]
) -> Mapping[str, int]:
    """Return the characters of each text that are shown: descriptions, details of failures, steps."""
    described = (result.description, *result.descriptions)
    texts = [result.stored.program, *(text for each in described for text in each.values())]
    details = [text for each in groups for text in (each.reason, each.detail, str(each.example))]
    comparison = result.comparison
    finalists = (*comparison.finalists, *comparison.unmeasured) if comparison else ()
    steps = [*(each.candidate for each in finalists), *(each.trial.candidate for each in proposals)]
    return {
        "text_max": common_limit(texts, TEXT_MAX, _TEXT_BYTES),
        "detail_max": common_limit(details, DETAIL_MAX, _DETAIL_BYTES),
        "steps_max": common_limit(map(str, steps), STEPS_MAX, _STEPS_BYTES),
    }


def run_page(result: Result) -> str:
    """Return a run's report as HTML.

    Raises:
        StoreError: the store cannot be read.
        ProgramError: the level does not have a step of a trial.
    """
    return render("report.html.jinja", _contents(result, model_section(result), policy_section(result)))


def render(template: str, *contents: Mapping[str, Any], **more: Any) -> str:
    """Fill a template of reports, with the code of the charts."""
    return templates("planish.report").get_template(template).render(*contents, **more, plotly=_plotly())


def templates(*packages: str) -> Environment:
    """Return the templates of packages, the first before the next, with filters for numbers."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("amount", "duration", "interval", "label", "multiple", "number", "shorten")
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters.update({name: getattr(wording, name) for name in names})
    environment.filters["title_of"] = wording.title  # `title` is one of Jinja's own
    return environment


def charts_code() -> bytes:
    """Return the code that draws charts in a browser."""
    return (files("planish.report") / "static" / "plotly-basic.min.js").read_bytes()


def _plotly() -> str:
    """Return the code of the charts, compressed and in letters."""
    return b64encode(gzip.compress(charts_code(), mtime=0)).decode("ascii")


def _contents(result: Result, model: ModelSection | None, proposals: Sequence[Proposal]) -> Mapping[str, Any]:
    front = result.front
    stages = stage_times(result.stored_trials, result.run.seconds)
    groups, counts = failure_groups(result.stored_trials), _counts(result)
    return {
        "result": result,
        "objective": result.objective,
        "verdict": verdict_of(result),
        "words": wording.words(result.objective),
        "captions": captions(result),
        "comparison": result.comparison,
        "front": front_table(front) if front else None,
        "grids": [effect_grids(member, front.objectives) for member in front.finalists] if front else [],
        "flops": flops_of(result.best_trial, result.objective),
        "stages": stages,
        "meaning": MEANING,
        "failed": counts.failed,
        "tried": counts.tried,
        "failures": groups[:_GROUPS_MAX],
        "other_failures": sum(group.count for group in groups[_GROUPS_MAX:]),
        "provenance": provenance(result, counts),
        "repeat": repeat(result),
        "charts": _charts(result, model),
        "policy_section": proposals,
        **_limits(result, groups[:_GROUPS_MAX], proposals),
    }


def _charts(result: Result, model: ModelSection | None) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the figures of each section."""
    from planish import plot

    others = [objective.name for objective in result.stored.objectives[1:]]
    sections: Mapping[str, Sequence[Callable[[], Any]]] = {
        "search": [
            partial(plot.history, result, over=axis, template=plot.PLAIN) for axis in ("trials", "time")
        ],
        "finalists": [partial(draw, result, template=plot.PLAIN) for draw in (plot.comparison, plot.samples)],
        "tradeoffs": [
            partial(plot.pareto_front, result, against=name, template=plot.PLAIN) for name in others
        ],
        "steps": [
            partial(draw, result, template=plot.PLAIN)
            for draw in (plot.parallel_coordinates, plot.importances)
        ],
        "growth": [partial(plot.hypervolume, result, template=plot.PLAIN)] if others else [],
        "time": [partial(plot.stages, result, of=whole, template=plot.PLAIN) for whole in ("run", "trial")],
        "model": [
            partial(plot.predictions, result, template=plot.PLAIN),
            partial(plot.rank_correlation, result, template=plot.PLAIN),
            partial(plot.importances, result, of="features", template=plot.PLAIN),
        ]
        if model
        else [],
    }
    return {
        name: [figure for draw in draws if (figure := drawn(draw)) is not None]
        for name, draws in sections.items()
    }


def drawn(draw: Callable[[], Any]) -> Mapping[str, Any] | None:
    """Return a figure as JSON; None where there is nothing to draw."""
    from planish.plot import NothingToDrawError

    try:
        return draw().to_plotly_json()
    except NothingToDrawError:
        return None
