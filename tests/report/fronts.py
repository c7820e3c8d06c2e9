"""Finalists of runs with several objectives, as the store holds them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planish.core import Candidate, Objective
from planish.store import Finalist
from report.planks import TIME, Saw

ERROR = Objective("error", exact=True)
BOTH = (TIME, ERROR)

REFERENCE = {"name": "tree.mlir", "objectives": {"time_s": 3e-3, "error": 0.2}}
SCORES = {"error": 0.11, "error_validation": 0.12, "error_final": 0.13}


@dataclass(frozen=True)
class Cut:
    """A finalist: who it is, what it measured, and what is said of it.

    Args:
        places: of its steps.
        time_s: its median; 2 ms is the baseline's.
        error: its error; 0.2 is the baseline's.
        time: the verdict on its time.
        agrees: whether the second opinion does.
        searched: how many steps it had.
        effects: as stored.
        unseen: its scores at the end; None for as many times the baseline's as its error is.
    """

    places: tuple[int, ...]
    time_s: float
    error: float
    time: str
    agrees: bool | None = True
    searched: int = 5
    effects: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unseen: Mapping[str, float] | None = None

    def finalist(self) -> Finalist:
        """Give what the store holds."""
        ratio, error = self.time_s / 2e-3, self.error / 0.2
        scores = self.unseen
        if scores is None:
            scores = {name: self.error * value / 0.2 for name, value in SCORES.items()}
        objectives: dict[str, dict[str, Any]] = {
            "time_s": {
                "median": self.time_s,
                "ratio": [ratio, ratio * 0.9, ratio * 1.1],
                "verdict": self.time,
                "baseline": 2e-3,
            },
            "error": {
                "median": self.error,
                "ratio": [error, error, error],
                "verdict": _verdict(scores),
                "baseline": 0.2,
            },
        }
        if self.agrees is False:
            for told in objectives.values():
                told["verdict"] = "disputed" if told["verdict"] == "faster" else told["verdict"]
        candidate = Candidate(tuple(map(Saw, self.places)))
        data: dict[str, Any] = {
            "hash": candidate.hash,
            "verdict": self.time,
            "median": self.time_s,
            "samples": [self.time_s] * 5,
            "ratio": [ratio, ratio * 0.9, ratio * 1.1],
            "baseline": {"median": 2e-3, "samples": [2e-3] * 5},
            "objectives": objectives,
            "scores": dict(scores),
            "baseline_scores": SCORES,
            "second_opinion": {
                "agrees": self.agrees,
                "difference": 0.5 if self.agrees is False else 0.0,
                "why": "other numbers" if self.agrees is False else "",
            },
            "edits": {"searched": self.searched, "left": len(self.places)},
            "effects": dict(self.effects),
            "trial": {"time_s": self.time_s * 0.9, "error": self.error},
            "notes": [],
            "reference": REFERENCE,
        }
        return Finalist(candidate, 1 / ratio, data)


def _verdict(scores: Mapping[str, float]) -> str:
    held_back = scores.get("error_validation")
    if held_back is None:
        return "failed"
    ratio = held_back / SCORES["error_validation"]
    return "no difference" if ratio == 1 else "faster" if ratio < 1 else "slower"


EFFECTS = {
    "alone": [
        {"step": 0, "values": {"time_s": 0.9, "error": -0.05}},
        {"step": 1, "values": {}, "why": "not legal alone"},
        {"step": 2, "values": {"time_s": 1.01, "error": 0.01}},
    ],
    "pairs": [
        {
            "steps": [0, 1],
            "values": {"time_s": 0.5, "error": -0.05},
            "additive": {"time_s": False, "error": True},
        },
        {"steps": [0, 2], "values": {}, "additive": {}, "why": "fails: timeout"},
    ],
}
FRONT = (
    Cut((0,), 0.5e-3, 0.9, "faster"),
    Cut((1, 2, 3), 1e-3, 0.2, "faster", effects=EFFECTS),
    Cut((4, 5), 2e-3, 0.1, "no difference", searched=2),
    Cut((6,), 1.9e-3, 0.05, "faster", agrees=False),
)
