"""Cost models: how well they predict, their files, and the folders that hold them."""

from __future__ import annotations

import json
import logging
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import FeatureSchema, PlanishError
from planish.core.ranks import rank_correlation
from planish.levels.loops.features import SCHEMA as LOOPS
from planish.models.combined import Bootstrap, Combined, acquire
from planish.models.cost_model import Dataset, Prediction, dataset_of, top_recall
from planish.models.model_files import (
    SavedModel,
    load_model,
    made_model,
    model_named,
    model_paths,
    models_folder,
    models_for,
    required,
    write_model,
)
from planish.models.provenance import HeldOut
from planish.models.trees import BoostedTrees, XgboostTrees

SCHEMA = FeatureSchema("letters", 1, ("a", "b", "c", "d", "e"))


def floats(values: object) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def data(count: int = 200, seed: int = 0, sign: float = 1.0) -> Dataset:
    """The cost rises by the first feature, and jumps by the second; one of them is constant."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, 5)).astype(np.float32)
    features[:, 4] = 7
    targets = sign * (features[:, 0] + 2 * (features[:, 1] > 0.3))
    return Dataset(features, targets.astype(np.float32)[:, None])


def correlation(model: Combined | XgboostTrees | Bootstrap, seed: int = 1, sign: float = 1.0) -> float:
    other = data(seed=seed, sign=sign)
    return rank_correlation(model.predict(other.features).mean[:, 0], other.targets[:, 0])


@pytest.mark.parametrize("objective", ["rank", "regression"])
def test_they_order_what_they_did_not_see(objective: str) -> None:
    model = XgboostTrees(objective)
    model.fit(data())
    assert correlation(model) > 0.85


def test_trees_are_read_as_xgboost_reads_them() -> None:
    import xgboost

    learnt, model = data(500), XgboostTrees("regression", rounds=20, depth=4)
    model.fit(learnt)
    matrix = xgboost.DMatrix(learnt.features[:, :4], learnt.targets[:, 0])
    matrix.set_base_margin(np.full(500, learnt.targets.mean(), np.float32))
    theirs = xgboost.train(model.parameters, matrix, 20).predict(matrix)
    assert model.predict(learnt.features).mean[:, 0] == pytest.approx(theirs, abs=1e-5)


def test_only_rows_of_one_group_are_compared() -> None:
    """The second program costs a thousand times as much; the order within each is all that is learnt."""
    first, second = data(seed=0), data(seed=1)
    features = np.concatenate([first.features, second.features])
    targets = np.concatenate([first.targets, second.targets + 1000])
    model = XgboostTrees()
    model.fit(Dataset(features, targets, np.repeat([0, 1], 200).astype(np.intp)))
    assert correlation(model, seed=2) > 0.85


@pytest.mark.parametrize("costs", [[0.5] * 30, [None] * 30, [float("nan")] * 30])
def test_of_costs_that_tell_nothing_nothing_is_learnt(costs: list[float | None]) -> None:
    model = XgboostTrees()
    model.fit(dataset_of(data(30).features, costs))
    assert np.ptp(model.predict(data().features).mean) == 0


def test_failures_are_worse_than_all_that_was_measured() -> None:
    found = dataset_of(np.zeros((3, 1), np.float32), [2.0, None, 8.0]).targets[:, 0]
    assert found[0] < found[2] < found[1]
    raised = dataset_of(np.zeros((3, 1), np.float32), [-2.0, None, -8.0]).targets[:, 0]
    assert raised[2] < raised[0] < raised[1]


def test_a_global_model_helps_where_it_is_right_and_is_dropped_where_it_is_not() -> None:
    known = XgboostTrees()
    known.fit(data(400, seed=5))
    few, many = data(20, seed=6), data(200, seed=7, sign=-1)
    alone, helped, misled = (
        Combined(XgboostTrees()),
        Combined(XgboostTrees(), known),
        Combined(XgboostTrees(), known),
    )
    alone.fit(few)
    helped.fit(few)
    misled.fit(many)
    assert correlation(helped) > correlation(alone)
    assert helped.weight > 0 == misled.weight
    assert correlation(misled, sign=-1) > 0.8


def test_without_xgboost_the_global_model_predicts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    known = XgboostTrees()
    known.fit(data(400, seed=5))
    monkeypatch.setitem(sys.modules, "xgboost", None)
    model = Combined(XgboostTrees(), known.trees)
    model.fit(data())
    assert np.array_equal(model.predict(data().features).mean, known.predict(data().features).mean)
    with pytest.raises(PlanishError, match="not installed"):
        XgboostTrees().fit(data())


def test_an_ensemble_is_surer_of_what_it_has_seen() -> None:
    model = Bootstrap([XgboostTrees("regression", seed=i) for i in range(5)])
    learnt = data()
    model.fit(learnt)
    assert correlation(model) > 0.85
    deviation = model.predict(learnt.features).deviation
    assert deviation is not None
    assert (deviation > 0).all()


def test_acquisition_prefers_the_good_and_the_uncertain() -> None:
    asked = Prediction(floats([[1.0], [1.0], [3.0]]), floats([[0.1], [1.0], [0.1]]))
    assert acquire("mean", asked, 0, 1).tolist() == [1, 1, 3]
    assert np.argsort(acquire("ucb", asked, 0, 1)).tolist() == [1, 0, 2]
    assert np.argsort(acquire("ei", asked, 1.0, 1)).tolist() == [1, 0, 2]


def test_metrics() -> None:
    values = floats([1, 2, 2, 4])
    assert rank_correlation(values, values * 3) == pytest.approx(1)
    assert rank_correlation(values, -values) == pytest.approx(-1)
    assert rank_correlation(np.ones(4, np.float32), values) == 0
    assert top_recall(floats([1, 2, 3, 4]), floats([1, 4, 3, 2]), 2) == 0.5


@pytest.fixture
def saved() -> SavedModel:
    model = XgboostTrees()
    model.fit(data())
    return made_model("letters", SCHEMA, "rank", {"rank correlation": 0.5}, data(), model.trees)


def test_a_model_is_read_as_it_was_written(saved: SavedModel, tmp_path: Path) -> None:
    write_model(saved, tmp_path / "m.npz")
    again = required(tmp_path / "m.npz", SCHEMA)
    for name in ("level", "schema", "objective", "metrics", "rows", "programs", "training", "version"):
        assert getattr(again, name) == getattr(saved, name)
    asked = data(seed=9).features
    assert again.predicts.predict(asked).mean == pytest.approx(saved.predicts.predict(asked).mean, abs=0.02)


def test_a_model_of_other_features_is_refused(saved: SavedModel, tmp_path: Path) -> None:
    write_model(saved, tmp_path / "m.npz")
    with pytest.raises(PlanishError, match="is for the features letters 1, and these are letters 2"):
        required(tmp_path / "m.npz", FeatureSchema("letters", 2, SCHEMA.names))


def test_a_model_that_was_changed_or_cut_off_is_refused(saved: SavedModel, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    write_model(saved, path)
    whole = path.read_bytes()
    with np.load(path) as held:
        arrays = {name: held[name] for name in held.files}
    for change in (
        {"leaves": arrays["leaves"] + 1},
        {"about": _about(arrays, format=9)},
        {"more": arrays["start"]},
    ):
        np.savez_compressed(path, allow_pickle=False, **{**arrays, **change})
        with pytest.raises(PlanishError, match=r"was changed|has format|'more'"):
            load_model(path)
    np.savez_compressed(path, allow_pickle=False, **{**arrays, "about": _about(arrays, metrics=None)})
    with pytest.raises(PlanishError, match=r"cannot read a model from .*it lacks 'metrics'"):
        load_model(path)
    np.savez_compressed(path, allow_pickle=False, start=arrays["start"])
    with pytest.raises(PlanishError, match="it lacks 'about"):
        load_model(path)
    for text in (b"", b"no model", whole[:-100], whole[: len(whole) // 2]):
        path.write_bytes(text)
        with pytest.raises(PlanishError, match="cannot read a model"):
            load_model(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"level": 5}, "its level is 5, not text"),
        (
            {"level": "loops", "schema": {"name": "llvm/list", "version": 1, "names": ["a"]}},
            "of the level 'llvm'",
        ),
        ({"objective": "speed"}, "its objective is 'speed'"),
        ({"rows": "many"}, "its number of trials is 'many'"),
        ({"rows": -3}, "its number of trials is -3"),
        ({"programs": 0}, "its number of programs is 0"),
        ({"programs": 201}, "its number of programs is 201, of 200 trials"),
        ({"programs": True}, "its number of programs is True"),
        ({"metrics": ["good"]}, "its metrics are not a dictionary of numbers"),
        ({"metrics": {"rank correlation": "0.5"}}, "its metrics are not a dictionary of numbers"),
        ({"metrics": {"rank correlation": math.nan}}, "its metrics are not a dictionary of numbers"),
        ({"schema": {"name": "letters", "version": 1, "names": ["a", "a"]}}, "its features lack a name"),
        ({"schema": {"name": "letters", "version": 1, "names": ["a"]}}, "no model of its 1 features"),
        ({"schema": ["letters"]}, "its features lack a name, a version or columns"),
    ],
)
def test_facts_that_cannot_be_true_are_refused_in_one_line(
    saved: SavedModel, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = tmp_path / "m.npz"
    write_model(saved, path)
    with np.load(path) as held:
        arrays = {name: held[name] for name in held.files}
    np.savez_compressed(path, allow_pickle=False, **{**arrays, "about": _about(arrays, **change)})
    with pytest.raises(PlanishError, match=said) as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_arrays_that_would_mislead_a_search_are_refused(saved: SavedModel, tmp_path: Path) -> None:
    arrays = saved.predicts.arrays()
    features, nothing = arrays["features"], np.float32(np.nan)
    for name, changed, said in (
        ("leaves", np.full_like(arrays["leaves"], nothing), "not finite numbers in leaves"),
        ("thresholds", np.full_like(arrays["thresholds"], nothing), "not finite numbers in thresholds"),
        ("features", features.astype(np.float32), "not finite numbers in features"),
        ("features", features + 99, "no model of its 5 features"),
        ("features", features[0], "no model of its 5 features"),
        ("start", arrays["start"][:0], "no model of its 5 features"),
    ):
        spoilt = BoostedTrees.of({**arrays, name: changed})
        write_model(replace(saved, predicts=spoilt), tmp_path / "m.npz")
        with pytest.raises(PlanishError, match=said):
            load_model(tmp_path / "m.npz")


def _about(arrays: dict[str, np.ndarray], **change: object) -> np.ndarray:
    """Change facts of a model; None takes one out."""
    told = {**json.loads(arrays["about"].tobytes()), **change}
    about = {name: value for name, value in told.items() if value is not None}
    return np.frombuffer(json.dumps(about).encode(), np.uint8)


def test_the_shipped_model_is_small_and_for_the_features_of_today() -> None:
    from planish.levels.loops.features import SCHEMA as TODAY

    path = model_paths()["loops"]
    assert path.stat().st_size < 2_000_000
    model = required(path, TODAY)
    assert model.rows >= 30_000
    assert model.metrics["rank correlation"] > 0.7
    assert model.measured == "time_s"
    assert model.conditions["cores"] == [1, 2]
    assert "text_bytes" not in model.conditions["objective"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a model of the user's that has the shipped one's name."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    models_folder().mkdir(parents=True)
    return models_folder() / "loops.npz"


def shipped() -> SavedModel:
    return load_model(model_paths()["loops"])


def trainings() -> dict[str, str]:
    return {name: model.training for name, model in models_for(LOOPS).items()}


def test_the_users_model_and_the_shipped_one_are_asked_together(own: Path) -> None:
    known = shipped()
    assert trainings() == {"planish's loops": known.training}
    write_model(replace(known, programs=1, training="mine"), own)
    assert trainings() == {"your loops.npz": "mine", "planish's loops": known.training}
    assert model_named("own-loops", LOOPS).training == "mine", "what is named is asked alone"
    assert model_named("loops", LOOPS).training == known.training, "the shipped one keeps its name"


@pytest.mark.parametrize(
    ("name", "value"),
    [("objective", "text_bytes"), ("element type", "int8"), ("cores", 64), ("vector bytes", 16)],
)
def test_a_model_is_asked_only_under_the_conditions_of_its_trials(
    own: Path, name: str, value: str | int
) -> None:
    usual = {"objective": "time_s", "element type": "float32", "cores": 1, "vector bytes": 64}
    mine = {key: [each] for key, each in usual.items()}
    write_model(replace(shipped(), programs=10**6, rows=10**6, training="mine", conditions=mine), own)
    assert load_model(own).conditions == mine
    assert [*models_for(LOOPS, usual)] == ["your loops.npz", "planish's loops"]
    assert "your loops.npz" not in models_for(LOOPS, {**usual, name: value})
    assert model_named("own-loops", LOOPS, "time_s").training == "mine", "the user may ask it elsewhere"
    with pytest.raises(PlanishError, match="learnt from trials of objective time_s, and this is text_bytes"):
        model_named("own-loops", LOOPS, "text_bytes")


@pytest.mark.parametrize(("value", "asked"), [(0.8, True), (0.7, False), (0.2, False)])
def test_a_model_that_does_not_improve_predictions_of_held_back_programs_is_not_asked(
    own: Path, value: float, *, asked: bool
) -> None:
    held_out = HeldOut(4, "rank correlation", value, "planish's loops", 0.7)
    write_model(replace(shipped(), programs=1, training="mine", held_out=held_out), own)
    assert load_model(own).held_out == held_out
    assert ("your loops.npz" in models_for(LOOPS)) is asked


def test_of_models_that_learnt_from_the_same_trials_one_is_asked(own: Path) -> None:
    write_model(shipped(), own)
    assert [*trainings()] == ["your loops.npz"]


@pytest.mark.parametrize("damaged", [False, True])
def test_what_cannot_be_used_is_reported_and_the_shipped_one_is_asked(
    own: Path, caplog: pytest.LogCaptureFixture, *, damaged: bool
) -> None:
    known = shipped()
    write_model(replace(known, programs=9999, schema=replace(LOOPS, version=99)), own)
    if damaged:
        own.write_bytes(own.read_bytes()[:5000])
    with caplog.at_level(logging.WARNING, "planish"):
        assert trainings() == {"planish's loops": known.training}
    said = (
        f"cannot read a model from {own}"
        if damaged
        else f"the model {own} is for the features loops/schedule 99"
    )
    assert said in caplog.text
    assert caplog.text.rstrip().endswith("it is left out")
