"""Search guided by a cost model, on synthetic spaces and on those of all levels."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanEvolve,
    CanFeaturize,
    Failed,
    Measured,
    Objective,
    PlanishError,
    ScheduleError,
    SearchContext,
    Searcher,
    Target,
    Trial,
    best_trial,
    rng,
)
from planish.core.installation import install_command
from planish.models.cost_model import dataset_of
from planish.models.learner import batch_sizes, distinct_seeds, make_learner
from planish.models.model_files import made_model, models_folder, write_model
from planish.models.trees import XgboostTrees
from planish.search import make_searcher
from planish.search.guided import Chains, choose_diverse
from planish.testing.searchers import best_so_far, drive
from planish.testing.synthetic import Lattice

ROUGH = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)
NOTHING = dataset_of(np.zeros((1, 4), np.float32), [1])


def found(name: str, seed: int, trials: int = 100, **options: str | float) -> float:
    searcher = make_searcher(name, ROUGH, [ROUGH.objective], seed, options)
    best = best_so_far(drive(searcher, ROUGH.outcome, trials, 8), ROUGH.objective)[-1]
    assert best is not None
    return best


@pytest.mark.slow
def test_it_finds_better_than_random_search_does() -> None:
    seeds = range(5)
    guided = np.mean([found("model-guided", seed, model="none", batch=16) for seed in seeds])
    assert guided < np.mean([found("random", seed) for seed in seeds])


@pytest.mark.parametrize(
    "options", [{"acquisition": "ei"}, {"acquisition": "ucb"}, {"objective": "regression"}]
)
def test_every_way_to_ask_finds_something(options: dict[str, str]) -> None:
    assert found("model-guided", 0, 60, batch=16, **options) < 2 * ROUGH.optimum()


def test_a_global_model_guides_from_the_first_batch(tmp_path: Path) -> None:
    model = _global_model(tmp_path)
    first = [found("model-guided", seed, 8, model=model) for seed in range(5)]
    assert np.mean(first) < np.mean([found("random", seed, 8) for seed in range(5)])


def _global_model(folder: Path) -> str:
    candidates = [ROUGH.sample(rng(9, i)) for i in range(400)]
    trees = XgboostTrees()
    costs = [ROUGH.objective.cost(value) for value in _times(candidates)]
    trees.fit(dataset_of(ROUGH.features(candidates), costs))
    path = folder / "m.npz"
    write_model(made_model("lattice", ROUGH.schema, "rank", {}, NOTHING, trees.trees), path)
    return str(path)


def _times(candidates: list[Candidate]) -> list[float]:
    outcomes = map(ROUGH.outcome, candidates)
    return [getattr(each, "values", {}).get("time_s", 99.0) for each in outcomes]


def test_what_it_cannot_do_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def made(**options: str) -> None:
        make_searcher("model-guided", ROUGH, [ROUGH.objective], 0, options)

    with pytest.raises(PlanishError, match="no acquisition 'mena'"):
        made(acquisition="mena")
    with pytest.raises(PlanishError, match="cannot read a model"):
        made(model=str(tmp_path / "none.npz"))
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(PlanishError, match="XGBoost is not installed") as error:
        made(gp_threshold="0")
    assert install_command("learn") in str(error.value)


@pytest.mark.parametrize("few", [0, 48])
def test_without_xgboost_a_global_model_guides_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, few: int
) -> None:
    trees = XgboostTrees()
    trees.fit(dataset_of(ROUGH.features([ROUGH.sample(rng(1, i)) for i in range(50)]), list(range(50))))
    path = tmp_path / "m.npz"
    write_model(made_model("lattice", ROUGH.schema, "rank", {}, NOTHING, trees.trees), path)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    searcher = make_searcher(
        "model-guided", ROUGH, [ROUGH.objective], 0, {"model": str(path), "gp_threshold": few}
    )
    assert "XGBoost is not installed" in caplog.text
    drive(searcher, ROUGH.outcome, 40, 8)
    guided, lacking = notes(searcher)
    assert guided == f"the search started from the cost model {path} (trained on 1 program)"
    alone = "a Gaussian process learns from the last" if few else "the global model guides"
    assert lacking.startswith(f"XGBoost is not installed: {alone}")


def test_without_xgboost_the_first_trials_teach_as_much_and_later_ones_still_teach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def proposed(trials: int) -> list[Candidate]:
        searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 0, {"model": "none"})
        return [trial.candidate for trial in drive(searcher, ROUGH.outcome, trials, 4)]

    with_it = proposed(40)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    monkeypatch.setattr("planish.models.learner.LAST", 40)  # fewer than it is told
    assert proposed(40) == with_it
    seeds = range(3)
    guided = np.mean([found("model-guided", seed, model="none", batch=16) for seed in seeds])
    assert guided < np.mean([found("random", seed) for seed in seeds])


def test_models_that_guide_together_are_named_with_their_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    models_folder().mkdir(parents=True)
    trees = XgboostTrees()
    trees.fit(dataset_of(ROUGH.features([ROUGH.sample(rng(1, i)) for i in range(50)]), list(range(50))))
    model = made_model("lattice", ROUGH.schema, "rank", {}, NOTHING, trees.trees)
    for name, programs in (("few", 40), ("many", 160)):
        write_model(
            replace(model, programs=programs, rows=programs, training=name), models_folder() / f"{name}.npz"
        )
    searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 0)
    drive(searcher, ROUGH.outcome, 8, 4)
    (note,) = notes(searcher)
    assert note.startswith(
        "the search started from your cost model few.npz (trained on 40 programs, weight 0.200) and "
    )
    assert note.endswith("your cost model many.npz (trained on 160 programs, weight 0.800)")


def notes(searcher: Searcher) -> Sequence[str]:
    return searcher.notes


@pytest.mark.parametrize("cost", [None, 0.5, math.nan, math.inf])
def test_where_trials_tell_nothing_the_search_goes_on(cost: float | None) -> None:
    """All failed, all cost the same, or none has a number: every candidate asked for is new all the same."""
    nothing = Failed("build", "no compiler", "") if cost is None else Measured({"time_s": cost})
    searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 0, {"batch": 16})
    candidates = [trial.candidate for trial in drive(searcher, lambda _: nothing, 60, 8)]
    (note,) = notes(searcher)
    assert note.startswith("the model learned nothing: ")
    assert note.endswith("trials cost the same" if cost == 0.5 else "trials could be measured")
    assert len({candidate.hash for candidate in candidates}) == len(candidates) == 60


def test_a_batch_is_good_and_diverse() -> None:
    """Equation 3: with alpha above 0, what has new steps comes before its better double."""
    lattice = Lattice()
    candidates = [lattice.at(position) for position in ((5, 2, 0), (5, 0, 0), (0, 0, 3))]
    scores = np.array([0.0, 0.1, 0.2], np.float32)
    assert choose_diverse(candidates, scores, 2, 0.0) == [0, 1]
    assert choose_diverse(candidates, scores, 2, 1.0) == [0, 2]
    assert choose_diverse(candidates, scores, 9, 1.0) == [0, 2, 1]


def test_chains_walk_to_what_is_predicted_to_be_good_and_stay_there() -> None:
    lattice = Lattice((20, 20, 20))

    def score(candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        return np.abs(lattice.features(candidates) - 10).sum(axis=1).astype(np.float32)

    chains = Chains(lattice, 0.5)
    chains.begin([], 16, rng(1))
    before = score(chains.states).mean()
    met = chains.walk(score, 30, rng(2))
    after = score(chains.states).mean()
    assert after < before / 2
    assert len(met) > 100
    chains.restart([lattice.start()])
    assert lattice.start() in chains.states


@pytest.mark.parametrize("fewer", [1, 5, 16])
def test_of_fewer_chains_than_before_the_best_go_on(fewer: int) -> None:
    """A first batch may be the largest: it holds all that the space begins with."""
    lattice = Lattice((20, 20, 20))

    def score(candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        return lattice.features(candidates).sum(axis=1).astype(np.float32)

    chains = Chains(lattice, 1.0)
    chains.begin([], 48, rng(1))
    chains.walk(score, 2, rng(2))
    best = sorted(score(chains.states).tolist())[:fewer]
    chains.begin([], fewer, rng(3))
    assert sorted(score(chains.states).tolist()) == best
    first = [lattice.at((0, 0, index)) for index in range(1, 20)]
    chains.restart(first)
    assert set(chains.states) <= set(first)
    chains.begin([], 30, rng(4))  # more again: the new ones have not walked yet
    chains.restart(first)
    assert len(chains.walk(score, 2, rng(5))) >= 30


class Seeded(Lattice):
    """Begins with more candidates than the batches that follow the first one have."""

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> list[Candidate]:
        del context
        return [self.sample(rng(8, i)) for i in range(12)]


class Illegal(Lattice):
    """Has no legal candidate but the start, which nothing proposes."""

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> list[Candidate]:
        del context
        return []

    def sample(self, rng: np.random.Generator) -> Candidate:
        raise ScheduleError(f"nothing legal was drawn with {rng}")


def test_a_search_whose_first_batch_is_the_largest_goes_on(tmp_path: Path) -> None:
    space = Seeded(ROUGH.sizes, ridge=2)
    searcher = make_searcher("model-guided", space, [space.objective], 0, {"model": _global_model(tmp_path)})
    trials = drive(searcher, space.outcome, 60, 4)
    assert len({trial.candidate.hash for trial in trials}) == 60


def test_where_nothing_legal_is_found_the_search_ends(tmp_path: Path) -> None:
    space = Illegal(ROUGH.sizes, ridge=2)
    searcher = make_searcher("model-guided", space, [space.objective], 0, {"model": _global_model(tmp_path)})
    assert drive(searcher, space.outcome, 10, 4) == []


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_of_few_neighbors_each_round_proposes_one_until_the_space_is_used_up(share: float) -> None:
    """What a walk met and did not propose may be proposed later; a share of a few is one at least."""
    small = Lattice((5, 4))  # a candidate has 4 + 3 neighbors
    options = {"model": "none", "first": 2, "batch": 2, "growth": 0.1, "epsilon": share, "top": 1.0}
    searcher = make_searcher("model-guided", small, [small.objective], 0, options)
    trials = drive(searcher, small.outcome, 100, 2)
    assert {trial.candidate.hash for trial in trials} == small.table().keys()
    assert len(trials) == small.size()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("size", "share"), [(4, 0.05), (4, 0.0), (8, 0.125)])
def test_the_share_of_random_candidates_holds_for_batches_of_any_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, share: float
) -> None:
    chosen = list[int]()

    def recorded(
        candidates: Sequence[Candidate], scores: NDArray[np.float32], count: int, alpha: float
    ) -> list[int]:
        chosen.append(count)
        return choose_diverse(candidates, scores, count, alpha)

    monkeypatch.setattr("planish.search.guided.choose_diverse", recorded)
    options = {"model": _global_model(tmp_path), "first": size, "batch": size, "epsilon": share, "steps": 32}
    searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 0, options)
    trials = drive(searcher, ROUGH.outcome, 80, size)
    seeds = len(distinct_seeds(ROUGH))
    # A half more or less, for numbers of candidates are whole.
    assert abs(len(trials) - seeds - sum(chosen) - share * len(trials)) <= 0.5


TIME = Objective("time_s", "s")
SEEDS = 5
MODULE = """
func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %a = stablehlo.exponential %x : tensor<4x8xf32>
  %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %c = stablehlo.negate %b : tensor<4x8xf32>
  %d = stablehlo.add %c, %a : tensor<4x8xf32>
  %e = stablehlo.tanh %d : tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}
