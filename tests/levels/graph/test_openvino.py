"""Another runtime for models, OpenVINO, where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from levels.graph import tasks
from levels.graph.models import convolutions, model, write
from planish.core import Candidate, Measured, ScheduleError, TargetError, Task
from planish.levels.graph.description import described
from planish.levels.graph.feeds import make_feeds
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.passes import (
    BY_OPENVINO,
    IN_BFLOAT16,
    Disable,
    Offline,
    Selection,
    Set,
    selection,
    selection_of,
)
from planish.levels.graph.program import program_from
from planish.levels.graph.sessions import RefusedError, SessionSettings, open_session
from planish.levels.graph.space import seeds_of, settable, space_of
from planish.levels.graph.task_setup import no_optimisation
from planish.levels.graph.verification import difference, tolerance

OPTIMISE = "onnxscript.optimize"
THERE = pytest.mark.skipif(find_spec("openvino") is None, reason="OpenVINO is not installed")


@pytest.fixture(params=["search", "openvino"])
def provider(request: pytest.FixtureRequest) -> str:
    return request.param


def make(folder: Path, provider: str, *objectives: str, **options: str) -> Task[Any]:
    return tasks.make(folder, *objectives, provider=provider, **options)


def test_a_runtime_that_is_not_installed_is_one_clear_line(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(
        TargetError, match=r"^OpenVINO is not installed\. Install it with: pip install 'planish"
    ):
        make(tmp_path, provider)


def test_no_setting_of_onnx_runtime_stays_where_another_runtime_runs() -> None:
    shown = [Set("arena", "off"), Set("optimization", "basic"), Set("threads", "1"), BY_OPENVINO]
    chosen = selection([OPTIMISE], ["NchwcTransformer"], offline=True, settings=shown)
    assert str(chosen.candidate) == str(Selection((OPTIMISE,), settings=frozenset(shown[2:])).candidate)
    with pytest.raises(ScheduleError, match="not in canonical order"):
        selection_of(Candidate((Disable("NchwcTransformer"), BY_OPENVINO)))
    with pytest.raises(ScheduleError, match="not in canonical order"):
        selection_of(Candidate((Offline(), BY_OPENVINO)))


@THERE
def test_both_runtimes_answer_alike(tmp_path: Path) -> None:
    task = make(tmp_path, "search")
    one = open_session(task.program.file, SessionSettings())
    other = open_session(task.program.file, SessionSettings(provider="openvino"))
    for feed in make_feeds(task.program, convolutions()):
        assert difference(other.run(feed), one.run(feed), tolerance(())) == ""


@THERE
def test_what_is_bound_keeps_its_inputs_when_others_are_run(tmp_path: Path) -> None:
    task = make(tmp_path, "search")
    session = open_session(task.program.file, SessionSettings(provider="openvino"))
    one, other = make_feeds(task.program, convolutions())[:2]
    kept = {name: array.copy() for name, array in one.items()}
    session.bound(one)()
    shown = session.run(other)
    assert all((one[name] == array).all() for name, array in kept.items())
    assert difference(session.run(one), shown, tolerance(())) != ""


@THERE
def test_a_search_of_runtimes_begins_with_each_and_measures_both(tmp_path: Path) -> None:
    task = make(tmp_path, "search")
    assert settable(task) == (BY_OPENVINO,)
    assert task.target.toolchain["openvino"]
    assert program_from(task.program.text) == task.program
    seeds = seeds_of(task)
    assert Selection(settings=frozenset({BY_OPENVINO})) in seeds
    assert Selection((OPTIMISE,), settings=frozenset({BY_OPENVINO})) in seeds
    found = tasks.outcomes_of(task, Candidate(), Candidate((BY_OPENVINO,)))
    assert all(isinstance(each, Measured) for each in found)


@THERE
def test_a_target_of_another_runtime_leaves_nothing_out_of_onnx_runtime(tmp_path: Path) -> None:
    task = make(tmp_path, "openvino", "compile_time")
    assert settable(task) == ()
    vocabulary = space_of(task, "all").vocabulary
    assert vocabulary.rewrites
    assert (vocabulary.disables, vocabulary.offline) == ((), False)
    assert all(each == Selection(each.rewrites) for each in seeds_of(task))
    (found,) = tasks.outcomes_of(task, Candidate())
    assert isinstance(found, Measured)
    assert no_optimisation(task).name == "ONNX Runtime"


@THERE
def test_bfloat16_is_chosen_only_where_results_may_change(provider: str, tmp_path: Path) -> None:
    assert IN_BFLOAT16 not in settable(make(tmp_path, provider))
    assert IN_BFLOAT16 not in settable(make(tmp_path, provider, tolerance="0.02", allow="int8"))
    task = make(tmp_path, provider, "latency", "accuracy")
    assert IN_BFLOAT16 in settable(task)
    assert Selection((OPTIMISE,), settings=frozenset({IN_BFLOAT16})) in seeds_of(task)
    (found,) = tasks.outcomes_of(task, Candidate((IN_BFLOAT16,)))
    assert tasks.measured(found).values["accuracy"] > 0.9
    assert "runs by OpenVINO in bfloat16" in str(described(task, Candidate((IN_BFLOAT16,)), {}))
    *_, facts, _ = GraphLevel().export(task, Candidate((IN_BFLOAT16,)), tmp_path / "out")
    assert json.loads(facts.read_text())["openvino"]["INFERENCE_PRECISION_HINT"] == "bf16"


@THERE
def test_what_a_runtime_does_not_take_is_refused_in_one_line(tmp_path: Path) -> None:
    from onnx import helper

    strange = model([helper.make_node("NhwcMaxPool", ["x"], ["y"], domain="com.microsoft")], [])
    strange.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    file = write(strange, tmp_path / "strange.onnx")
    with pytest.raises(RefusedError, match=r"^OpenVINO: ") as raised:
        open_session(file, SessionSettings(provider="openvino"))
    assert "\n" not in raised.value.message


@THERE
def test_the_result_says_what_it_needs_and_runs_without_planish(tmp_path: Path) -> None:
    task, chosen = make(tmp_path, "search"), Candidate((BY_OPENVINO,))
    assert "It runs by OpenVINO, and needs it: pip install openvino." in described(task, chosen, {})["passes"]
    *_, facts, script = GraphLevel().export(task, chosen, tmp_path / "out")
    assert list(json.loads(facts.read_text())["needs"]) == ["openvino"]
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    assert done.stdout.split()[0] == "y"
    assert "[1, 5]" in done.stdout
