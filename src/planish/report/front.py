"""The front that a run with several objectives found, as measured again at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planish.core import Candidate, Objective, held_back
from planish.store.records import Finalist

WORSE = ("slower", "disputed", "failed")


@dataclass(frozen=True)
class Judged:
    """One objective of a member.

    Args:
        median: in the objective's unit.
        gain: how many times better than the baseline; None where there is no ratio.
        interval: both ends of the gain's confidence interval; None as above, and where there is no noise.
        verdict: by the comparison, or by `held_back` where there is that; "faster" means better, whatever
            the objective is.
        held_back: the same on examples that the search did not see; None where it was not scored on any.
    """

    median: float
    gain: float | None = None
    interval: tuple[float, float] | None = None
    verdict: str = ""
    held_back: float | None = None


@dataclass(frozen=True)
class Member:
    """One of the front, or what it is compared with.

    Args:
        name: `#1`, `baseline`, or the reference's name.
        candidate: None for what the front is compared with.
        values: by objective name.
        scores: what data that the search did not see gives: name to value.
        agrees: whether the second opinion does; None where it was not asked, or has no answer.
        why: what the second opinion says where it does not agree.
        searched: how many steps it had when the search ended; None where that is not known.
        trial: its values as the search measured them.
        effects: of its steps, as the store holds them: `alone` and `pairs`.
        notes: what could not be done for it.
    """

    name: str
    candidate: Candidate | None
    values: Mapping[str, Judged]
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    agrees: bool | None = None
    why: str = ""
    searched: int | None = None
    trial: Mapping[str, float] = field(default_factory=dict[str, float])
    effects: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()

    @property
    def unharmed(self) -> bool:
        """Whether it is worse than the baseline in nothing."""
        return not any(judged.verdict in WORSE for judged in self.values.values())


@dataclass(frozen=True)
class Front:
    """All of them.

    Args:
        members: the best by the leading objective first.
        baseline: what they are compared with.
        reference: another baseline; None where there is none.
    """

    members: tuple[Member, ...]
    baseline: Member
    reference: Member | None


def front_at_end(finalists: Sequence[Finalist], objectives: Sequence[Objective]) -> Front | None:
    """Read a front from what is stored of finalists; None with one objective or nothing compared."""
    if len(objectives) < 2 or not finalists or "objectives" not in finalists[0].data:
        return None
    first = finalists[0].data
    scores: Mapping[str, float] = first.get("baseline_scores", {})
    base = {
        name: Judged(told["baseline"], held_back=held_back(name, scores))
        for name, told in first["objectives"].items()
    }
    return Front(
        tuple(_member(f"#{rank}", f, objectives) for rank, f in enumerate(finalists, 1)),
        Member("baseline", None, base, scores),
        _reference(first["reference"]) if "reference" in first else None,
    )


def _reference(told: Mapping[str, Any]) -> Member:
    return Member(told["name"], None, {name: Judged(value) for name, value in told["objectives"].items()})


def _member(name: str, finalist: Finalist, objectives: Sequence[Objective]) -> Member:
    data = finalist.data
    opinion: Mapping[str, Any] = data.get("second_opinion", {})
    scores: Mapping[str, float] = data.get("scores", {})
    judged = {o.name: _judged(data["objectives"][o.name], o) for o in objectives}
    return Member(
        name,
        finalist.candidate,
        {name: replace(each, held_back=held_back(name, scores)) for name, each in judged.items()},
        scores,
        opinion.get("agrees"),
        opinion.get("why", ""),
        data.get("edits", {}).get("searched"),
        data.get("trial", {}),
        data.get("effects", {}),
        tuple(data.get("notes", ())),
    )


def _judged(told: Mapping[str, Any], objective: Objective) -> Judged:
    """Turn (value, low, high) of objective / baseline into gains."""
    if told["ratio"] is None:
        return Judged(told["median"], verdict=told["verdict"])
    value, low, high = told["ratio"]
    if objective.direction == "down":
        value, low, high = (1 / r if r else math.inf for r in (value, high, low))
    return Judged(told["median"], value, None if objective.exact else (low, high), told["verdict"])
