"""Finalists of runs with several objectives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planish.core import Attribution, Candidate, CrossCheck, Objective, Ratio, Verdict
from planish.tuning.comparison import Compared, Comparison, Finalist, Measurement
from planish.tuning.remeasure import withdraw_wins
from report.planks import TIME, Saw

ERROR = Objective("error", exact=True)
BOTH = (TIME, ERROR)

REFERENCE = Compared(
    name="tree.mlir", measured={"time_s": Measurement(TIME, 3e-3), "error": Measurement(ERROR, 0.2)}
)
SCORES = {"error": 0.11, "error_validation": 0.12, "error_final": 0.13}


@dataclass(frozen=True)
class Cut:
    """A finalist of a front, by what was measured of it.

    Args:
        cuts: the positions of its steps.
        time_s: its median; 2 ms is the baseline's.
        error: its error; 0.2 is the baseline's.
        time: the verdict on its time.
        agrees: whether the cross-check does.
        n_steps_found: how many steps it had.
        main_effects: of its steps.
        interactions: of two and of three.
        unseen: its scores at the end; None for as many times the baseline's as its error is.
    """

    cuts: tuple[int, ...]
    time_s: float
    error: float
    time: Verdict
    agrees: bool | None = True
    n_steps_found: int = 5
    main_effects: tuple[Attribution, ...] = ()
    interactions: tuple[Attribution, ...] = ()
    unseen: Mapping[str, float] | None = None

    def finalist(self) -> Finalist:
        """Return it as a side of a comparison."""
        ratio, error = self.time_s / 2e-3, self.error / 0.2
        scores = self.unseen
        if scores is None:
            scores = {name: self.error * value / 0.2 for name, value in SCORES.items()}
        time = Measurement(TIME, self.time_s, Ratio(ratio, ratio * 0.9, ratio * 1.1), self.time)
        time = replace(time, samples=(self.time_s,) * 5)
        differs = self.agrees is False
        found = Finalist(
            candidate=Candidate(tuple(map(Saw, self.cuts))),
            measured={
                "time_s": time,
                "error": Measurement(ERROR, self.error, Ratio(error, error, error), _verdict(scores)),
            },
            scores=scores,
            cross_check=CrossCheck(self.agrees, 0.5 if differs else 0.0, "other numbers" if differs else ""),
            n_steps_found=self.n_steps_found,
            trial={"time_s": self.time_s * 0.9, "error": self.error},
            main_effects=self.main_effects,
            interactions=self.interactions,
        )
        return withdraw_wins(found)


def _verdict(scores: Mapping[str, float]) -> Verdict:
    heldout = scores.get("error_validation")
    if heldout is None:
        return "failed"
    ratio = heldout / SCORES["error_validation"]
    return "same" if ratio == 1 else "better" if ratio < 1 else "worse"


ALONE = (
    Attribution((0,), {"time_s": 0.9, "error": -0.05}),
    Attribution((1,), why="not legal alone"),
    Attribution((2,), {"time_s": 1.01, "error": 0.01}),
)
PAIRS = (
    Attribution((0, 1), {"time_s": 0.5, "error": -0.05}, {"time_s": False, "error": True}),
    Attribution((0, 2), why="fails: timeout"),
)
TRIPLES = (Attribution((0, 1, 2), {"time_s": 0.25, "error": 0.0}, {"time_s": False, "error": True}),)
FRONT = (
    Cut((0,), 0.5e-3, 0.9, "better"),
    Cut((1, 2, 3), 1e-3, 0.2, "better", main_effects=ALONE, interactions=PAIRS + TRIPLES),
    Cut((4, 5), 2e-3, 0.1, "same", n_steps_found=2),
    Cut((6,), 1.9e-3, 0.05, "better", agrees=False),
)


def front(cuts: Sequence[Cut] = FRONT) -> Comparison:
    """Compare them with a baseline of 2 ms and an error of 0.2."""
    base = {"time_s": Measurement(TIME, 2e-3, samples=(2e-3,) * 5), "error": Measurement(ERROR, 0.2)}
    finalists = (replace(cut.finalist(), name=f"#{rank}") for rank, cut in enumerate(cuts, 1))
    return Comparison(tuple(finalists), Compared(name="baseline", measured=base, scores=SCORES), REFERENCE)
