"""Figures of the steps of candidates: parallel coordinates, and the importance of each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import plotly.graph_objects as go

from planish.core import Candidate, Step, TargetError, Trial, rng
from planish.core.arguments import check_whole_number
from planish.core.installation import install_command
from planish.core.wording import amount, label, scale
from planish.plot.axes import BLUE, COUNTS, GREEN, GREY, LIGHT, ORANGE, bars, blank
from planish.plot.runs import NothingToDrawError, check_choice, one_result
from planish.plot.search import thinned
from planish.tuning.result import Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value = float | str
_LENGTH = "number of steps"
_LEAST_SHARE = 0.02
"""Steps that fewer of the candidates have are counted together with their like."""
_CATEGORIES = 20
"""A column of texts that has more different ones is left out."""


@dataclass(frozen=True)
class Column:
    """A property of candidates, such as the factor of a split or how often a pass runs.

    Args:
        name: the step's name and its first option, where that is a name or a number.
        values: of each candidate: the other options, else how often it has the step; 0 or "" without it.
    """

    name: str
    values: tuple[Value, ...]

    @property
    def levels(self) -> list[Value]:
        """The different values: numbers sorted, then texts."""
        return sorted(set(self.values), key=lambda value: (isinstance(value, str), value))

    @property
    def codes(self) -> list[float]:
        """The values as numbers: texts by their position among all of them."""
        if not any(isinstance(value, str) for value in self.values):
            return [float(value) for value in self.values]
        index = {value: float(position) for position, value in enumerate(self.levels)}
        return [index[value] for value in self.values]


def columns_of(candidates: Sequence[Candidate]) -> list[Column]:
    """Write candidates of any level as a table, without the columns in which all are alike.

    A step is a column of its own by its first option; a second one of the same candidate has the next column:
    `Split m`, `Split m (2)`. The order of steps is not in the table.
    """
    rows = [_row(candidate) for candidate in candidates]
    known = Counter(name for row in rows for name in row)
    rare = {name for name, count in known.items() if count < _LEAST_SHARE * len(rows)}
    merged = [_merged(row, rare) for row in rows]
    names = dict.fromkeys(name for row in merged for name in row)
    columns = [Column(name, _filled([row.get(name) for row in merged])) for name in names]
    lengths = Column(_LENGTH, tuple(float(len(candidate.steps)) for candidate in candidates))
    return [each for each in (lengths, *columns) if len(each.levels) > 1 and _is_narrow(each)]


def _is_narrow(column: Column) -> bool:
    return len(column.levels) <= _CATEGORIES or not any(isinstance(value, str) for value in column.values)


def _filled(values: Sequence[Value | None]) -> tuple[Value, ...]:
    """Return the values of a column, of which None is a candidate without the step."""
    if not any(isinstance(value, str) for value in values):
        return tuple(0.0 if value is None else value for value in values)
    return tuple("" if value is None else value if isinstance(value, str) else "default" for value in values)


def _row(candidate: Candidate) -> dict[str, Value]:
    """Return a candidate's values by column name."""
    row: dict[str, Value] = {}
    for step in candidate.steps:
        name, value = _name_and_value(step)
        if value is None:  # nothing but the name: it is counted
            row[name] = 1.0 + float(row.get(name, 0.0))
            continue
        numbered = name
        for count in range(2, len(candidate.steps) + 2):
            if numbered not in row:
                break
            numbered = f"{name} ({count})"
        row[numbered] = value
    return row


def _name_and_value(step: Step) -> tuple[str, Value | None]:
    """Return a step's name with its first option, and its other options that are not the usual ones."""
    name, options = type(step).__name__, {each.name: getattr(step, each.name) for each in fields(step)}
    usual = {each.name: each.default for each in fields(step) if each.default is not MISSING}
    first = next(iter(options), None)
    if first is not None and isinstance(options[first], (str, int)) and first not in usual:
        name = f"{name} {options.pop(first)}"
    others = [value for option, value in options.items() if option not in usual or value != usual[option]]
    if not others:
        return name, None
    if len(others) == 1 and isinstance(others[0], (int, float)):
        return name, float(others[0])
    return name, ", ".join(_text(value) for value in others)


def _text(value: object) -> str:
    return " ".join(map(_text, value)) if isinstance(value, (tuple, list)) else str(value)


def _merged(row: Mapping[str, Value], rare: set[str]) -> dict[str, Value]:
    """Count the rare columns of a row by the names of their steps."""
    kept = {name: value for name, value in row.items() if name not in rare}
    others = Counter(f"other {name.partition(' ')[0]}" for name in row if name in rare)
    return {**kept, **{name: float(count) for name, count in others.items()}}


