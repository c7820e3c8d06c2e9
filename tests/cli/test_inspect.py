"""`planish inspect`: the class and why, what matters, and where to begin; nothing is measured."""

import json
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.core import Candidate, Failed, Measured, Outcome, ProgramError, StoreError, Trial
from planish.core.registry import load_program
from planish.store import open_store
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

pytest.importorskip("onnxruntime", reason="the level graph is not installed")

SMALL = Path(__file__).parents[1] / "levels" / "graph" / "small"
RESNET, OTHER = (SMALL / f"resnet50-small-{exporter}.onnx" for exporter in ("torchscript", "dynamo-raw"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def tried(place: Path, model: Path, outcomes: dict[str, Outcome]) -> None:
    """Store trials of a model; passes are named by their rewriting pass, the baseline by nothing."""
    from planish.levels.graph.passes import selection

    level, program = load_program(str(model), "graph", {})
    with open_store(place) as store:
        run = store.begin_run(
            task_of(level, program, Settings("graph")), searcher="random", space="relevant", seed=0,
            options={}, versions={},
        )  # fmt: skip
        candidates = {name: selection([name]).candidate if name else Candidate() for name in outcomes}
        trials = [Trial(candidates[name], outcome, i) for i, (name, outcome) in enumerate(outcomes.items())]
        store.add_trials(run, trials)


def test_the_class_is_reported_with_its_reasons_and_the_papers_list(planish: Planish) -> None:
    said = planish("inspect", RESNET, "--no-relevance")
    assert said.code == 0
    assert said.out.startswith("class: ResNet-like\n  ResNet-like (1.00): 5 residual additions")
    assert "19 Conv" in said.out
    assert "starting list (table 4 of the paper: RN)\n  run first: onnxscript.fold_constants" in said.out
    assert "NchwcTransformer" in said.out
    assert "relevance" not in said.out


def test_an_open_shape_is_given_as_the_error_says(planish: Planish, tmp_path: Path) -> None:
    import onnx

    model = onnx.load(RESNET)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    onnx.save(model, tmp_path / "open.onnx")
    error = planish("inspect", tmp_path / "open.onnx", "--no-relevance").error
    hint = error.partition("Give it: ")[2].rstrip(".").split()
    assert hint == ["--shape", "images=1,3,32,32"]
    assert planish("inspect", tmp_path / "open.onnx", "--no-relevance", *hint).code == 0


def test_relevance_is_found_out_once(planish: Planish, cache: Path) -> None:
    first = planish("inspect", RESNET)
    assert "\nrelevance\n" in first.out
    assert list(cache.rglob("*.json"))
    assert planish("inspect", RESNET).out == first.out


def test_json_holds_the_same(planish: Planish, place: Path) -> None:
    said = json.loads(planish("inspect", RESNET, "--no-relevance", "--format", "json").out)
    assert [match["class"] for match in said["classes"]] == ["resnet"]
    assert said["features"]["convolutions"] == 19
    assert (said["relevance"], said["learnt"]) == (None, None)
    assert ["Disable", {"name": "AttentionFusion"}] in said["start"]["steps"]
    assert not place.exists()


def test_a_network_begins_with_what_helped_others_of_its_class(planish: Planish, place: Path) -> None:
    good, bad = "onnxscript.fold_constants", "onnxscript.inline"
    fast, slow = ({"latency": seconds} for seconds in (0.25, 4.0))
    lost = Failed("verify", "wrong answer")
    outcomes = {"": Measured({"latency": 1.0}), good: Measured(fast), bad: Measured(slow)}
    tried(place, OTHER, {**outcomes, "onnxscript.add_0": lost})
    said = planish("inspect", RESNET, "--no-relevance")
    assert "learned from 4 trials on 1 other model of class resnet" in said.out
    assert f"run first: {good}\n" in said.out
    assert "onnxscript.add_0: fails" in said.out
    found = json.loads(planish("inspect", RESNET, "--no-relevance", "--format", "json").out)
    assert next(effect["step"][1]["name"] for effect in found["learnt"]["effects"]) == good


def test_trials_of_the_model_itself_teach_nothing(planish: Planish, place: Path) -> None:
    outcomes: dict[str, Outcome] = {
        "": Measured({"latency": 1.0}),
        "onnxscript.inline": Measured({"latency": 0.1}),
    }
    tried(place, RESNET, outcomes)
    assert "learnt" not in planish("inspect", RESNET, "--no-relevance").out


def test_trials_of_other_classes_and_without_a_baseline_teach_nothing(planish: Planish, place: Path) -> None:
    better: dict[str, Outcome] = {"onnxscript.inline": Measured({"latency": 0.1})}
    tried(place, OTHER, better)
    tried(place, SMALL / "gpt-small-torchscript.onnx", {"": Measured({"latency": 1.0}), **better})
    assert "learnt" not in planish("inspect", RESNET, "--no-relevance").out


@pytest.mark.parametrize("content", [b"", b"no model at all", RESNET.read_bytes()[:5000]])
def test_what_is_no_model_is_reported_in_one_line(planish: Planish, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.onnx"
    file.write_bytes(content)
    said = planish("inspect", file)
    assert said.code == ProgramError.exit_code
    assert "bad.onnx" in said.error


def test_a_missing_file_and_a_missing_store_are_reported_in_one_line(
    planish: Planish, tmp_path: Path
) -> None:
    said = planish("inspect", tmp_path / "none.onnx")
    assert said.code == ProgramError.exit_code
    assert "none.onnx" in said.error
    said = planish("inspect", RESNET, "--no-relevance", "--store", tmp_path / "none.db")
    assert said.code == StoreError.exit_code
    assert "none.db" in said.error