"""


class Guidable(CanEvolve, CanFeaturize, Protocol):
    """What the guided search needs of a space."""


def _loops() -> Guidable:
    from planish.levels.loops.space.template import TemplateSpace
    from planish.levels.loops.workloads import matmul

    return TemplateSpace(matmul(96, 80, 60), Target(""))


def _llvm() -> Guidable:
    from planish.levels.llvm.passes.catalogue import elements
    from planish.levels.llvm.passes.space import PassSpace

    return PassSpace(tuple(elements().values())[:12])


def _hlo() -> Guidable:
    from planish.levels.hlo import program_from
    from planish.levels.hlo.space import PatchSpace

    return PatchSpace(program_from(MODULE))


def _graph() -> Guidable:
    pytest.importorskip("onnxruntime")
    from planish.levels.graph.passes import REWRITING, RUNTIME, Selection, passes_of_kind
    from planish.levels.graph.space import PassVocabulary, SelectionSpace

    rewrites, disables = (
        tuple(each.name for each in passes_of_kind(*kinds)) for kinds in (REWRITING, RUNTIME)
    )
    vocabulary = PassVocabulary(rewrites[:8], disables[:8], offline=True)
    return SelectionSpace(lambda: vocabulary, None, lambda _: (Selection(),))


@pytest.mark.slow
@pytest.mark.parametrize("make", [_loops, _llvm, _hlo, _graph])
def test_it_finds_better_than_random_search_on_the_spaces_of_all_levels(make: Callable[[], Guidable]) -> None:
    space = make()
    weights = np.random.default_rng(3).normal(size=space.schema.width)

    def outcome(candidate: Candidate) -> Measured:
        return Measured({"time_s": float(np.exp(0.1 * (space.features([candidate]) @ weights)[0]))})

    def found(name: str, **options: str) -> float:
        ways = list[float]()  # the whole way counts: both may end at the best that there is
        for seed in range(SEEDS):
            searcher = make_searcher(name, space, [TIME], seed, options)
            ways += [best for best in best_so_far(drive(searcher, outcome, 56, 8), TIME) if best]
        assert len(ways) == SEEDS * 56
        return float(np.mean(np.log(ways)))

    assert found("model-guided", model="none") < found("random")


def test_a_prediction_is_the_score_of_the_model_before_the_batch_is_measured() -> None:
    searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 7, {"model": "none"})
    learner = make_learner(ROUGH, 7, "none", "rank", "mean", 0.0)
    learned = 0
    for size in islice(batch_sizes(), 8):
        batch = searcher.ask(size)
        predictions = [searcher.prediction(candidate) for candidate in batch]
        if learner.ready:
            scores = learner.score(batch).tolist()
            assert [each.learned for each in predictions if each] == [learned] * len(batch)
            assert [each.value for each in predictions if each] == pytest.approx(scores)
        else:
            assert predictions == [None] * len(batch)
        trials = [Trial(candidate, ROUGH.outcome(candidate)) for candidate in batch]
        searcher.tell(trials)
        learner.learn(batch, [trial.cost(ROUGH.objective) for trial in trials])
        learned += len(batch)
    assert learner.ready


def test_what_makes_the_best_good_comes_first() -> None:
    searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 7, {"model": "none"})
    trials = drive(searcher, ROUGH.outcome, 100)
    best = best_trial(trials, ROUGH.objective)
    assert best is not None
    found = searcher.importance(best.candidate, lambda: [trial.candidate for trial in trials])
    assert {name for name, _ in found} <= {*ROUGH.schema.names}
    assert found[0][1] > 0
    values = [abs(worse) for _, worse in found]
    assert values == sorted(values, reverse=True)


def test_who_knows_nothing_calls_nothing_important() -> None:
    searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 7, {"model": "none"})

    def never() -> Sequence[Candidate]:
        raise AssertionError

    assert searcher.importance(ROUGH.start(), never) == ()
