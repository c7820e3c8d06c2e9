"""Tables of a Pareto front: its members beside the baselines, and the effects of a member's steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from planish.core import HELDOUT, Attribution, Objective, is_within, within
from planish.core.wording import amount, label, multiple, number, outcome_words
from planish.tuning.comparison import Compared, Comparison, Finalist

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
        """Return what is in the cells."""
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