LIBRARIES = ("sklearn", "xgboost")
"""Packages of the models of importance; the first that is installed is taken."""

_LEAST_TRIALS = 20
_MOST_TRIALS = 2000
_FOLDS = 3
_SHUFFLES = 3
_LEAST_ACCURACY = 0.1
"""Below this share of the variance that a model explains, its importances are noise."""


@dataclass(frozen=True)
class Importances:
    """Importance of the columns of a run's candidates.

    Args:
        rows: names and importances, the greatest first.
        accuracy: the share of the variance that the model explains of trials that it has not seen (R²).
        model: which it is.
    """

    rows: Sequence[tuple[str, float]]
    accuracy: float
    model: str


def importances_of(
    columns: Sequence[Column],
    costs: Sequence[float],
    seed: int = 0,
    libraries: Sequence[str] = LIBRARIES,
) -> Importances:
    """Compute permutation importance: the accuracy that a model loses where one column is shuffled.

    The model learns the order of the costs from two thirds of the trials, and predicts the others, three
    times over (Breiman 2001, section 10, on held-out trials instead of out-of-bag ones).

    Args:
        columns: of the candidates.
        costs: of the candidates; less is better.
        seed: of the folds, the model and the shuffling.
        libraries: of the model; the first that is installed is taken.

    Raises:
        TargetError: neither scikit-learn nor XGBoost is installed.
    """
    import numpy as np

    features = np.array([column.codes for column in columns], np.float32).T
    ranks = np.unique(np.array(costs), return_inverse=True)[1].astype(np.float32)
    draw = rng(seed)
    fold = draw.permutation(len(ranks)) % _FOLDS
    variance = float(ranks.var()) or 1.0
    model, fit = _model(libraries, seed)
    errors, losses = np.zeros(_FOLDS), np.zeros(len(columns))
    for held in range(_FOLDS):
        predict = fit(features[fold != held], ranks[fold != held])
        unseen, truth = features[fold == held], ranks[fold == held]
        # All at once: most of the time of a small prediction by a forest is spent on its hundred calls.
        asked = np.tile(unseen, (1 + _SHUFFLES * len(columns), 1, 1))
        for number, table in enumerate(asked[1:]):
            index = number // _SHUFFLES
            table[:, index] = draw.permutation(table[:, index])
        predicted = predict(asked.reshape(-1, len(columns))).reshape(asked.shape[:2])
        errors[held], *shuffled = ((predicted - truth) ** 2).mean(axis=1)
        losses += np.reshape(shuffled, (len(columns), _SHUFFLES)).mean(axis=1) - errors[held]
    shares = losses / (_FOLDS * variance)
    rows = sorted(zip((each.name for each in columns), map(float, shares), strict=True), key=lambda r: -r[1])
    return Importances(rows, 1 - float(errors.mean()) / variance, model)


Fit = Callable[
    ["NDArray[np.float32]", "NDArray[np.float32]"], Callable[["NDArray[np.float32]"], "NDArray[np.float32]"]
]


def _model(libraries: Sequence[str], seed: int) -> tuple[str, Fit]:
    """Choose the model: scikit-learn's forest, else boosted trees."""
    for library in filter(find_spec, libraries):
        name, fit = _MODELS[library]
        return name, partial(fit, seed)
    raise TargetError(
        "importances need scikit-learn or XGBoost, and neither is installed",
        f"pip install scikit-learn, or: {install_command('learn')}.",
    )


