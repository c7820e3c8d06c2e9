"""Page of a run: its verdict, charts, tables, the table of a Pareto front, and provenance."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from planish.core import (
    HELDOUT,
    Attribution,
    Objective,
    TargetError,
    canonical_json,
    is_within,
    registry,
    within,
    wording,
)
from planish.core.wording import amount, duration, label, multiple, number, outcome_words, when
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.constraint import WHERE
from planish.tuning.predictions import ModelSection, Proposal, model_section, policy_section
from planish.tuning.result import EINSUM, Result
from planish.tuning.stored_run import (
    MEANING,
    FailureGroup,
    TrialSources,
    by_time,
    failure_groups,
    flops_of,
    stage_times,
)
from planish.tuning.verdict import verdict_of

if TYPE_CHECKING:
    from jinja2 import Environment

NONE = "\N{EM DASH}"


@dataclass(frozen=True)
class FrontTable:
    """Texts.

    Args:
        columns: the heads.
        right: which of them hold numbers.
        scores: which of them hold what was measured at the end alone.
        rows: a cell for each column; the baselines first.
        note: what the columns are, where it is not obvious; else empty.
    """

    columns: tuple[str, ...]
    right: frozenset[str]
    scores: frozenset[str]
    rows: tuple[tuple[str, ...], ...]
    note: str


def front_table(front: Comparison) -> FrontTable:
    """Write a front, as measured again, as a table."""
    sides, objectives = front.sides, front.objectives
    scores = _scores(sides, objectives)
    noisy = [o for o in objectives if not o.exact]
    heads = [head for o in objectives for head in ((label(o), _gain(o)) if o in noisy else (label(o),))]
    numbers = (*heads, *scores.values(), "edits")
    return FrontTable(
        ("", *numbers, "cross-check", "verdict"),
        frozenset(numbers),
        frozenset(scores.values()),
        tuple(
            _row(
                "secondary" if member is front.secondary_baseline else member.name,
                member,
                scores,
                front.baseline,
            )
            for member in sides
        )
        + tuple(
            (each.name, *[NONE] * (len(numbers) - 1), _edits(each), NONE, each.status_text)
            for each in front.unmeasured
        ),
        _note(front, scores),
    )


def _note(front: Comparison, scores: Mapping[str, str]) -> str:
    exact = ", ".join(label(o) for o in front.objectives if o.exact)
    columns = [f"{exact}: as in the search", f"{', '.join(scores.values())}: at the end"] if scores else []
    held = [label(o) for o in front.objectives if front.baseline.heldout_value(o.name) is not None]
    columns += [f"verdict on {', '.join(held)}: by {HELDOUT}"] if held else []
    if any(is_within(score) for member in front.sides for score in member.scores):
        columns.append("±: the difference to the baseline, 95 %")
    named = [f"secondary: {front.secondary_baseline.name}"] if front.secondary_baseline else []
    return "; ".join((*columns, *named))


def _gain(objective: Objective) -> str:
    return "gain" if objective.unit == "s" else f"gain in {label(objective)}"


def _scores(sides: Sequence[Compared], objectives: Sequence[Objective]) -> Mapping[str, str]:
    """Name the columns of the scores: `error_final` is `final`; what repeats an objective is left out."""
    names = dict.fromkeys(name for member in sides for name in member.scores if not is_within(name))
    known = {o.name for o in objectives}
    heads: dict[str, str] = {}
    for name in names:
        if name not in known:
            heads[name] = next((name[len(o) + 1 :] for o in known if name.startswith(f"{o}_")), name)
        elif any(m.scores[name] != m.measured[name].median for m in sides if name in m.scores):
            heads[name] = "search"
    return heads


def _row(name: str, member: Compared, scores: Mapping[str, str], baseline: Compared) -> tuple[str, ...]:
    objectives = [each.objective for each in baseline.measured.values()]
    cells = [cell for o in objectives for cell in _cells(member, o)]
    found = [_score(member, score) for score in scores]
    if not isinstance(member, Finalist):
        return (name, *cells, *found, "", "", "")
    cross_check = {True: "agrees", False: "differs", None: NONE}[member.cross_check.agrees]
    verdicts = [_verdict(member, o, baseline) for o in objectives]
    return (name, *cells, *found, _edits(member), cross_check, ", ".join(dict.fromkeys(verdicts)))


def _verdict(member: Finalist, objective: Objective, baseline: Compared) -> str:
    if member.noise_decides(objective.name, baseline):
        return f"{label(objective)} within noise"
    return outcome_words(objective, member.measured[objective.name].verdict)


def _score(member: Compared, score: str) -> str:
    if score not in member.scores:
        return NONE
    known = member.scores.get(within(score))
    # The baseline differs from itself by nothing.
    sure = known is None or not isinstance(member, Finalist)
    return number(member.scores[score]) + ("" if sure else f" ± {known:.2g}")


def _cells(member: Compared, objective: Objective) -> list[str]:
    measured = member.measured[objective.name]
    value = amount(measured.median, objective.unit)
    if objective.exact:
        return [value]
    return [value, multiple(measured.gain.value) if isinstance(member, Finalist) else ""]


def _edits(member: Finalist) -> str:
    left = len(member.candidate.steps)
    return str(left) if member.n_steps_found == left else f"{left} of {member.n_steps_found}"


_SMALL = 0.02
"""Ratios nearer to 1 are not colored."""


@dataclass(frozen=True)
class GridCell:
    """An effect beside the baseline.

    Args:
        text: a ratio where there is noise, else a difference; a dash where there is no value.
        kind: how it looks.
        together: two steps do something else than each alone (epistasis).
        why: where there is no value.
    """

    text: str
    kind: Literal["better", "worse", ""] = ""
    together: bool = False
    why: str = ""


@dataclass(frozen=True)
class Grid:
    """The effects by one objective.

    Args:
        objective: which.
        rows: for each step its effect alone, and then with each later one.
        triples: the numbers of three steps, from 1, with their effect.
    """

    objective: Objective
    rows: tuple[tuple[GridCell, ...], ...]
    triples: tuple[tuple[str, GridCell], ...] = ()

    @property
    def name(self) -> str:
        """Return the contents of the cells."""
        what = "difference to the baseline" if self.objective.exact else "times the baseline's"
        return f"{label(self.objective)}, {what}"


def effect_grids(member: Finalist, objectives: Sequence[Objective]) -> list[Grid]:
    """Arrange what is known of a member's steps, one grid for each objective; none where nothing is known."""
    if not member.main_effects:
        return []
    # By the rows and columns of a grid: a single step is on the diagonal.
    effects = {(e.steps * 2)[:2]: e for e in (*member.main_effects, *member.interactions) if len(e.steps) < 3}
    triples = [e for e in member.interactions if len(e.steps) == 3]
    count = len(member.candidate.steps)
    return [
        Grid(
            o,
            tuple(tuple(_effect_cell(effects.get((i, j)), o) for j in range(i, count)) for i in range(count)),
            tuple((", ".join(str(i + 1) for i in e.steps), _effect_cell(e, o)) for e in triples),
        )
        for o in objectives
    ]


