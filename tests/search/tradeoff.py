"""A lattice of two objectives with a known front, after Zitzler, Deb and Thiele's ZDT1 and ZDT2."""

from planish.core import Candidate, Measured, Objective, Outcome
from planish.testing.lattice import Lattice

ERROR = Objective("error")
BOTH = (Lattice.objective, ERROR)
REFERENCE = (1.1, 11.0)


class Tradeoff(Lattice):
    """Time is knob 0; the error falls with it, and rises with the other knobs.

    On the front the other knobs are 0.

    Args:
        power: 0.5 for the convex front of ZDT1, 2 for the concave one of ZDT2.
        others: knobs besides the first, of 10 values each.
    """

    def __init__(self, power: float, others: int = 5) -> None:
        super().__init__((30, *[10] * others))
        self._power = power

    def outcome(self, candidate: Candidate) -> Outcome:
        first, *others = self.position(candidate)
        time = first / (self.sizes[0] - 1)
        away = 1 + sum(others) / len(others)
        return Measured({"time_s": time, "error": away * (1 - (time / away) ** self._power)})

    def front(self) -> list[tuple[float, ...]]:
        """List the costs on the true front."""
        still = (0,) * (len(self.sizes) - 1)
        outcomes = (self.outcome(self.at((first, *still))) for first in range(self.sizes[0]))
        return [(o.values["time_s"], o.values["error"]) for o in outcomes if isinstance(o, Measured)]
