"""Small spaces to search: words, directed graphs, and a lattice of two objectives with a known front."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    Failed,
    Measured,
    Objective,
    Outcome,
    SearchContext,
    Space,
    Step,
)
from planish.testing.synthetic import Lattice

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Letter(Step):
    """Write a letter."""

    name: str


def word(candidate: Candidate) -> str:
    return "".join(step.name for step in candidate.steps if isinstance(step, Letter))


def spell(text: str) -> Candidate:
    return Candidate(tuple(map(Letter, text)))


def holds(text: str, parts: str) -> int:
    """Count how many of these letters stand in a text in this order, from the first."""
    position = 0
    for found, part in enumerate(parts):
        position = text.find(part, position) + 1
        if not position:
            return found
    return len(parts)


class Words(Space):
    """Space of words of at most `longest` letters.

    Args:
        cost: word to its time; None where it fails.
        seeds: words that the search begins with.
        longest: letters of the longest word.
        letters: what words are made of.
    """

    def __init__(
        self,
        cost: Callable[[str], float | None],
        seeds: Sequence[str] = (),
        longest: int = 12,
        letters: str = LETTERS,
    ) -> None:
        self._cost, self._seeds, self._longest, self._letters = cost, seeds, longest, letters

    def start(self) -> Candidate:
        return Candidate()

    def sample(self, rng: Generator) -> Candidate:
        return spell("".join(self._letter(rng) for _ in range(rng.integers(1, self._longest + 1))))

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        text = word(candidate)
        position, keep = int(rng.integers(len(text) + 1)), int(rng.integers(2))
        middle = self._letter(rng) if rng.random() < 0.7 else ""
        return spell((text[:position] + middle + text[position + 1 - keep :])[: self._longest])

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        one, other = word(a), word(b)
        cut = int(rng.integers(min(len(one), len(other)) + 1))
        return spell(one[:cut] + other[cut:]), spell(other[:cut] + one[cut:])

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> Sequence[Candidate]:  # noqa: ARG002
        return [spell(text) for text in self._seeds]

    def focused(self, candidates: Sequence[Candidate]) -> "Words":
        del candidates
        return self

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate:
        return Candidate(tuple(candidate.steps[index] for index in indices))

    def outcome(self, candidate: Candidate) -> Outcome:
        cost = self._cost(word(candidate))
        return Failed("run", "crash") if cost is None else Measured({"time_s": cost})

    def _letter(self, rng: Generator) -> str:
        return self._letters[int(rng.integers(len(self._letters)))]


class Focusable(Words):
    """Words that note what they were focused on, and then draw only the letters of that."""

    def __init__(self, cost: Callable[[str], float | None], seeds: Sequence[str] = ()) -> None:
        super().__init__(cost, seeds)
        self.shown: list[list[str]] = []

    def focused(self, candidates: Sequence[Candidate]) -> Words:
        words = [word(each) for each in candidates]
        self.shown.append(words)
        return Words(self._cost, letters="".join(words) or LETTERS)


TIME = Objective("time_s", "s")


@dataclass(frozen=True)
class Go(Step):
    """Follow an edge."""

    to: int


class Trail(Space):
    """A directed graph: node to the nodes that follow; the start is node 0.

    Args:
        edges: for each node, where its steps lead.
        costs: node to its time; a missing node fails.
    """

    def __init__(self, edges: Sequence[Sequence[int]], costs: Mapping[int, float]) -> None:
        self.edges = edges
        self.costs = costs

    def start(self) -> Candidate:
        return Candidate()

    def node(self, candidate: Candidate) -> int:
        node = 0
        for step in candidate.steps:
            assert isinstance(step, Go)
            assert step.to in self.edges[node]
            node = step.to
        return node

    def steps(self, candidate: Candidate) -> list[Go]:
        return [Go(to) for to in self.edges[self.node(candidate)]]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        return candidate.then(step)

    def state_key(self, candidate: Candidate) -> str:
        return str(self.node(candidate))

    def outcome(self, candidate: Candidate) -> Outcome:
        node = self.node(candidate)
        return Measured({"time_s": self.costs[node]}) if node in self.costs else Failed("run", "crash")


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