def _effect_cell(effect: Attribution | None, objective: Objective) -> GridCell:
    value = effect.values.get(objective.name) if effect else None
    if effect is None or value is None:
        return GridCell("—", why=effect.why if effect else "not measured")
    together = effect.additive.get(objective.name) is False
    change = value if objective.exact else value - 1
    less = "better" if objective.direction == "down" else "worse"
    more = "worse" if less == "better" else "better"
    small = change == 0 if objective.exact else abs(change) < _SMALL
    text = f"{'+' if value > 0 else ''}{number(value)}" if objective.exact else multiple(value)
    return GridCell(
        text.replace("-", "\N{MINUS SIGN}"), "" if small else less if change < 0 else more, together
    )


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
    unchanged = (t.index + 1 for t in result.stored_trials if t.candidate == result.baseline_candidate)
    own = next((f" Trial {number:,} is the baseline, as the search measured it." for number in unchanged), "")
    counts = f"{len(result.stored_trials):,} trials{cached}; {failed}.{own}{thinned}"
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
        sources: the hosts that measured them, and the clients that submitted them.
    """

    tried: int
    failed: int
    cached: int
    sources: TrialSources


def _counts(result: Result) -> TrialCounts:
    sources = TrialSources().add(result.stored_trials)
    return TrialCounts(len(result.stored_trials), result.failed, result.cached, sources)


def provenance(result: Result, counts: TrialCounts | None = None) -> Mapping[str, Mapping[str, str]]:
    """List what decided the run: title to table, name to text.

    Args:
        result: of the run.
        counts: of its trials; None counts them.
    """
    run, task, counts = result.run, result.stored, counts or _counts(result)
    cached = f", {counts.cached:,} taken from the store" if counts.cached else ""
    return {
        "run": {
            "run": run.id,
            "status": run.status,
            "started": when(run.started),
            "ended": when(run.ended),
            "host": run.host,
            **counts.sources.texts(),
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
    selected = run.searcher == EINSUM
    submitted = not selected and run.searcher not in registry.names(_SEARCHERS)
    settings = {
        "level": task.level,
        "objectives": tuple(o.name for o in task.objectives),
        "searcher": "" if selected else run.searcher,
        "space": run.space,
        "searcher_options": {} if selected else {k: v for k, v in run.own_options.items() if k != WHERE},
        "seed": run.seed,
        "cores": task.target.cores,
        "remeasure": True,
    }
    return "\n".join(
        (
            *(() if short else ("from pathlib import Path", "")),
            "from planish import Budget, Settings, tune",
            "",
            *(
                (f"# '{run.searcher}' is not an installed searcher: choose another one.",)
                if submitted
                else ()
            ),
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
    """Return a figure as JSON; None where there is nothing to draw, or its library is not installed."""
    from planish.plot import NothingToDrawError

    try:
        return draw().to_plotly_json()
    except (NothingToDrawError, TargetError):
        return None
