"""Rounds as ask and tell, and searches that replay their log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray

from amounts import examples
from planish.core import Candidate, Failed, Measured, Objective, Outcome, Space, Trial
from planish.core.registry import load_program
from planish.levels.llvm.passes.catalogue import PassElement
from planish.levels.llvm.passes.space import PassSpace
from planish.models.learner import Learner
from planish.search import (
    Costs,
    CostVectors,
    Rounds,
    RoundSearcher,
    VectorRounds,
    VectorRoundSearcher,
    fitting_searchers,
    make_searcher,
)
from planish.testing.searchers import drive
from planish.testing.synthetic import Lattice
from planish.tuning.api import task_of
from planish.tuning.settings import Settings
from search.spaces import TIME, Go
from search.test_factory import OURS


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


def test_nothing_is_proposed_before_all_results_of_a_round_are_known() -> None:
    searcher, _ = _rounds(2, 2)
    asked = searcher.ask(5)
    _tell(searcher, asked[1:])
    assert list(searcher.ask(2)) == []
    _tell(searcher, asked[:1])
    assert _numbers(searcher.ask(2)) == [2, 3]


def test_costs_are_sent_in_the_order_of_the_proposals_after_those_of_unasked_trials() -> None:
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


FEW = [PassElement(text, "function", 1, "") for text in ("adce", "gvn", "sroa", "instcombine", "licm")]
SMALL = {"population": "12", "samples": "9", "stage": "10", "batch": "8", "first": "4", "chains": "12"}


def loops(space: str) -> Space:
    level, program = load_program("C[m,n] += A[m,k] * B[k,n]", "loops", {"size": "m=16,n=24,k=40"})
    return level.space(task_of(level, program, Settings()), space)


SPACES: Mapping[str, Callable[[], Space]] = {
    "lattice": lambda: Lattice((9, 9, 9)),
    "loops template": cache(lambda: loops("template")),
    "loops steps": cache(lambda: loops("steps")),
    "llvm passes": lambda: PassSpace(FEW, longest=6, seeds=[("sroa", "gvn")]),
}
FITTING = [
    (space, name) for space, make in SPACES.items() for name in fitting_searchers(make()) if name in OURS
]


def outcome(candidate: Candidate) -> Outcome:
    number = int(candidate.hash[:6], 16)
    return Failed("build", "refused") if number % 5 == 0 else Measured({"time_s": 1.0 + number % 1000})


def search(
    space: str | Space, name: str, seed: int, recalled: Mapping[int, Candidate], count: int, batch: int
) -> list[Trial]:
    known = {option: value for option, value in SMALL.items() if name in _TAKES[option]}
    space = SPACES[space]() if isinstance(space, str) else space
    searcher = make_searcher(name, space, [TIME], seed, known)
    if recalled:
        searcher.replay(recalled.get)
    return drive(searcher, outcome, count, batch)


_TAKES: Mapping[str, Sequence[str]] = {
    "population": ("genetic", "nsga2"),
    "samples": ("random-minimize",),
    "stage": ("portfolio",),
    "batch": ("model-guided",),
    "first": ("model-guided",),
    "chains": ("model-guided",),
}


@pytest.mark.slow
@pytest.mark.parametrize(("space", "name"), FITTING)
@given(
    st.integers(0, 99),
    st.integers(1, 60),
    st.sets(st.integers(0, 59), max_size=9),
    st.sampled_from([1, 8, 16]),
)
@settings(max_examples=examples(8))
def test_a_search_that_recalls_is_the_search(
    space: str, name: str, seed: int, known: int, lost: set[int], batch: int
) -> None:
    whole = [trial.candidate for trial in search(space, name, seed, {}, 80, batch)]
    recalled = {index: c for index, c in enumerate(whole[:known]) if index not in lost}
    assert [trial.candidate for trial in search(space, name, seed, recalled, 80, batch)] == whole


@pytest.mark.parametrize("name", ["random", "genetic", "random-minimize", "portfolio", "nsga2"])
def test_what_is_recalled_is_not_drawn(name: str) -> None:
    whole = [trial.candidate for trial in search("llvm passes", name, 3, {}, 40, 8)]
    drawn: list[Generator] = []

    class Noted(PassSpace):
        def sample(self, rng: Generator) -> Candidate:
            drawn.append(rng)
            return super().sample(rng)

    space = Noted(FEW, longest=6, seeds=[("sroa", "gvn")])
    search(space, name, 3, dict(enumerate(whole)), 24, 8)  # a stage is drawn at once
    assert not drawn
    search(space, name, 3, {}, 8, 8)
    assert drawn


@pytest.mark.parametrize("name", ["random", "genetic", "random-minimize", "portfolio", "nsga2"])
def test_a_search_goes_on_from_what_another_one_proposed(name: str) -> None:
    other = [trial.candidate for trial in search("llvm passes", name, 4, {}, 30, 8)]
    found = search("llvm passes", name, 5, dict(enumerate(other)), 80, 8)
    assert len({trial.candidate for trial in found}) == len(found) == 80


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("options", [{}, {"acquisition": "ei"}, {"objective": "regression"}])
def test_a_guided_search_asks_its_model_for_the_last_batches_alone(
    options: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    score = Learner.score

    def noted(learner: Learner, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        asked.append(len(candidates))
        return score(learner, candidates)

    def searched(recalled: Mapping[int, Candidate]) -> list[Candidate]:
        asked.clear()
        space = Lattice((9, 9, 9, 9))
        given = {"batch": 8, "first": 4, "chains": 12, "model": "none", **options}
        searcher = make_searcher("model-guided", space, [TIME], 0, given)
        searcher.replay(recalled.get)
        return [trial.candidate for trial in drive(searcher, outcome, 160, 8)]

    monkeypatch.setattr(Learner, "score", noted)
    whole = searched({})
    often = len(asked)
    assert searched(dict(enumerate(whole[:150]))) == whole
    assert len(asked) < often / 2
