"""Simulated annealing over what a model predicts: many chains at once, and nothing is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from planish.core import Candidate, CanEvolve
from planish.search.sampling import neighbour, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

Score = Callable[[Sequence[Candidate]], "NDArray[np.float32]"]
"""Predicts what candidates cost; less is better."""

COLDEST = 1e-3
"""Of the first temperature: below it nothing worse is accepted."""


class Chains:
    """Chains that go on where they were when the model was asked last; all move at once.

    Args:
        space: where they walk.
        temperature: at the first step of a walk, in standard deviations of the chains' predictions; it falls
            evenly to 0.
    """

    def __init__(self, space: CanEvolve, temperature: float) -> None:
        self._space, self._temperature = space, temperature
        self.states: list[Candidate] = []
        self._energies: NDArray[np.float32] | None = None

    def walk(self, score: Score, steps: int, generator: Generator) -> dict[Candidate, float]:
        """Move all chains so many steps; gives all they met, with the predictions."""
        import numpy as np

        if not self.states:  # the space found nothing legal to begin with
            return {}
        # Asked anew, for the model has learnt since the last walk: energies of before are of another scale.
        energies = score(self.states)
        met = _noted({}, self.states, energies)
        # Where all are predicted alike, any unit will do.
        unit = float(energies.std()) or 1.0
        for step in range(steps):
            # Bounded below, for the chance of being accepted divides by it.
            heat = max(self._temperature * (1 - step / steps), COLDEST) * unit
            moved = [neighbour(self._space, state, generator) or state for state in self.states]
            # One question for all chains: a model answers a batch in hardly more time than a single
            # candidate.
            found = score(moved)
            _noted(met, moved, found)
            # What is better has a chance of 1: without the minimum its exponential might overflow.
            chance = np.exp(np.minimum((energies - found) / heat, 0))
            accepted = generator.random(len(moved)) < chance
            energies = np.where(accepted, found, energies)
            self.states = [
                new if yes else old for new, old, yes in zip(moved, self.states, accepted, strict=True)
            ]
        self._energies = energies
        return met

    def begin(self, first: Sequence[Candidate], count: int, generator: Generator) -> None:
        """Have so many chains: those that there are, what is known to be good, and samples."""
        if not self.states:
            # What is known to be good stands first, so samples are what is cut where there are too many.
            self.states, self._energies = list(first), None
        self._keep(count)
        while len(self.states) < count and (drawn := sample(self._space, generator)):
            self.states.append(drawn)

    def restart(self, candidates: Iterable[Candidate]) -> None:
        """Replace the chains with the worst predictions by candidates."""
        for index, candidate in zip(self._worst_first(), candidates, strict=False):
            self.states[index] = candidate

    def _keep(self, count: int) -> None:
        """Drop the worst chains beyond a count; before the first walk, the last ones."""
        excess = len(self.states) - count
        if excess <= 0:
            return
        dropped = set(self._worst_first()[:excess])
        kept = [index for index in range(len(self.states)) if index not in dropped][:count]
        self.states = [self.states[index] for index in kept]
        if self._energies is not None:
            self._energies = self._energies[kept]

    def _worst_first(self) -> list[int]:
        """List the chains that have walked, those with the worst predictions first."""
        import numpy as np

        if self._energies is None:
            return []
        # Stable, so that of equals a resumed run restarts the same.
        return np.argsort(-self._energies, kind="stable").tolist()


def _noted(
    met: dict[Candidate, float], candidates: Sequence[Candidate], scores: NDArray[np.float32]
) -> dict[Candidate, float]:
    met.update(zip(candidates, scores.tolist(), strict=True))
    return met
