"""`planish models`: the shipped model, and one of the user's own."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.levels.loops.backends import preferred_backend
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.roofline import machine_peak
from planish.models.model_files import load_model, model_paths, models_folder, unused
from planish.models.provenance import HeldOut

CODE = Path(__file__).parents[2] / "benchmarks" / "llvm_functions" / "utf8.ll"
PROGRAM = ("C[m,n] += A[m,k] * B[k,n]", "--size", "m=20,n=24,k=28")


def test_the_shipped_model_is_listed(planish: Planish) -> None:
    (model,) = json.loads(planish("models", "--format", "json").out)["models"]
    assert (model["name"], model["level"], model["features"]) == ("loops", "loops", "loops/schedule 2")
    assert model["rows"] >= 30_000
    assert "loops/schedule 2" in planish("models").out


def test_what_searches_begin_with_is_listed_with_its_quality(planish: Planish) -> None:
    searches = json.loads(planish("models", "--format", "json").out)["searches"]
    by_level = {level: [each for each in searches if each["level"] == level] for level in ("loops", "llvm")}
    (model,) = by_level["loops"]
    assert (model["searcher"], model["source"]) == ("genetic", "the model loops")
    assert model["quality"].startswith("rank correlation 0.77 on 40 programs")
    (policy,) = (each for each in by_level["llvm"] if each["source"] == "the policy llvm, for instructions")
    assert "held-back functions by its first list: 3.4%" in policy["quality"]
    said = planish("models").out
    assert "What the default search of each level begins with:" in said


def test_a_model_that_does_not_improve_predictions_is_said_to_be_unused() -> None:
    model = load_model(model_paths()["loops"])
    conditions = {"objective": "time_s", "cores": 1}
    assert unused(model, conditions) == ""
    assert unused(model, {**conditions, "cores": 64}) == (
        "it learnt from trials of cores 1 and 2, and this is 64"
    )
    worse = replace(model, held_out=HeldOut(9, "rank correlation", 0.3, "another", 0.4))
    assert unused(worse, conditions) == "it does not improve predictions"


def test_a_file_that_cannot_be_read_hides_no_other_model(planish: Planish) -> None:
    broken = models_folder() / "broken.npz"
    broken.parent.mkdir(parents=True, exist_ok=True)
    broken.write_bytes(b"no model")
    try:
        said = planish("models", "--format", "json")
        assert said.code == 0
        assert [model["name"] for model in json.loads(said.out)["models"]] == ["loops"]
        assert said.err.startswith("planish: warning: broken is skipped: cannot read")
        assert planish("models", "remove", "broken").code == 0
    finally:
        broken.unlink(missing_ok=True)
    assert not planish("models").err


def test_a_model_is_fitted_evaluated_exported_and_removed(planish: Planish, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    assert planish("tune", *PROGRAM, "--trials", "20", "--store", store).code == 0
    said = planish("models", "fit", "--level", "loops", "--store", store)
    assert said.code == 0, said.err
    wrong = planish("models", "fit", "--level", "loops", "--store", store, "-o", tmp_path / "m.safetensors")
    assert wrong.err.startswith("planish: error: expected a .npz file for a model of trees, got ")
    own = models_folder() / "own-loops-time_s.npz"
    try:
        assert model_paths()["own-loops-time_s"] == own
        assert model_paths()["loops"].parent != own.parent
        listed = json.loads(planish("models", "--format", "json").out)["models"]
        (mine,) = (each for each in listed if each["name"] == "own-loops-time_s")
        assert mine["loss"] == "rank"
        assert {"objective": ["time_s"], "element type": ["float32"], "cores": [1]}.items() <= mine[
            "conditions"
        ].items()
        assert mine["conditions"]["peak"] == [machine_peak(preferred_backend())]
        assert load_model(own).rows >= 20
        asked = "searches use it together with planish's built-in cost model for loops; its weight is 0.0"
        assert asked in said.err
        measured = json.loads(
            planish("models", "evaluate", "own-loops-time_s", "--store", store, "--format", "json").out
        )
        assert measured["metrics"]["rank correlation"] > 0.3  # it has seen these
        assert planish("models", "export", "own-loops-time_s", tmp_path / "copy.npz").code == 0
        assert (tmp_path / "copy.npz").read_bytes() == own.read_bytes()
    finally:
        assert planish("models", "remove", "own-loops-time_s").code == 0
    assert not own.exists()


@pytest.mark.slow
def test_trials_of_several_leading_objectives_are_not_learnt_together(
    planish: Planish, tmp_path: Path
) -> None:
    store, file = tmp_path / "store.db", tmp_path / "bytes.npz"
    for objective in ("instructions", "text_bytes"):
        tuned = ("--objective", objective, "--searcher", "random", "--trials", "10", "--finalists", "1")
        assert planish("tune", CODE, *tuned, "--store", store).code == 0
    fit = ("models", "fit", "--level", "llvm", "--store", store, "-o", file)
    both = planish(*fit).error
    assert "several leading objectives: instructions (1 tasks), text_bytes (1 tasks)" in both
    assert both.endswith("Name one: --objective NAME.")
    assert "has the leading objective 'time_s'" in planish(*fit, "--objective", "time_s").error
    assert planish(*fit, "--objective", "text_bytes").code == 0
    assert load_model(file).conditions["objective"] == ["text_bytes"]
    guided = ("--searcher", "model-guided", "--set", f"model={file}", "--trials", "2", "--finalists", "1")
    other = planish("tune", CODE, "--objective", "instructions", *guided, "--store", store)
    assert "has learnt from trials of objective text_bytes, and this is instructions" in other.error


@pytest.mark.slow
def test_what_an_older_version_of_the_level_measured_is_left_out(
    planish: Planish, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, model = tmp_path / "store.db", tmp_path / "m.npz"
    fit = ("models", "fit", "--level", "loops", "--store", store, "--output", model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LoopsLevel, "version", "0")
        assert planish("tune", *PROGRAM, "--trials", "10", "--store", store).code == 0
        old = planish(*fit)
        assert old.code == 0
        (trials,) = re.findall(r"trials +(\d+) of 1 programs", old.out)
        assert not caplog.messages
    expected = f"skipped {trials} trials of 1 tasks, which other versions of the level 'loops' measured"
    none = planish(*fit)
    assert "the store has no trials of the level 'loops'" in none.error
    assert caplog.messages == [expected]
    assert planish("tune", *PROGRAM, "--trials", "9", "--store", store).code == 0
    some = planish(*fit, "--format", "json")
    assert json.loads(some.out)["rows"] < 15
    assert "knows 50 states of no program" in planish("policy", "evaluate", "loops", "--store", store).error
    assert caplog.messages == 3 * [expected]


@pytest.mark.slow
def test_a_guided_run_tells_of_its_model(planish: Planish, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    said = planish(
        "tune", *PROGRAM, "--trials", "24", "--searcher", "model-guided", "--store", store, "--format", "json"
    )
    run = json.loads(said.out)["run"]
    assert run["seconds"]["model"] > 0
    shown = planish("show", run["id"], "--store", store)
    assert "rank correlation" in shown.out
    assert re.search(
        r"Note: the search started from planish's built-in cost model for loops \(trained on \d+ programs\)",
        shown.out,
    )
    batches = json.loads(planish("show", run["id"], "--store", store, "--format", "json").out)["model"][
        "batches"
    ]
    assert [batch["before"] for batch in batches] == [*range(0, 24, 4)]


def test_a_network_is_fitted_listed_evaluated_used_and_removed(planish: Planish, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    store, own = tmp_path / "store.db", models_folder() / "own-loops-time_s-tree-gru.safetensors"
    assert planish("tune", *PROGRAM, "--trials", "12", "--store", store).code == 0
    said = planish("models", "fit", "--level", "loops", "--model", "tree-gru", "--store", store)
    assert said.code == 0, said.err
    try:
        listed = json.loads(planish("models", "--format", "json").out)["models"]
        assert {each["name"]: each["kind"] for each in listed} == {
            "loops": "trees",
            "own-loops-time_s-tree-gru": "tree-gru",
        }
        said = planish(
            "models", "evaluate", "own-loops-time_s-tree-gru", "--store", store, "--format", "json"
        )
        assert json.loads(said.out)["metrics"]["rank correlation"] > 0.3  # it has seen these
        assert (
            planish("models", "export", "own-loops-time_s-tree-gru", tmp_path / "copy.safetensors").code == 0
        )
        for model in ("own-loops-time_s-tree-gru", tmp_path / "copy.safetensors"):
            guided = ("--searcher", "model-guided", "--set", f"model={model}", "--trials", "4")
            assert planish("tune", *PROGRAM, *guided, "--store", tmp_path / "other.db").code == 0
    finally:
        assert planish("models", "remove", "own-loops-time_s-tree-gru").code == 0
    assert not own.exists()


def test_errors_are_one_line(planish: Planish, tmp_path: Path) -> None:
    assert "not one of your own" in planish("models", "remove", "loops").error
    assert "unknown model 'lops'" in planish("models", "export", "lops", tmp_path / "x").error
    (tmp_path / "cut.npz").write_bytes(model_paths()["loops"].read_bytes()[:5000])
    assert "cannot read a model" in planish("models", "evaluate", tmp_path / "cut.npz").error
    store = tmp_path / "empty.db"
    assert planish("tune", *PROGRAM, "--trials", "2", "--store", store).code == 0
    few = planish("models", "fit", "--level", "loops", "--store", store)
    assert (few.code, few.out) == (2, "")
    assert "has no trials of the level 'loops' with features and costs that differ" in few.error
