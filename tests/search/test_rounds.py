"""The adapter from rounds to ask and tell."""

from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Failed, Measured, Objective, Trial
from planish.search import Costs, CostVectors, Rounds, RoundSearcher, VectorRounds, VectorRoundSearcher
from search.trail import TIME, Go


def _candidate(number: int) -> Candidate:
    return Candidate((Go(number),))


def _numbers(candidates: Sequence[Candidate]) -> list[int]:
    return [step.to for c in candidates for step in c.steps if isinstance(step, Go)]


def _rounds(*sizes: int) -> tuple[RoundSearcher, list[Costs]]:
    """Make a searcher with rounds of these sizes, and the list of the costs that it is sent."""
    sent: list[Costs] = []

    def search() -> Rounds:
        first = 0
        for size in sizes:
            sent.append((yield map(_candidate, range(first, first + size))))
            first += size

    return RoundSearcher([TIME], search()), sent


def _tell(searcher: RoundSearcher, asked: Sequence[Candidate]) -> None:
    numbers = _numbers(asked)
    searcher.tell([Trial(c, Measured({"time_s": n + 1.0})) for c, n in zip(asked, numbers, strict=True)])


@given(st.lists(st.integers(0, 6), max_size=5), st.lists(st.integers(1, 7), min_size=40, max_size=40))
def test_the_order_does_not_depend_on_the_batches(sizes: list[int], batches: list[int]) -> None:
    searcher, sent = _rounds(*sizes)
    asked: list[int] = []
    for batch in batches:
        candidates = searcher.ask(batch)
        assert len(candidates) <= batch
        asked += _numbers(candidates)
        _tell(searcher, candidates)
    assert asked == list(range(sum(sizes)))
    assert [sorted(c for c in costs.values() if c is not None) for costs in sent] == [
        [float(n + 1) for n in range(sum(sizes[:i]), sum(sizes[: i + 1]))] for i in range(len(sizes))
    ]


def test_it_ends_with_nothing_and_stays_there() -> None:
    searcher, _ = _rounds(2)
    _tell(searcher, searcher.ask(5))
    assert [list(searcher.ask(1)) for _ in range(3)] == [[], [], []]


def test_a_search_without_rounds_is_at_its_end() -> None:
    searcher, _ = _rounds()
    assert list(searcher.ask(1)) == []


def test_rounds_are_lazy() -> None:
    def search() -> Rounds:
        yield map(_candidate, count())

    searcher = RoundSearcher([TIME], search())
    assert _numbers(searcher.ask(3)) == [0, 1, 2]
    assert _numbers(searcher.ask(2)) == [3, 4]


def test_nothing_is_proposed_before_all_of_a_round_is_told() -> None:
    searcher, _ = _rounds(2, 2)
    asked = searcher.ask(5)
    _tell(searcher, asked[1:])
    assert list(searcher.ask(2)) == []
    _tell(searcher, asked[:1])
    assert _numbers(searcher.ask(2)) == [2, 3]


def test_costs_are_sent_in_the_order_of_the_proposals_after_what_nobody_asked_for() -> None:
    searcher, sent = _rounds(3, 1)
    asked, other = searcher.ask(3), _candidate(9)
    for each in (asked[2], other, asked[0], asked[1]):
        _tell(searcher, [each])
    searcher.ask(1)
    assert list(sent[0]) == [each.hash for each in (other, *asked)]


@pytest.mark.parametrize("n", [0, -1])
def test_a_number_that_is_not_positive_is_refused(n: int) -> None:
    searcher, _ = _rounds(2)
    with pytest.raises(ValueError, match="positive"):
        searcher.ask(n)


@pytest.mark.parametrize(
    "outcome",
    [Failed("run", "crash"), Measured({"other": 1.0})]
    + [Measured({"time_s": float(value)}) for value in ("nan", "inf", "-inf")],
)
def test_what_is_no_number_has_no_cost(outcome: Failed | Measured) -> None:
    searcher, sent = _rounds(1, 1)
    asked = searcher.ask(1)
    searcher.tell([Trial(asked[0], outcome)])
    searcher.ask(1)
    assert sent == [{asked[0].hash: None}]


def test_the_first_objective_leads() -> None:
    sent: list[Costs] = []

    def search() -> Rounds:
        sent.append((yield [_candidate(0)]))

    searcher = RoundSearcher([Objective("gflops", direction="up"), TIME], search())
    asked = searcher.ask(1)
    searcher.tell([Trial(asked[0], Measured({"time_s": 1.0, "gflops": 5.0}))])
    assert list(searcher.ask(1)) == []
    assert sent == [{asked[0].hash: -5.0}]


@pytest.mark.parametrize(
    ("values", "costs"),
    [
        ({"time_s": 1.0, "gflops": 5.0}, (-5.0, 1.0)),
        ({"time_s": 1.0}, None),
        ({"gflops": 5.0}, None),
        ({"time_s": float("inf"), "gflops": 5.0}, None),
    ],
)
def test_all_objectives_are_sent_or_none(values: dict[str, float], costs: tuple[float, ...] | None) -> None:
    sent: list[CostVectors] = []

    def search() -> VectorRounds:
        sent.append((yield [_candidate(0)]))

    searcher = VectorRoundSearcher([Objective("gflops", direction="up"), TIME], search())
    asked = searcher.ask(1)
    searcher.tell([Trial(asked[0], Measured(values))])
    assert list(searcher.ask(1)) == []
    assert sent == [{asked[0].hash: costs}]
