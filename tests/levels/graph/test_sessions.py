"""Settings of sessions as a part of candidates, and another runtime."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from levels.graph import tasks
from levels.graph.models import convolutions, model, write
from levels.graph.tasks import FixedExecutor, outcomes_of
from levels.outcomes import failure, measured
from planish.core import Candidate, PlanishError, ScheduleError, TargetError, Task
from planish.levels.graph.description import described
from planish.levels.graph.evaluator import CREATIONS
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
from planish.levels.graph.program import GraphProgram, program_from
from planish.levels.graph.sessions import ModelSession, RefusedError, SessionSettings, open_session
from planish.levels.graph.space import seeds_of, settable, settings_of, space_of, widest_settings
from planish.levels.graph.starting_lists import records_of
from planish.levels.graph.task_setup import no_optimization
from planish.levels.graph.verification import difference, tolerance

PARALLEL, NO_ARENA = Set("execution", "parallel"), Set("arena", "off")


def make(
    folder: Path, *objectives: str, cores: int = 2, session: str = "search", **options: str
) -> Task[GraphProgram]:
    """Make a task whose settings are searched, of so many cores, however many there are here."""
    task = tasks.make(folder, *objectives, session=session, **options)
    return replace(task, target=replace(task.target, cores=cores))


def test_what_may_be_set_is_what_the_target_does_not_have(tmp_path: Path) -> None:
    shown = [str(each) for each in settable(make(tmp_path, cores=3, optimization="basic", arena="off"))]
    assert shown == [
        *("optimization=all", "optimization=extended", "optimization=none"),
        *("execution=parallel", "arena=on", "threads=1", "threads=2"),
    ]
    alone = [str(each) for each in settable(make(tmp_path, cores=1))]
    assert alone == ["optimization=extended", "optimization=basic", "optimization=none", "arena=off"]


def test_settings_are_offered_on_request_only(tmp_path: Path) -> None:
    asked, not_asked = make(tmp_path), make(tmp_path, session="")
    assert settable(not_asked) == ()
    assert seeds_of(not_asked) == [each for each in seeds_of(asked) if not each.settings]
    assert space_of(not_asked, "all").vocabulary.settings == ()
    assert "session" not in not_asked.program.text.partition("\n")[2]
    assert widest_settings(not_asked) == settings_of(not_asked)


def test_what_was_asked_for_is_read_back(tmp_path: Path) -> None:
    program = make(tmp_path).program
    assert program_from(program.text) == program
    assert program.session
    with pytest.raises(PlanishError, match=r"session cannot be 'serach'.*Did you mean 'search'"):
        make(tmp_path, session="serach")


def test_relevance_is_of_the_highest_level_that_may_be_set(tmp_path: Path) -> None:
    assert widest_settings(make(tmp_path, optimization="basic")).optimization == "all"
    assert widest_settings(make(tmp_path, session="", optimization="basic")).optimization == "basic"


def test_candidates_run_with_their_settings(tmp_path: Path) -> None:
    import onnxruntime as ort

    opened: list[Any] = []

    def opens(*given: Any, **named: Any) -> ModelSession:
        session = open_session(*given, **named)
        opened.append(session.inner.get_session_options())
        return session

    settings = [PARALLEL, NO_ARENA, Set("optimization", "basic"), Set("threads", "2")]
    chosen = selection(settings=settings, offline=True).candidate
    plain, changed = outcomes_of(make(tmp_path, "compile_time", cores=3), Candidate(), chosen, opens=opens)
    assert all(map(measured, (plain, changed)))
    reference, usual, *rest = opened
    for each in (reference, usual):
        assert (each.execution_mode, each.enable_cpu_mem_arena) == (ort.ExecutionMode.ORT_SEQUENTIAL, True)
        assert (each.intra_op_num_threads, each.inter_op_num_threads) == (3, 3)
    mine = [each for each in rest if not each.enable_cpu_mem_arena]
    assert len(mine) == 3 + CREATIONS  # to verify, to keep, to load what was kept; and to time that
    assert {each.execution_mode for each in mine} == {ort.ExecutionMode.ORT_PARALLEL}
    assert {each.inter_op_num_threads for each in mine} == {2}
    levels = ort.GraphOptimizationLevel
    made, loaded = levels.ORT_ENABLE_BASIC, levels.ORT_DISABLE_ALL
    assert [each.graph_optimization_level for each in mine] == [made, made, *[loaded] * 6]


def test_memory_is_measured_with_a_candidate_s_settings(tmp_path: Path) -> None:
    seen: list[SessionSettings] = []

    def peak(_: Path, settings: SessionSettings, *__: object, as_it_is: bool) -> float:
        del as_it_is
        seen.append(settings)
        return 1.0

    candidates = Candidate(), selection(settings=[NO_ARENA]).candidate
    outcomes_of(make(tmp_path, "peak_memory"), *candidates, peak=peak)
    assert [each.arena for each in seen] == [True, False]


@pytest.mark.parametrize(
    ("setting", "said"),
    [(Set("arena", "on"), "has arena=on already"), (Set("threads", "3"), "3 threads on 2 cores")],
)
def test_what_the_target_has_or_cannot_have_is_no_candidate(setting: Set, said: str, tmp_path: Path) -> None:
    (found,) = outcomes_of(make(tmp_path), selection(settings=[setting]).candidate)
    assert failure(found) == ("transform", "illegal step")
    assert said in str(found)


def test_what_is_exported_has_the_settings(tmp_path: Path) -> None:
    chosen = selection(settings=[PARALLEL, NO_ARENA, Set("optimization", "basic")]).candidate
    *_, facts, script = GraphLevel().export(make(tmp_path), chosen, tmp_path / "out")
    session = json.loads(facts.read_text())["session"]
    assert session == {
        "intra_op_num_threads": 2,
        "inter_op_num_threads": 2,
        "enable_cpu_mem_arena": False,
        "execution_mode": "ORT_PARALLEL",
        "graph_optimization_level": "ORT_ENABLE_BASIC",
    }
    shown = script.read_text() + "print(options.execution_mode, options.enable_cpu_mem_arena)\n"
    script.write_text(shown)
    said = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    assert said.stdout.splitlines()[-1] == "ExecutionMode.ORT_PARALLEL False"


def test_a_setting_is_reported_with_its_effects(tmp_path: Path) -> None:
    def values(chosen: Selection) -> Mapping[str, float]:
        latency = 2.0 if NO_ARENA in chosen.settings else 3.0
        return {"latency": latency, "compile_time": 1.0, "model_size": 4e6}

    level, task = GraphLevel(), make(tmp_path)
    chosen = selection(["onnxscript.eliminate_identity"], settings=[NO_ARENA]).candidate
    shown = level.describe(task, chosen, level.analyzer(task)(chosen, FixedExecutor(values)))
    assert shown["passes"].splitlines()[-1].split() == ["2.", "arena=off", "1.50x", "1.50x"]
    assert "this selection, offline  2000. ms" in shown["compared"]


def test_a_level_that_makes_the_same_is_the_same_and_other_settings_are_not(tmp_path: Path) -> None:
    with GraphLevel().identities(make(tmp_path)) as name:
        levels = {
            level: name(selection(settings=[Set("optimization", level)]).candidate)
            for level in ("basic", "none")
        }
        assert len({name(Candidate()), *levels.values()}) == 3
        everything = selection((), ["NchwcTransformer"]).candidate
        assert name(everything) == name(selection(settings=[Set("optimization", "extended")]).candidate)
        assert name(selection(settings=[NO_ARENA]).candidate) != name(Candidate())


def test_settings_are_not_learnt_from_other_models(tmp_path: Path) -> None:
    program = make(tmp_path).program
    tried = [(Candidate(), 1.0), (selection(settings=[NO_ARENA]).candidate, 0.5)]
    learnt = [each.candidate for each in records_of(program.text, tried)]
    assert learnt == [Candidate()]
    assert selection_of(learnt[0]) == Selection()


OPTIMIZE = "onnxscript.optimize"
THERE = pytest.mark.skipif(find_spec("openvino") is None, reason="OpenVINO is not installed")


@pytest.fixture(params=["search", "openvino"])
def provider(request: pytest.FixtureRequest) -> str:
    return request.param


def make_for(folder: Path, provider: str, *objectives: str, **options: str) -> Task[Any]:
    return tasks.make(folder, *objectives, provider=provider, **options)


def test_a_runtime_that_is_not_installed_is_one_clear_line(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(
        TargetError, match=r"^OpenVINO is not installed\. Install it with: pip install .*\[openvino\]'"
    ):
        make_for(tmp_path, provider)


def test_no_setting_of_onnx_runtime_stays_where_another_runtime_runs() -> None:
    shown = [Set("arena", "off"), Set("optimization", "basic"), Set("threads", "1"), BY_OPENVINO]
    chosen = selection([OPTIMIZE], ["NchwcTransformer"], offline=True, settings=shown)
    assert str(chosen.candidate) == str(Selection((OPTIMIZE,), settings=frozenset(shown[2:])).candidate)
    with pytest.raises(ScheduleError, match="not in canonical order"):
        selection_of(Candidate((Disable("NchwcTransformer"), BY_OPENVINO)))
    with pytest.raises(ScheduleError, match="not in canonical order"):
        selection_of(Candidate((Offline(), BY_OPENVINO)))


@THERE
def test_both_runtimes_answer_alike(tmp_path: Path) -> None:
    task = make_for(tmp_path, "search")
    one = open_session(task.program.file, SessionSettings())
    other = open_session(task.program.file, SessionSettings(provider="openvino"))
    for feed in make_feeds(task.program, convolutions()):
        assert difference(other.run(feed), one.run(feed), tolerance(())) == ""


@THERE
def test_what_is_bound_keeps_its_inputs_when_others_are_run(tmp_path: Path) -> None:
    task = make_for(tmp_path, "search")
    session = open_session(task.program.file, SessionSettings(provider="openvino"))
    one, other = make_feeds(task.program, convolutions())[:2]
    kept = {name: array.copy() for name, array in one.items()}
    session.bound(one)()
    shown = session.run(other)
    assert all((one[name] == array).all() for name, array in kept.items())
    assert difference(session.run(one), shown, tolerance(())) != ""


@THERE
def test_a_search_of_runtimes_begins_with_each_and_measures_both(tmp_path: Path) -> None:
    task = make_for(tmp_path, "search")
    assert settable(task) == (BY_OPENVINO,)
    assert task.target.toolchain["openvino"]
    assert program_from(task.program.text) == task.program
    seeds = seeds_of(task)
    assert Selection(settings=frozenset({BY_OPENVINO})) in seeds
    assert Selection((OPTIMIZE,), settings=frozenset({BY_OPENVINO})) in seeds
    found = tasks.outcomes_of(task, Candidate(), Candidate((BY_OPENVINO,)))
    assert all(map(measured, found))


@THERE
def test_a_target_of_another_runtime_leaves_nothing_out_of_onnx_runtime(tmp_path: Path) -> None:
    task = make_for(tmp_path, "openvino", "compile_time")
    assert settable(task) == ()
    vocabulary = space_of(task, "all").vocabulary
    assert vocabulary.rewrites
    assert (vocabulary.disables, vocabulary.offline) == ((), False)
    assert all(each == Selection(each.rewrites) for each in seeds_of(task))
    measured(*tasks.outcomes_of(task, Candidate()))
    assert no_optimization(task).name == "ONNX Runtime"


@THERE
def test_bfloat16_is_chosen_only_where_results_may_change(provider: str, tmp_path: Path) -> None:
    assert IN_BFLOAT16 not in settable(make_for(tmp_path, provider))
    assert IN_BFLOAT16 not in settable(make_for(tmp_path, provider, tolerance="0.02", allow="int8"))
    task = make_for(tmp_path, provider, "latency", "accuracy")
    assert IN_BFLOAT16 in settable(task)
    assert Selection((OPTIMIZE,), settings=frozenset({IN_BFLOAT16})) in seeds_of(task)
    (found,) = tasks.outcomes_of(task, Candidate((IN_BFLOAT16,)))
    assert measured(found).values["accuracy"] > 0.9
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
    task, chosen = make_for(tmp_path, "search"), Candidate((BY_OPENVINO,))
    assert "It runs by OpenVINO, and needs it: pip install openvino." in described(task, chosen, {})["passes"]
    *_, facts, script = GraphLevel().export(task, chosen, tmp_path / "out")
    assert list(json.loads(facts.read_text())["needs"]) == ["openvino"]
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    assert done.stdout.split()[0] == "y"
    assert "[1, 5]" in done.stdout
