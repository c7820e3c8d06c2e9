"""Conformance suite of searchers: subclass `SearcherConformance` in a test module."""

import random
from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

from planish.core import Candidate, Failed, Lost, Measured, Objective, Outcome, Searcher, Trial
from planish.testing.synthetic import Lattice


def drive(
    searcher: Searcher, evaluate: Callable[[Candidate], Outcome], budget: int, batch: int = 8
) -> list[Trial]:
    """Ask and tell until the budget is spent or the search ends.

    Args:
        searcher: a new one.
        evaluate: what becomes of a candidate; asked once for each.
        budget: candidates to ask for; the last batch is cut to it.
        batch: candidates to ask for at once.

    Returns:
        The trials in the order they were asked.
    """
    trials: list[Trial] = []
    known: dict[str, Outcome] = {}
    while len(trials) < budget:
        asked = searcher.ask(min(batch, budget - len(trials)))
        if not asked:
            break
        known |= {c.hash: evaluate(c) for c in asked if c.hash not in known}
        answered = [Trial(c, known[c.hash], index) for index, c in enumerate(asked, start=len(trials))]
        searcher.tell(answered)
        trials += answered
    return trials


def drive_disorderly(
    searcher: Searcher, evaluate: Callable[[Candidate], Outcome], budget: int, seed: int
) -> list[Candidate]:
    """Ask and tell as the loop does where answers come in any order, and as many are under way as may be.

    Args:
        searcher: a new one.
        evaluate: what becomes of a candidate.
        budget: candidates to ask for.
        seed: decides how many are asked for at once, and which answers come next.

    Returns:
        The candidates in the order they were asked.
    """
    dice, asked, pending = random.Random(seed), list[Candidate](), list[Candidate]()
    while len(asked) < budget:
        new = searcher.ask(dice.randint(1, min(30, budget - len(asked))))
        if not (new or pending):
            break
        asked += new
        pending += new
        dice.shuffle(pending)
        count = dice.randint(0 if new else 1, len(pending))
        answered, pending = pending[:count], pending[count:]
        if answered:
            searcher.tell([Trial(candidate, evaluate(candidate)) for candidate in answered])
    return asked


def best_so_far(trials: Sequence[Trial], objective: Objective) -> list[float | None]:
    """Return the least cost up to each trial; None while all have failed."""
    best: float | None = None
    found: list[float | None] = []
    for trial in trials:
        cost = trial.cost(objective)
        best = cost if best is None or (cost is not None and cost < best) else best
        found.append(best)
    return found


