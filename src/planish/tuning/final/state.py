"""What is known at the end of a run, so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planish.core import Candidate, Objective, Opinion, held_back
from planish.measure import Standing
from planish.results.result import Ranked, Referred
from planish.tuning.final.paired import LEAST_NOISE


@dataclass
class FinalState:
    """The finalists and whom they are compared with; each step of the end adds to it.

    Args:
        members: the finalists that did not fail when they were measured again; empty before that.
        baseline: how it did, by objective.
        baseline_scores: what data that the search did not see gives for it.
        baseline_opinion: what another way to run it says of its answer.
        reference: how another baseline did; None where there is none.
        noise: objective name to the share by which equals differ; empty where it was not measured.
        notes: what is to be said to the user.
    """

    members: list[Ranked] = field(default_factory=list[Ranked])
    baseline: Mapping[str, Standing] = field(default_factory=dict[str, Standing])
    baseline_scores: Mapping[str, float] = field(default_factory=dict[str, float])
    baseline_opinion: Opinion = field(default_factory=Opinion)
    reference: Referred | None = None
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: list[str] = field(default_factory=list[str])
    figures: dict[Candidate, Mapping[str, Any]] = field(default_factory=dict[Candidate, Mapping[str, Any]])

    def noise_of(self, objective: Objective) -> float:
        """Give the share by which equals differ: 0 if it is exact, else as measured, or the least."""
        return 0.0 if objective.exact else self.noise.get(objective.name, LEAST_NOISE)

    def ranked(self, objectives: Sequence[Objective], baseline: Candidate) -> list[Ranked]:
        """List the members, behind the baseline where none is better: nothing is then to be changed.

        Args:
            objectives: the leading one first.
            baseline: what the members are compared with.

        Returns:
            Nothing where there was no comparison.
        """
        if not self.baseline or (self.members and _is_better(self.members[0], objectives)):
            return self.members
        standing = self.baseline[objectives[0].name]
        unchanged = Ranked(
            baseline,
            standing,
            self.baseline,
            self.baseline_scores,
            self.baseline_opinion,
            searched=len(baseline.steps),
            trial={name: each.median for name, each in self.baseline.items()},
        )
        return [unchanged, *(member for member in self.members if member.candidate != baseline)]

    def judge_by_held_back(self, objectives: Sequence[Objective]) -> None:
        """Let the examples that were held back decide verdicts: the search may have learnt its own by heart.

        What could not be scored on them has failed, by an objective that the baseline was scored by.

        Args:
            objectives: the leading one first.
        """
        for place, member in enumerate(self.members):
            judged = {o.name: self._judged(member, o) for o in objectives}
            self.members[place] = replace(member, standing=judged[objectives[0].name], standings=judged)

    def _judged(self, member: Ranked, objective: Objective) -> Standing:
        standing, unchanged = member.standings[objective.name], _held_back(objective, self.baseline_scores)
        if unchanged is None:
            return standing
        held = _held_back(objective, member.scores)
        if held is None:
            return replace(standing, verdict="failed")
        better, worse = held < unchanged, held > unchanged
        return replace(standing, verdict="faster" if better else "slower" if worse else "no difference")

    def sort(self, objectives: Sequence[Objective], baseline: Candidate) -> None:
        """Put first what is best to take.

        Of one objective, what is better than the baseline beyond the noise, the best first; then the
        baseline, if it is a member, so that it is taken where nothing is proven; then the others.

        Of several, what is worse than the baseline in none. Then the best by the leading objective comes
        first, and by the next one where they differ by noise alone; values on examples that were held back
        are taken where there are any. Those that are disputed come last.

        Args:
            objectives: the leading one first.
            baseline: what the members are compared with.
        """
        self.members.sort(key=lambda m: (m.opinion.agrees is False, *self._place(m, objectives, baseline)))

    def _place(
        self, member: Ranked, objectives: Sequence[Objective], baseline: Candidate
    ) -> tuple[bool | float, ...]:
        if len(objectives) == 1:
            unproven = member.standing.verdict != "faster"
            # Medians would not do: who is settled early is not measured in the same moments as the others.
            ratio = member.standing.ratio
            cost = objectives[0].cost(ratio.value if ratio else member.standing.median)
            return (unproven, unproven and member.candidate != baseline, cost)
        costs = [self._cost(member, objective) for objective in objectives]
        worse = any(member.standings[o.name].verdict in ("slower", "failed") for o in objectives)
        return (worse, *costs, objectives[0].cost(member.standing.median))

    def _cost(self, member: Ranked, objective: Objective) -> float:
        held, standing = _held_back(objective, member.scores), member.standings[objective.name]
        if held is not None:
            return held
        same = standing.verdict == "no difference"
        return objective.cost((self.baseline[objective.name] if same else standing).median)


def _is_better(member: Ranked, objectives: Sequence[Objective]) -> bool:
    """Whether a member is better than the baseline in something, beyond the noise, and worse in nothing."""
    verdicts = {member.verdict(objective.name) for objective in objectives}
    return "faster" in verdicts and verdicts <= {"faster", "no difference"}


def _held_back(objective: Objective, scores: Mapping[str, float]) -> float | None:
    """Give the cost on the examples that were held back, where there are any."""
    value = held_back(objective.name, scores)
    return None if value is None else objective.cost(value)
