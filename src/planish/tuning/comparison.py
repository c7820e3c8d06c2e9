"""Comparison of finalists with the baseline, with all else that is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from planish.core import (
    EQUAL,
    Attribution,
    Candidate,
    CrossCheck,
    Objective,
    Ratio,
    Verdict,
    heldout_value,
    heldout_within,
)

Rounds = tuple[tuple[float, ...], ...]
"""By process, then by round."""


@dataclass(frozen=True)
class Clocks:
    """Agreement of the clock and processor time on a ratio (see `planish.measure.Evidence`).

    Args:
        wall: by the clock.
        processor: by processor time.
        decides: which of them counts.
        disagree: whether they contradict each other.
        samples: what the processor's is made of.
        baseline_samples: the same of the baseline.
    """

    wall: Ratio
    processor: Ratio
    decides: Literal["wall", "processor"]
    disagree: bool
    samples: Rounds = field(default=(), repr=False)
    baseline_samples: Rounds = field(default=(), repr=False)


@dataclass(frozen=True)
class Measurement:
    """Result of a side of a comparison by one objective.

    Args:
        objective: which.
        median: in the objective's unit.
        ratio: objective / baseline's objective; 1 of the baseline of the comparison.
        verdict: beside the baseline; on held-out examples, where there are any.
        samples: every sample, in the order measured; kept of the leading objective alone.
        clocks: None where processor time does not measure it.
    """

    objective: Objective
    median: float
    ratio: Ratio = EQUAL
    verdict: Verdict = "same"
    samples: tuple[float, ...] = field(default=(), repr=False)
    clocks: Clocks | None = None

    @property
    def gain(self) -> Ratio:
        """Return how many times better than the baseline."""
        return self.ratio.gain(self.objective)


@dataclass(frozen=True)
class InterimRatio:
    """Ratio of a finalist by the leading objective while the comparison goes on.

    Args:
        name: `#1`, `#2`, ... in the order in which the finalists were chosen.
        ratio: objective / baseline's objective.
        repeats: how often it was measured.
    """

    name: str
    ratio: Ratio
    repeats: int


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Side of a comparison: a finalist, or what the finalists are compared with.

    Args:
        name: `#1`, `#2`, ...; `baseline`; or the name of another baseline, such as a file's.
        measured: how it did, by the objectives' names; the leading one first.
        scores: on data that the search did not see: name to value.
        cross_check: what another way to run it says of its answer.
    """

    name: str = ""
    measured: Mapping[str, Measurement] = field(default_factory=dict[str, Measurement])
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    cross_check: CrossCheck = field(default_factory=CrossCheck)

    @property
    def lead(self) -> Measurement:
        """Return how it did by the leading objective."""
        return next(iter(self.measured.values()))

    def heldout_value(self, objective: str) -> float | None:
        """Return an objective's value on held-out examples; None where there are none."""
        return heldout_value(objective, self.scores)

    def heldout_within(self, objective: str) -> float:
        """Return the difference to the baseline's value that noise explains; 0 where it is unknown."""
        return heldout_within(objective, self.scores)


