"""A search that recalls what it proposed before proposes what it would have found again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray

from planish.core import Candidate, CanRecall, Failed, Measured, Objective, Outcome, Space, Trial
from planish.levels.llvm.passes.catalogue import PassElement
from planish.levels.llvm.passes.space import PassSpace
from planish.levels.registry import load_program
from planish.models.learner import Learner
from planish.search import fitting_searchers, make_searcher
from planish.settings import Settings
from planish.testing.driving import drive
from planish.testing.lattice import Lattice
from planish.tuning.api import task_of
from search.test_factory import OURS

TIME = Objective("time_s", "s")
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
    space: str, name: str, seed: int, recalled: Mapping[int, Candidate], count: int, batch: int
) -> list[Trial]:
    known = {option: value for option, value in SMALL.items() if name in _TAKES[option]}
    searcher = make_searcher(name, SPACES[space](), [TIME], seed, known)
    if recalled:
        assert isinstance(searcher, CanRecall)
        searcher.recall(recalled.get)
    return drive(searcher, outcome, count, batch)


_TAKES: Mapping[str, Sequence[str]] = {
    "population": ("genetic", "nsga2"),
    "samples": ("random-minimise",),
    "stage": ("portfolio",),
    "batch": ("model-guided",),
    "first": ("model-guided",),
    "chains": ("model-guided",),
}


@pytest.mark.parametrize(("space", "name"), FITTING)
@given(
    st.integers(0, 99),
    st.integers(1, 60),
    st.sets(st.integers(0, 59), max_size=9),
    st.sampled_from([1, 8, 16]),
)
@settings(max_examples=8)
def test_a_search_that_recalls_is_the_search(
    space: str, name: str, seed: int, known: int, lost: set[int], batch: int
) -> None:
    whole = [trial.candidate for trial in search(space, name, seed, {}, 80, batch)]
    recalled = {place: c for place, c in enumerate(whole[:known]) if place not in lost}
    assert [trial.candidate for trial in search(space, name, seed, recalled, 80, batch)] == whole


@pytest.mark.parametrize("name", ["random", "genetic", "random-minimise", "portfolio", "nsga2"])
def test_what_is_recalled_is_not_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [trial.candidate for trial in search("llvm passes", name, 3, {}, 40, 8)]
    drawn: list[Generator] = []
    sample = PassSpace.sample

    def noted(space: PassSpace, rng: Generator) -> Candidate:
        drawn.append(rng)
        return sample(space, rng)

    monkeypatch.setattr(PassSpace, "sample", noted)
    search("llvm passes", name, 3, dict(enumerate(whole)), 24, 8)  # a stage is drawn at once
    assert not drawn
    search("llvm passes", name, 3, {}, 8, 8)
    assert drawn


@pytest.mark.parametrize("name", ["random", "genetic", "random-minimise", "portfolio", "nsga2"])
def test_a_search_goes_on_from_what_another_one_proposed(name: str) -> None:
    other = [trial.candidate for trial in search("llvm passes", name, 4, {}, 30, 8)]
    found = search("llvm passes", name, 5, dict(enumerate(other)), 80, 8)
    assert len({trial.candidate for trial in found}) == len(found) == 80


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
        assert isinstance(searcher, CanRecall)
        searcher.recall(recalled.get)
        return [trial.candidate for trial in drive(searcher, outcome, 160, 8)]

    monkeypatch.setattr(Learner, "score", noted)
    whole = searched({})
    often = len(asked)
    assert searched(dict(enumerate(whole[:150]))) == whole
    assert len(asked) < often / 2
