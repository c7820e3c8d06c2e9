"""The table of a front: what it is compared with, and its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planish.core import HELD_BACK, Objective
from planish.report.front import Front, Judged, Member
from planish.report.wording import amount, label, multiple, number, outcome_words

NONE = "\N{EM DASH}"


@dataclass(frozen=True)
class FrontTable:
    """Texts.

    Args:
        columns: the heads.
        right: which of them hold numbers.
        scores: which of them hold what was measured at the end alone.
        rows: a cell for each column; the baselines first.
        members: who is in each row.
        note: what the columns are, where that needs to be said; else empty.
    """

    columns: tuple[str, ...]
    right: frozenset[str]
    scores: frozenset[str]
    rows: tuple[tuple[str, ...], ...]
    members: tuple[Member, ...]
    note: str


def front_table(front: Front, objectives: Sequence[Objective]) -> FrontTable:
    """Write a front as a table.

    Args:
        front: as measured again.
        objectives: of the task.
    """
    everybody = (front.baseline, *([front.reference] if front.reference else []), *front.members)
    scores = _scores(everybody, objectives)
    noisy = [o for o in objectives if not o.exact]
    heads = [head for o in objectives for head in ((label(o), _gain(o)) if o in noisy else (label(o),))]
    numbers = (*heads, *scores.values(), "edits")
    return FrontTable(
        ("", *numbers, "second opinion", "verdict"),
        frozenset(numbers),
        frozenset(scores.values()),
        tuple(
            _row("reference" if member is front.reference else member.name, member, objectives, scores)
            for member in everybody
        ),
        everybody,
        _note(front, objectives, scores),
    )


def _note(front: Front, objectives: Sequence[Objective], scores: Mapping[str, str]) -> str:
    exact = ", ".join(label(o) for o in objectives if o.exact)
    columns = [f"{exact}: as in the search", f"{', '.join(scores.values())}: at the end"] if scores else []
    held = [label(o) for o in objectives if front.baseline.values[o.name].held_back is not None]
    columns += [f"verdict on {', '.join(held)}: by {HELD_BACK}"] if held else []
    named = [f"reference: {front.reference.name}"] if front.reference else []
    return "; ".join((*columns, *named))


def _gain(objective: Objective) -> str:
    return "gain" if objective.unit == "s" else f"gain in {label(objective)}"


def _scores(everybody: Sequence[Member], objectives: Sequence[Objective]) -> Mapping[str, str]:
    """Name the columns of the scores: `error_final` is `final`; what repeats an objective is left out."""
    names = dict.fromkeys(name for member in everybody for name in member.scores)
    known = {o.name for o in objectives}
    heads: dict[str, str] = {}
    for name in names:
        if name not in known:
            heads[name] = next((name[len(o) + 1 :] for o in known if name.startswith(f"{o}_")), name)
        elif any(m.scores[name] != m.values[name].median for m in everybody if name in m.scores):
            heads[name] = "search"
    return heads


def _row(
    name: str, member: Member, objectives: Sequence[Objective], scores: Mapping[str, str]
) -> tuple[str, ...]:
    cells = [cell for o in objectives for cell in _cells(member.values.get(o.name), o)]
    found = [number(member.scores[score]) if score in member.scores else NONE for score in scores]
    if member.candidate is None:
        return (name, *cells, *found, "", "", "")
    opinion = {True: "agrees", False: "differs", None: NONE}[member.agrees]
    said = [outcome_words(o, member.values[o.name].verdict) for o in objectives]
    return (name, *cells, *found, _edits(member), opinion, ", ".join(dict.fromkeys(said)))


def _cells(judged: Judged | None, objective: Objective) -> list[str]:
    value = NONE if judged is None else amount(judged.median, objective.unit)
    if objective.exact:
        return [value]
    return [value, multiple(judged.gain) if judged and judged.gain is not None else ""]


def _edits(member: Member) -> str:
    left = len(member.candidate.steps) if member.candidate else 0
    return str(left) if member.searched in (None, left) else f"{left} of {member.searched}"
