"""Provenance of a trained model: the conditions of its measurements, and its quality on held-back programs.

Its conditions say for which searches a model is asked: those to which what it learned applies. Its quality,
beside that of the model in use, decides whether it takes that one's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Value = str | int
Stated = Mapping[str, Sequence[Value]]
"""Name of a condition to its values among the trials that a model learnt from."""
OBJECTIVE = "objective"
"""Name of the condition that a model of one objective never guides the search for another."""


def stated(trials: Iterable[Mapping[str, Value]]) -> Stated:
    """Return the conditions of several programs' trials, each value once, in order."""
    found = dict[str, set[Value]]()
    for each in trials:
        for name, value in each.items():
            found.setdefault(name, set()).add(value)
    return {name: sorted(values, key=str) for name, values in sorted(found.items())}


def unmet(known: Stated, asked: Mapping[str, Value]) -> str:
    """Return how the conditions of a search differ from a model's; "" where they do not.

    Conditions that one of the two does not state are not compared.
    """
    for name, value in asked.items():
        if name in known and value not in known[name]:
            return f"learnt from trials of {name} {' and '.join(map(str, known[name]))}, and this is {value}"
    return ""


def read_stated(raw: Any) -> Stated | None:
    """Read conditions from a file's JSON; None where they are none."""
    if not isinstance(raw, dict):
        return None
    pairs: dict[Any, Any] = dict(raw)
    for name, values in pairs.items():
        if not isinstance(name, str) or not isinstance(values, list):
            return None
        every: list[Any] = values
        if not all(type(value) in (str, int) for value in every):
            return None
    return pairs


FEWEST_PROGRAMS = 5
"""Held-back programs below which a policy of the user's does not take the place of a shipped one."""
OWN = "own-"
"""Prefix of the names of models and policies that the user trained, so that they replace no shipped one."""


@dataclass(frozen=True)
class HeldOut:
    """Quality of a model on programs that it did not learn from, and that of the one in use.

    Args:
        programs: number of held-back programs; 1 at least.
        measure: what is compared, of which more is better: "rank correlation".
        value: of the new model.
        rival: name of what searches use without it.
        rival_value: of that, on the same programs.
    """

    programs: int
    measure: str
    value: float
    rival: str
    rival_value: float

    @property
    def is_worse(self) -> bool:
        """Return whether the one in use is at least as good: more would be asked for nothing."""
        return self.value <= self.rival_value

    @property
    def is_better(self) -> bool:
        """Return whether it is better on enough programs to take the place of the one in use."""
        return not self.is_worse and self.programs >= FEWEST_PROGRAMS

    @property
    def text(self) -> str:
        """Describe the findings for the user."""
        held = "1 held-back program" if self.programs == 1 else f"{self.programs:,} held-back programs"
        values = f"{self.measure} {self.value:.3f}, and {self.rival_value:.3f} of {self.rival}"
        return f"on {held}: {values}"


def read_held_out(raw: Mapping[str, Any] | None) -> HeldOut | None:
    """Read a comparison from a file's JSON; None where there is none; raises TypeError where it is none."""
    return None if raw is None else HeldOut(**raw)


def own_name(name: str, shipped: Mapping[str, object]) -> str:
    """Return the name of a file of the user's: with a prefix where a shipped one is called so."""
    return f"{OWN}{name}" if name in shipped else name
