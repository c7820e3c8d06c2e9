"""The first generation of a genetic search, chosen by a model of other programs."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Candidate, HasModel, HasSearchNotes, PlanishError, rng
from planish.models.cost_model import Prediction, dataset_of
from planish.models.learner import Prior
from planish.models.model_files import made_model, write_model
from planish.models.trees import XgboostTrees
from planish.search import make_searcher
from planish.search.genetic import POOL, TAKEN, promising
from planish.search.proposals import Visited
from planish.testing.driving import best_so_far, drive
from planish.testing.lattice import Lattice

ROUGH = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)
SMALL = Lattice((3, 3), ridge=1)


class Knows:
    """A model that holds the sum of the features for what a candidate costs."""

    def predict(self, features: NDArray[np.float32]) -> Prediction:
        return Prediction(features.sum(axis=1, keepdims=True))


def costs(space: Lattice, candidates: list[Candidate]) -> list[float]:
    return space.features(candidates).sum(axis=1).tolist()


def test_of_each_pool_the_best_predicted_come_first() -> None:
    given = list(islice(promising(ROUGH, Visited(ROUGH), Prior(ROUGH, Knows(), ""), 3), TAKEN))
    generator = rng(3, 0, 0)
    pool = {ROUGH.sample(generator) for _ in range(POOL)}
    assert costs(ROUGH, given) == sorted(costs(ROUGH, [*pool]))[:TAKEN]


def test_it_ends_where_nothing_is_new() -> None:
    visited = Visited(SMALL)
    given = [*promising(SMALL, visited, Prior(SMALL, Knows(), ""), 0)]
    assert 0 < len(given) == len({each.hash for each in given}) <= 9
    assert not [*promising(SMALL, visited, Prior(SMALL, Knows(), ""), 0)]


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that has learnt what candidates of the rough lattice take."""
    candidates = [ROUGH.sample(rng(9, i)) for i in range(400)]
    outcomes = map(ROUGH.outcome, candidates)
    known = dataset_of(
        ROUGH.features(candidates), [getattr(each, "values", {}).get("time_s", 99.0) for each in outcomes]
    )
    trees = XgboostTrees()
    trees.fit(known)
    path = tmp_path / "m.npz"
    write_model(made_model("lattice", ROUGH.schema, "rank", {}, known, trees.trees), path)
    return str(path)


def test_a_genetic_search_begins_with_what_a_model_holds_for_good(model: str) -> None:
    def found(seed: int, name: str) -> float:
        searcher = make_searcher("genetic", ROUGH, [ROUGH.objective], seed, {"model": name})
        assert isinstance(searcher, HasModel)
        assert isinstance(searcher, HasSearchNotes)
        best = best_so_far(drive(searcher, ROUGH.outcome, 8, 8), ROUGH.objective)[-1]
        assert (searcher.model_s > 0) == bool(searcher.notes) == (name != "none")
        assert best is not None
        return best

    assert np.mean([found(s, model) for s in range(5)]) < np.mean([found(s, "none") for s in range(5)])


def test_its_generations_after_the_first_are_bred(model: str) -> None:
    told = make_searcher("genetic", ROUGH, [ROUGH.objective], 1, {"model": model, "population": 12})
    trials = drive(told, ROUGH.outcome, 60)
    assert len({trial.candidate.hash for trial in trials}) == 60


class Plain:
    """A space whose candidates nothing describes."""

    def __init__(self, space: Lattice) -> None:
        self.start, self.sample = space.start, space.sample
        self.mutate, self.crossover = space.mutate, space.crossover


def test_a_model_where_nothing_is_described_is_one_line() -> None:
    with pytest.raises(PlanishError, match="no model is for the candidates of Plain"):
        make_searcher("genetic", Plain(ROUGH), [ROUGH.objective], 0, {"model": "m.npz"})