class SearcherConformance:
    """Tests of a searcher on the synthetic lattice.

    A subclass named `Test...` overrides `searcher`, and the attributes where the searcher promises
    less. Another space goes in by `lattice`.

    Attributes:
        budget: candidates within which the promise of `gap` holds, and the search ends at the latest.
        gap: best found / optimum at most, after the budget.
        repeats: whether the searcher may propose a candidate more than once.
    """

    budget: ClassVar[int] = 200
    gap: ClassVar[float] = 1.0
    repeats: ClassVar[bool] = False

    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        """Make a new searcher."""
        raise NotImplementedError

    def lattice(self) -> Lattice:
        """Make the space to be searched."""
        return Lattice()

    @pytest.mark.parametrize(("name", "say"), [("needs", "needs = Space"), ("library", "library = None")])
    def test_its_class_says_what_it_needs(self, name: str, say: str) -> None:
        kind = type(self._new(seed=1))
        assert hasattr(kind, name), f"{kind.__name__} has no '{name}': say {say}, or subclass RoundSearcher"

    def test_it_is_a_function_of_seed_and_outcomes(self) -> None:
        rule = (
            "two searches of one seed differ. Rule: all randomness comes from planish.core.rng(seed, index)"
        )
        assert self._asked(self.budget, seed=3) == self._asked(self.budget, seed=3), rule

    @pytest.mark.parametrize("shuffle", [1, 2, 3])
    def test_neither_the_order_of_answers_nor_how_many_are_asked_for_steers_it(self, shuffle: int) -> None:
        asked = drive_disorderly(self._new(seed=3), self.lattice().outcome, self.budget, shuffle)
        rule = "Rule: neither the order of outcomes nor the number asked for influences the search"
        assert asked == self._asked(self.budget, seed=3)[: len(asked)], rule
        assert len(asked) == len(self._asked(self.budget, seed=3)), rule

    @pytest.mark.parametrize("n", [1, 3, 1000])
    def test_it_proposes_no_more_than_asked(self, n: int) -> None:
        searcher = self._new(seed=1)
        for _ in range(5):
            asked = searcher.ask(n)
            assert len(asked) <= n, (
                f"ask({n}) returned {len(asked)} candidates. Rule: at most as many as asked"
            )
            searcher.tell([Trial(candidate, self.lattice().outcome(candidate)) for candidate in asked])

    def test_it_may_be_told_of_the_unchanged_program_first(self) -> None:
        searcher, lattice = self._new(seed=1), self.lattice()
        searcher.tell([Trial(lattice.start(), lattice.outcome(lattice.start()))])
        assert searcher.ask(1)

    @pytest.mark.parametrize("batch", [1, 8, 64])
    def test_it_proposes_only_what_the_space_holds(self, batch: int) -> None:
        lattice = self.lattice()
        for candidate in self._asked(self.budget, batch=batch):
            lattice.position(candidate)

    def test_it_repeats_itself_only_where_it_may(self) -> None:
        asked = self._asked(self.budget)
        twice = "a candidate was proposed twice. Rule: propose each once, or set repeats = True in this class"
        assert self.repeats or len(set(asked)) == len(asked), twice

    def test_it_ends_on_a_finite_space(self) -> None:
        searcher = self._new(seed=2)
        asked = drive(searcher, self.lattice().outcome, self.budget)
        rule = "Rule: end, by an empty list, when there is nothing new to propose"
        assert len(asked) < self.budget, f"all {self.budget} of the budget were proposed. {rule}"
        assert list(searcher.ask(8)) == [], f"the search ended, and then went on. {rule}, for good"

    @pytest.mark.parametrize(
        "outcome",
        [
            Failed("build", "refused"),
            Lost("build", "killed"),
            Measured({}),
            Measured({Lattice.objective.name: float("nan")}),
        ],
        ids=["failed", "lost", "another objective", "not a number"],
    )
    def test_it_survives_when_all_fail(self, outcome: Outcome) -> None:
        asked = self._asked(self.budget, evaluate=lambda _: outcome)
        assert asked, "nothing was proposed"
        refused = self._asked(self.budget, evaluate=lambda _: Failed("run", "timeout"))
        steers = "the kind of failure steers the search. Rule: only the values of outcomes may influence it"
        assert asked == refused, steers

    @pytest.mark.parametrize("batch", [1, 4, 7, 8, 25])
    def test_fifty_are_twenty_five_and_twenty_five_resumed(self, batch: int) -> None:
        """The run resumed replays the recorded outcomes from its beginning."""
        first = drive(self._new(), self.lattice().outcome, 25, batch)
        recorded = {trial.candidate: trial.outcome for trial in first}

        def replay(candidate: Candidate) -> Outcome:
            return recorded.get(candidate) or self.lattice().outcome(candidate)

        resumed = drive(self._new(), replay, 50, batch)
        whole = drive(self._new(), self.lattice().outcome, 50, batch)
        assert resumed == whole
        assert [t.candidate for t in resumed[: len(first)]] == [t.candidate for t in first]

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_it_finds_what_it_promises(self, seed: int) -> None:
        lattice = self.lattice()
        trials = drive(self._new(seed), lattice.outcome, self.budget)
        costs = [cost for trial in trials if (cost := trial.cost(lattice.objective)) is not None]
        assert min(costs) <= lattice.optimum() * self.gap * (1 + 1e-12)

    def _new(self, seed: int = 0) -> Searcher:
        lattice = self.lattice()
        return self.searcher(lattice, [lattice.objective], seed)

    def _asked(
        self,
        budget: int,
        seed: int = 0,
        batch: int = 8,
        evaluate: Callable[[Candidate], Outcome] | None = None,
    ) -> list[Candidate]:
        trials = drive(self._new(seed), evaluate or self.lattice().outcome, budget, batch)
        return [trial.candidate for trial in trials]