def _forest(
    seed: int, features: NDArray[np.float32], targets: NDArray[np.float32]
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    import numpy as np
    from sklearn.ensemble import RandomForestRegressor  # pyright: ignore[reportMissingImports]

    forest = RandomForestRegressor(n_estimators=100, min_samples_leaf=2, random_state=seed, n_jobs=1)
    forest.fit(features, targets)
    return lambda unseen: np.asarray(forest.predict(unseen), np.float32)


def _boosted(
    seed: int, features: NDArray[np.float32], targets: NDArray[np.float32]
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    from planish.models.cost_model import Dataset
    from planish.models.trees import XgboostTrees

    trees = XgboostTrees("regression", rounds=100, depth=4, rate=0.1, columns=0.8, seed=seed)
    trees.fit(Dataset(features, targets[:, None]))
    return lambda unseen: trees.predict(unseen).mean[:, 0]


_MODELS = {"sklearn": ("random forest", _forest), "xgboost": ("boosted trees", _boosted)}


def _measured(result: Result) -> tuple[list[Trial], list[float]]:
    """Return the measured trials, each candidate once, with their costs by the leading objective.

    Of many, they are every so manieth.
    """
    known = {
        trial.candidate.hash: (trial, costs[0])
        for trial in result.stored_trials
        if (costs := trial.costs((result.objective,))) is not None
    }
    kept = thinned([*known.values()], _MOST_TRIALS)
    return [trial for trial, _ in kept], [cost for _, cost in kept]


def _table(result: Result, function: str) -> tuple[list[Column], list[Trial], list[float]]:
    result = one_result(result, function)
    trials, costs = _measured(result)
    if len(trials) < _LEAST_TRIALS:
        what = f"run {result.run.id} measured {len(trials)} candidates"
        raise NothingToDrawError(what, f"plot.{function} needs {_LEAST_TRIALS}: search for longer.")
    columns = columns_of([trial.candidate for trial in trials])
    if not columns or len(set(costs)) < 2:
        raise NothingToDrawError(f"the candidates of run {result.run.id} do not differ", "Use another space.")
    return columns, trials, costs


def importances(
    result: Result, *, of: Literal["steps", "features"] = "steps", top: int = 15, template: str = LIGHT
) -> go.Figure:
    """Draw the importance of steps for the leading objective, or of the features that a cost model read.

    Of steps, it is the accuracy that a model of trees, which predicts the order of the trials from their
    steps, loses where the values of one step are exchanged between trials. It needs scikit-learn or XGBoost.
    Of features, it is how much worse the best candidate is predicted to be with other candidates' values of
    one feature, in standard deviations of the predictions, by the model at the end of the search.

    Args:
        result: of a run that measured 20 candidates or more.
        of: steps, or features, which are known where a cost model guided the search.
        top: how many are shown.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is not a result, too little was measured, or the model is missing.
        TargetError: neither scikit-learn nor XGBoost is installed.
    """
    check_choice("of", of, ("steps", "features"))
    check_whole_number("top", top, 1)
    if of == "features":
        result = one_result(result, "importances")
        rows: Sequence[tuple[str, float]] = result.run.importance
        if not rows:
            what = f"run {result.run.id} has no importances of features: no cost model guided it to its end"
            raise NothingToDrawError(what, 'Use searcher="model-guided", or importances of steps.')
        title = "worse with other trials' values, in deviations of predictions"
    else:
        columns, _, costs = _table(result, "importances")
        found = importances_of(columns, costs)
        if found.accuracy < _LEAST_ACCURACY:
            what = f"which steps matter in run {result.run.id} is not known: a model of trees"
            accuracy = (
                f"{what} cannot predict the order of its trials from their steps (R² {found.accuracy:.2f})"
            )
            raise NothingToDrawError(accuracy, "Search for longer.")
        rows = [(name, value) for name, value in found.rows if value > 0]
        title = f"accuracy lost when shuffled ({found.model}, R² {found.accuracy:.2f})"
    shown = rows[:top]
    colors = [GREEN if value > 0 else ORANGE for _, value in shown]
    return bars(
        template, shown, title, COUNTS, [f"{value:.2g}" for _, value in shown], marker={"color": colors}
    )


_GROUPS_MOST = 8
"""Groups of equally many candidates into which more values of a column are put."""
_LINES = 240
_AXES = 7
_GROUPS = (
    ("best 5 %", 0.05, GREEN, 2.0, 0.9),
    ("best 25 %", 0.25, BLUE, 1.0, 0.5),
    ("others", 1.0, GREY, 1.0, 0.35),
)
_LABELED = 6


def parallel_coordinates(result: Result, *, top: int = _AXES, template: str = LIGHT) -> go.Figure:
    """Draw each candidate as a line over its steps, to the value that was measured.

    Args:
        result: of a run that measured 20 candidates or more.
        top: how many columns are shown: those that explain most of the differences each by itself.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is not a result, or too little was measured.
    """
    check_whole_number("top", top, 1)
    columns, trials, costs = _table(result, "parallel_coordinates")
    objective = result.objective
    shown = _by_effect(columns, costs)[:top]
    values = [objective.cost(cost) for cost in costs]
    order = sorted(range(len(trials)), key=costs.__getitem__)
    factor, unit = scale(values[order[len(order) // 2]], objective.unit)
    last = f"{label(objective)} ({unit})" if unit else label(objective)
    drawn_axes = [*shown, Column(last, tuple(value * factor for value in _near(values, order)))]
    heights = [_heights(axis) for axis in drawn_axes]
    figure = blank(template, 460)
    figure.update_layout(margin={"l": 40, "r": 40})
    start = 0
    for name, share, color, width, opacity in _GROUPS:
        stop = max(start + 1, round(share * len(order)))
        picked = order[start:stop]
        start = stop
        # Evenly many of a group, so that a long run has no more lines than can be seen.
        picked = picked[:: max(1, -(-len(picked) // (_LINES // len(_GROUPS))))]
        x, y, texts = list[float | None](), list[float | None](), list[str]()
        for index in picked:
            hover = amount(values[index], objective.unit)
            x += [*map(float, range(len(drawn_axes))), None]
            y += [*(float(f"{height[index]:.4g}") for height in heights), None]
            texts += [*(f"{_shown(axis.values[index])}: {hover}" for axis in drawn_axes[:-1]), hover, ""]
        figure.add_scatter(
            x=x,
            y=y,
            text=texts,
            mode="lines",
            name=name,
            line={"color": color, "width": width},
            opacity=opacity,
            hovertemplate="%{text}<extra></extra>",
        )
    _draw_scales(figure, drawn_axes, heights)
    return figure


def _by_effect(columns: Sequence[Column], costs: Sequence[float]) -> list[Column]:
    """Sort columns by the share of the variance of the costs' ranks that each explains by itself.

    The share is epsilon squared, which is adjusted for the number of values (Kelley 1935). Importances, which
    include interactions, would take seconds: a library to load, and forests to fit.
    """
    import numpy as np

    ranks = np.unique(costs, return_inverse=True)[1].astype(np.float64)

    def effect(column: Column) -> float:
        codes = np.array(column.codes)
        inner = np.quantile(codes, np.arange(1, _GROUPS_MOST) / _GROUPS_MOST)
        bounds = inner if len(column.levels) > _GROUPS_MOST else sorted(set(column.codes))[1:]
        group = np.unique(np.searchsorted(bounds, codes, side="right"), return_inverse=True)[1]
        counts = np.bincount(group)
        within = float(((ranks - (np.bincount(group, ranks) / counts)[group]) ** 2).sum())
        return -within / max(1, len(ranks) - len(counts))

    return sorted(columns, key=effect, reverse=True)


def _near(values: Sequence[float], order: Sequence[int]) -> list[float]:
    """Return values, the worst as good as the end of the axis: they would press the others together."""
    best, middle = values[order[0]], values[order[len(order) // 2]]
    end = best + 3 * (middle - best)
    return [min(value, end) if middle >= best else max(value, end) for value in values]


def _heights(column: Column) -> list[float]:
    """Return the height of each candidate on a column's axis, from 0 to 1."""
    codes = column.codes
    if len(set(codes)) <= _LABELED:  # few values stand in equal distances
        index = {code: position for position, code in enumerate(sorted(set(codes)))}
        codes = [float(index[code]) for code in codes]
    low, high = min(codes), max(codes)
    return [(code - low) / ((high - low) or 1.0) for code in codes]


def _draw_scales(figure: go.Figure, columns: Sequence[Column], heights: Sequence[Sequence[float]]) -> None:
    """Draw a vertical axis for each column, with its values, or with its ends where there are many."""
    for position, (column, height) in enumerate(zip(columns, heights, strict=True)):
        figure.add_vline(position, line={"width": 1, "color": GREY})
        codes = column.codes
        order = sorted(range(len(codes)), key=lambda index: (height[index], codes[index]))
        marks = {height[index]: column.values[index] for index in order}
        if len(marks) > _LABELED:
            ends = min(marks), max(marks)
            marks = {end: marks[end] for end in ends}
        for at, value in marks.items():
            figure.add_annotation(
                x=position,
                y=at,
                text=_shown(value),
                showarrow=False,
                font={"size": 11},
                xanchor="left" if position < len(columns) - 1 else "right",
                xshift=4 if position < len(columns) - 1 else -4,
                yshift=7,
            )
    figure.update_layout(
        xaxis={
            "tickvals": list(range(len(columns))),
            "ticktext": [_cut(column.name) for column in columns],
            "range": [-0.1, len(columns) - 0.9],
            "ticklabeloverflow": "allow",
            "showgrid": False,
        },
        yaxis={"visible": False, "range": [-0.06, 1.1], "fixedrange": True},
    )


def _shown(value: Value) -> str:
    return (value or "—") if isinstance(value, str) else f"{value:,.4g}"


def _cut(text: str, limit: int = 24) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
