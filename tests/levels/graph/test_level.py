"""The level as a whole: tuned, described, exported; as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from levels.graph.models import convolutions, write
from planish import tune
from planish.core import Candidate, PlanishError
from planish.core.registry import level_of
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.model_protos import node_counts
from planish.levels.graph.passes import selection
from planish.store import open_store
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings

QUICK = Settings(workers=1, finalists=1)


@dataclass(frozen=True)
class Tuned:
    """A result, the model, and the store that it is in."""

    result: Result
    model: Path
    store: Path


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    folder = tmp_path_factory.mktemp("tuned")
    model = write(convolutions(), folder / "net.onnx")
    result = tune(str(model), budget=Budget(trials=5), settings=QUICK, store=folder / "store.db")
    return Tuned(result, model, folder / "store.db")


def test_models_find_the_level() -> None:
    assert level_of("net.onnx").name == "graph"


def test_the_baseline_is_always_among_the_finalists(tuned: Tuned) -> None:
    assert tuned.result.run.trials == 5
    assert Candidate() in [ranked.candidate for ranked in tuned.result.finalists]
    assert tuned.result.value <= max(r.lead.median for r in tuned.result.finalists)


def test_a_stored_run_reads_back(tuned: Tuned) -> None:
    with open_store(tuned.store) as store:
        found = read_result(store, tuned.result.run.id)
    assert found.task.key == tuned.result.task.key
    assert found.candidate == tuned.result.candidate


@pytest.mark.parametrize("offline", [False, True])
def test_what_is_exported_runs_without_planish(tuned: Tuned, tmp_path: Path, offline: bool) -> None:
    chosen = selection(["onnxoptimizer.fuse_bn_into_conv"], ["NchwcTransformer"], offline=offline)
    files = GraphLevel().export(tuned.result.task, chosen.candidate, tmp_path / "out")
    weights = ["net.planish.data"] if offline else []
    assert [file.name for file in files] == ["net.planish.onnx", *weights, "net.planish.json", "run_net.py"]
    facts, script = files[-2:]
    assert json.loads(facts.read_text())["passes"] == ["onnxoptimizer.fuse_bn_into_conv"]
    assert "planish." not in script.read_text().replace("net.planish.json", "")
    said = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    assert said.stdout == "y tensor(float) [1, 5]\n"


EXPORTED = """
import sys
from pathlib import Path
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.passes import selection
from planish.tuning.api import task_of
from planish.tuning.settings import Settings
level, (model, out) = GraphLevel(), sys.argv[1:]
chosen = selection(["onnxoptimizer.fuse_bn_into_conv"])
level.export(task_of(level, level.load(model, {}), Settings()), chosen.candidate, Path(out))
print([name for name in sys.modules if name.startswith("onnxoptimizer")])
"""


def test_an_export_applies_passes_in_a_process_of_their_own(tuned: Tuned, tmp_path: Path) -> None:
    command = [sys.executable, "-c", EXPORTED, str(tuned.model), str(tmp_path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"
    before, after = (node_counts(onnx.load(f)) for f in (tuned.model, tmp_path / "net.planish.onnx"))
    assert before["BatchNormalization"] > after.get("BatchNormalization", 0)


def test_a_run_delivers_the_model_and_what_was_chosen(tuned: Tuned, tmp_path: Path) -> None:
    files = GraphLevel().write_artifacts(tuned.result.task, Candidate(), tmp_path)
    assert [file.name for file in files] == ["net.planish.onnx", "net.planish.json"]
    assert sorted(files) == sorted(tmp_path.iterdir())


def test_unknown_spaces_and_options_are_reported(tuned: Tuned) -> None:
    level = GraphLevel()
    with pytest.raises(PlanishError, match="Did you mean 'relevant'"):
        level.space(tuned.result.task, "relevent")
    with pytest.raises(PlanishError, match=r"no option 'shapes'.*Did you mean 'shape'"):
        level.load(str(tuned.model), {"shapes": "x=1"})
    with pytest.raises(PlanishError, match=r"execution cannot be 'paralel'.*Did you mean 'parallel'"):
        level.load(str(tuned.model), {"execution": "paralel"})
    with pytest.raises(PlanishError, match=r"cannot allow 'fp8'. Known: fp16, int8, int8_static, mixed"):
        level.load(str(tuned.model), {"allow": "fp8"})


@pytest.mark.parametrize("name", ["inputs", "labels"])
def test_inputs_and_labels_that_cannot_be_read_are_reported_before_a_run_begins(
    name: str, tmp_path: Path
) -> None:
    model, store = tmp_path / "m.onnx", tmp_path / "a.db"
    write(convolutions(), model)
    (tmp_path / "bad.npz").write_text("no arrays\n")
    np.savez(tmp_path / "in.npz", x=np.zeros((1, 3, 8, 8), "f4"))
    inputs, labels = (tmp_path / ("bad.npz" if each == name else "in.npz") for each in ("inputs", "labels"))
    with pytest.raises(PlanishError, match=r"bad\.npz': it is not a file of arrays"):
        tune(model, budget=Budget(trials=1), settings=QUICK, store=store, inputs=inputs, labels=labels)
    with open_store(store) as opened:
        assert opened.runs() == []
