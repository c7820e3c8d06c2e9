"""What the steps of a front's member do alone, in pairs, and some by threes (GEVO-ML, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from planish.core import Effect, Objective
from planish.report.wording import label, multiple, number
from planish.results.comparison import Finalist

_SMALL = 0.02
"""Ratios nearer to 1 are not coloured."""


@dataclass(frozen=True)
class GridCell:
    """An effect beside the baseline.

    Args:
        text: a ratio where there is noise, else a difference; a dash where there is no value.
        kind: how it looks.
        together: whether two steps do something else than each alone: epistasis.
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
        triples: the places of three steps, from 1, with their effect.
    """

    objective: Objective
    rows: tuple[tuple[GridCell, ...], ...]
    triples: tuple[tuple[str, GridCell], ...] = ()

    @property
    def name(self) -> str:
        """What is in the cells."""
        what = "difference to the baseline" if self.objective.exact else "times the baseline's"
        return f"{label(self.objective)}, {what}"


def effect_grids(member: Finalist, objectives: Sequence[Objective]) -> list[Grid]:
    """Arrange what is known of a member's steps, one grid for each objective; none where nothing is known."""
    if not member.alone:
        return []
    effects = {tuple(sorted((e.steps * 2)[:2])): e for e in (*member.alone, *member.pairs)}
    count = len(member.candidate.steps)
    return [
        Grid(
            o,
            tuple(tuple(_cell(effects.get((i, j)), o) for j in range(i, count)) for i in range(count)),
            tuple((", ".join(str(i + 1) for i in e.steps), _cell(e, o)) for e in member.triples),
        )
        for o in objectives
    ]


def _cell(effect: Effect | None, objective: Objective) -> GridCell:
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