@dataclass(frozen=True, kw_only=True)
class Finalist(Compared):
    """A candidate chosen for the comparison; of several objectives, a member of the front.

    Args:
        candidate: what was measured.
        label: what it is, where it is not one of the best trials: `default`, or how it differs from the best.
        n_steps_found: how many steps it had when the search ended; fewer are left where it was minimized.
        trial: its values as the search measured them, before it was minimized.
        main_effects: of each of its steps alone; empty where that was left out.
        interactions: of each two of its steps together, then of three where their pairs suggest that they do
            something else.
        analysis: what was measured for `describe`, as JSON; see `planish.core.Level.analyzer`.
        notes: what could not be done for it, in sentences.
        unmeasured: the verdict on one that was not measured again; None on all others.
        why: why it was not, in one line.
        hash_ok: whether the store gave back the candidate that was stored.
    """

    candidate: Candidate
    label: str = ""
    n_steps_found: int = 0
    trial: Mapping[str, float] = field(default_factory=dict[str, float])
    main_effects: tuple[Attribution, ...] = ()
    interactions: tuple[Attribution, ...] = ()
    analysis: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: tuple[str, ...] = ()
    hash_ok: bool = True
    unmeasured: Verdict | None = None
    why: str = ""

    @property
    def title(self) -> str:
        """The name with the label: `#2 (default)`."""
        return f"{self.name} ({self.label})" if self.label else self.name

    @property
    def verdict(self) -> Verdict:
        """By the leading objective; of one that was not measured, failed or undecided."""
        return self.unmeasured or self.lead.verdict

    @property
    def status_text(self) -> str:
        """Return the verdict and reason of one that was not measured: `failed: verify: wrong answer`."""
        return f"{self.verdict}: {self.why}" if self.why else self.verdict

    def noise_decides(self, objective: str, baseline: Compared) -> bool:
        """Return whether it counts as the baseline on held-out examples, although it did otherwise there."""
        differs = self.heldout_value(objective) != baseline.heldout_value(objective)
        return differs and self.measured[objective].verdict == "same"

    @property
    def unharmed(self) -> bool:
        """Return whether it is worse than the baseline in nothing."""
        return all(each.verdict in ("better", "same") for each in self.measured.values())

    @property
    def improves(self) -> bool:
        """Return whether it is better than the baseline in something, and worse in nothing."""
        return self.unharmed and any(each.verdict == "better" for each in self.measured.values())

    @property
    def may_improve(self) -> bool:
        """Return whether some verdict on it is undecided, and none is bad."""
        verdicts = {each.verdict for each in self.measured.values()}
        return "undecided" in verdicts and not verdicts & {"worse", "failed"}


@dataclass(frozen=True)
class Comparison:
    """Finalists and baseline, measured interleaved.

    Args:
        finalists: the best first. Of several objectives it is the front: what is worse than the baseline in
            none comes first, then the others, each sorted by the leading one; those on which the cross-check
            differs come last. Where nothing is better than the baseline, beyond the noise and without being
            worse in something, the baseline comes first.
        baseline: what they are compared with.
        secondary_baseline: another baseline, its values as many times the baseline's here as when the two
            were interleaved; None where there is none.
        noise: objective name to the share by which equals differ; empty where that was not measured.
        notes: how the run was measured, in sentences.
        unmeasured: the finalists without measurements, in the order in which they were chosen: those that
            failed when they were measured again, and those that were not, which are undecided.
    """

    finalists: tuple[Finalist, ...]
    baseline: Compared
    secondary_baseline: Compared | None = None
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()
    unmeasured: tuple[Finalist, ...] = ()

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The task's, the leading one first."""
        return tuple(each.objective for each in self.baseline.measured.values())

    def contender(self, baseline: Candidate | None) -> Finalist | None:
        """Return the best finalist apart from the baseline; None where no other one was measured."""
        return next((each for each in self.finalists if each.candidate != baseline), None)

    def undecided(self, baseline: Candidate | None) -> Finalist | None:
        """Return the finalist that may be better than the baseline, where none is known to be.

        With one objective it is the contender; where none was measured, a finalist that there was no time
        for. With several it is the first one that is worse than the baseline in nothing, as far as is known.
        """
        if any(each.improves for each in self.finalists):
            return None
        if len(self.objectives) > 1:
            return next((each for each in self.finalists if each.may_improve), None)
        contender = self.contender(baseline)
        found = self.unmeasured if contender is None else (contender,)
        return next((each for each in found if each.verdict == "undecided"), None)

    @property
    def unmeasured_groups(self) -> tuple[tuple[str, tuple[Finalist, ...]], ...]:
        """Return the finalists without measurements by their status, named together: `#4 to #7`."""
        groups: dict[str, list[Finalist]] = {}
        for each in self.unmeasured:
            groups.setdefault(each.status_text, []).append(each)
        return tuple((self._names(members), tuple(members)) for members in groups.values())

    def _names(self, members: Sequence[Finalist]) -> str:
        first = self.unmeasured.index(members[0])
        in_a_row = len(members) > 2 and self.unmeasured[first : first + len(members)] == tuple(members)
        if in_a_row:
            return f"{members[0].name} to {members[-1].name}"
        return ", ".join(each.title for each in members)

    @property
    def sides(self) -> tuple[Compared, ...]:
        """The baselines, then the finalists."""
        other = () if self.secondary_baseline is None else (self.secondary_baseline,)
        return (self.baseline, *other, *self.finalists)
