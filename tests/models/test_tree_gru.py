"""The neural cost model: what it reads, what it learns, and its file. PyTorch is needed to learn alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Candidate, FeatureSchema, PlanishError, rng
from planish.core.installation import install_command
from planish.core.ranks import rank_correlation
from planish.models.combined import Combined
from planish.models.cost_model import Dataset, dataset_of
from planish.models.learner import make_learner
from planish.models.model_files import SavedModel, load_model, made_model, model_named, write_model
from planish.models.tree_gru import TreeGru
from planish.search import make_searcher
from planish.testing.searchers import best_so_far, drive
from planish.testing.synthetic import Lattice

LOOPS, OF_EACH = 4, ("p", "q", "r")
SCHEMA = FeatureSchema(
    "planks", 1, ("a", "b", *[f"{name}, loop {loop}" for loop in range(LOOPS) for name in OF_EACH])
)
ROUGH = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)


def features(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, SCHEMA.width)).astype(np.float32)


def data(count: int = 600, seed: int = 0, sign: float = 1.0) -> Dataset:
    """The cost is a sum over the loops, each of which adds the greater of two of its features."""
    asked = features(count, seed)
    loops = asked[:, 2:].reshape(count, LOOPS, len(OF_EACH))
    costs = np.exp(sign * np.maximum(loops[:, :, 0], loops[:, :, 1]).sum(axis=1) / 2 + 0.3 * asked[:, 0])
    return dataset_of(asked, costs.tolist(), np.repeat([0, 1], [count // 2, count - count // 2]).tolist())


def unlearnt(seed: int = 0) -> TreeGru:
    """A network of chance, for which nothing needs to be installed."""
    random = np.random.default_rng(seed)
    loops = np.arange(2, SCHEMA.width, dtype=np.int32).reshape(LOOPS, len(OF_EACH))
    unit, slots, hidden = 5, 3, 7
    shapes = {
        "mean": (SCHEMA.width,),
        "scale": (SCHEMA.width,),
        "input": (len(OF_EACH), 3 * unit),
        "input_bias": (3 * unit,),
        "recurrent": (unit, 3 * unit),
        "recurrent_bias": (3 * unit,),
        "scatter": (unit, slots),
        "scatter_bias": (slots,),
        "hidden": (unit * slots + 2, hidden),
        "hidden_bias": (hidden,),
        "out": (hidden, 1),
        "out_bias": (1,),
    }
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return TreeGru.of({**arrays, "loops": loops, "whole": np.arange(2, dtype=np.int32)})


def order(model: TreeGru | Combined, learnt: Dataset) -> float:
    return rank_correlation(model.predict(learnt.features).mean[:, 0], learnt.targets[:, 0])


@pytest.mark.parametrize("objective", ["rank", "regression"])
def test_it_orders_what_it_did_not_see(objective: str) -> None:
    pytest.importorskip("torch")
    model = TreeGru(objective, names=SCHEMA.names)
    model.fit(data())
    assert order(model, data(200, seed=1)) > 0.85


def test_it_learns_the_same_by_the_same_seed_and_leaves_the_threads_of_torch_alone() -> None:
    torch = pytest.importorskip("torch")
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    first, again, other = (TreeGru(epochs=3, seed=seed, names=SCHEMA.names) for seed in (1, 1, 2))
    for model in (first, again, other):
        model.fit(data(100))
    assert np.array_equal(first.predict(features(9)).mean, again.predict(features(9)).mean)
    assert not np.array_equal(first.predict(features(9)).mean, other.predict(features(9)).mean)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


def test_numpy_predicts_what_torch_would() -> None:
    torch = pytest.importorskip("torch")
    model = unlearnt()
    known = {name: torch.from_numpy(each) for name, each in model.weights.items()}
    cell = torch.nn.GRUCell(len(OF_EACH), 5)
    names = {
        "weight_ih": known["input"].T,
        "weight_hh": known["recurrent"].T,
        "bias_ih": known["input_bias"],
        "bias_hh": known["recurrent_bias"],
    }
    cell.load_state_dict(names)
    asked = features(20)
    loops, whole = (torch.from_numpy(each) for each in model.split(asked))
    state, memory = torch.zeros(20, 5), torch.zeros(20, 3, 5)
    for loop in range(LOOPS):
        state = cell(loops[:, loop], state)
        shares = torch.softmax(state @ known["scatter"] + known["scatter_bias"], dim=1)
        memory = memory + shares[:, :, None] * state[:, None]
    read = torch.cat([memory.flatten(1), whole], dim=1)
    hidden = torch.relu(read @ known["hidden"] + known["hidden_bias"])
    theirs = (hidden @ known["out"] + known["out_bias"]).detach().numpy()
    assert model.predict(asked).mean == pytest.approx(theirs, rel=1e-4, abs=1e-4)


def test_features_without_loops_are_those_of_one() -> None:
    pytest.importorskip("torch")
    asked = np.random.default_rng(0).standard_normal((400, 5)).astype(np.float32)
    learnt = Dataset(asked, (asked[:, 0] + np.abs(asked[:, 1]))[:, None])
    model = TreeGru("regression")
    model.fit(learnt)
    assert model.weights["loops"].shape == (1, 5)
    assert order(model, learnt) > 0.9


def test_what_tells_nothing_teaches_nothing_and_breaks_nothing() -> None:
    pytest.importorskip("torch")
    for costs in ([0.5] * 20, [None] * 20, [float("nan")] * 20):
        model = TreeGru(epochs=2, names=SCHEMA.names)
        model.fit(dataset_of(features(20), costs))
        assert np.isfinite(model.predict(features(20)).mean).all()
    model.fit(dataset_of(features(1), [1.0]))
    assert np.isfinite(model.predict(features(3)).mean).all()


def test_it_is_added_to_a_global_model_and_drops_one_that_misleads() -> None:
    pytest.importorskip("torch")
    known = TreeGru(epochs=30, names=SCHEMA.names)
    known.fit(data(300))
    model = Combined(TreeGru(epochs=20, rows=32, names=SCHEMA.names), known)
    model.fit(data(200, seed=3, sign=-1))
    assert model.weight < 1
    assert order(model, data(200, seed=4, sign=-1)) > 0.5


@pytest.fixture
def saved() -> SavedModel:
    return made_model("planks", SCHEMA, "rank", {"rank correlation": 0.5}, data(), unlearnt())


def test_it_is_read_as_it_was_written(saved: SavedModel, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_model(saved, path)
    again = model_named(str(path), SCHEMA)
    names = ("level", "kind", "schema", "objective", "metrics", "rows", "programs", "training", "version")
    for name in names:
        assert getattr(again, name) == getattr(saved, name)
    asked = features(20)
    assert np.array_equal(again.predicts.predict(asked).mean, saved.predicts.predict(asked).mean)
    assert [each.name for each in tmp_path.iterdir()] == ["m.safetensors"]


def test_a_file_that_was_cut_off_changed_or_is_of_other_features_is_one_line(
    saved: SavedModel, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    write_model(saved, path)
    whole = path.read_bytes()
    for text in (b"", b"no model", whole[:-10], whole[:100]):
        path.write_bytes(text)
        with pytest.raises(PlanishError, match="cannot read a model"):
            load_model(path)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(PlanishError, match="was changed"):
        load_model(path)
    path.write_bytes(whole)
    with pytest.raises(PlanishError, match="is for the features planks 1, and these are planks 2"):
        model_named(str(path), FeatureSchema("planks", 2, SCHEMA.names))


@pytest.mark.parametrize("array", ["loops", "hidden", "mean"])
def test_arrays_that_do_not_fit_are_refused(saved: SavedModel, tmp_path: Path, array: str) -> None:
    model = unlearnt()
    model.weights[array] = np.concatenate([model.weights[array], model.weights[array] + 90])
    other = made_model("planks", SCHEMA, "rank", saved.metrics, data(), model)
    write_model(other, tmp_path / "m.safetensors")
    with pytest.raises(PlanishError, match="holds no model of its 14 features"):
        load_model(tmp_path / "m.safetensors")


def test_a_search_learns_by_it() -> None:
    pytest.importorskip("torch")
    options = {"local": "tree-gru", "model": "none", "batch": 16}
    searcher = make_searcher("model-guided", ROUGH, [ROUGH.objective], 0, options)
    best = best_so_far(drive(searcher, ROUGH.outcome, 60, 8), ROUGH.objective)[-1]
    assert best is not None
    assert best < 2 * ROUGH.optimum()


def test_without_torch_the_extra_is_named_and_a_global_model_guides_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PlanishError, match="PyTorch, which is not installed") as error:
        TreeGru().fit(data())
    assert install_command("train") in str(error.value)
    with pytest.raises(PlanishError, match="PyTorch is not installed") as error:
        make_learner(ROUGH, 0, "none", "rank", "mean", 1.0, "tree-gru", 0)
    assert install_command("train") in str(error.value)
    space = _Planks()
    path = tmp_path / "m.safetensors"
    write_model(made_model("planks", SCHEMA, "rank", {}, data(), unlearnt()), path)
    learner = make_learner(space, 0, str(path), "rank", "mean", 1.0, "tree-gru", 0)
    assert learner.missing_library.endswith(f"guides the search alone ({install_command('train')})")
    candidates = [space.sample(rng(0, i)) for i in range(60)]
    before = learner.score(candidates)
    learner.learn(candidates, [1.0 + i for i in range(60)])
    assert np.array_equal(before, learner.score(candidates))


class _Planks(Lattice):
    """A lattice with loops."""

    @property
    def schema(self) -> FeatureSchema:
        return SCHEMA

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        return features(len(candidates))
