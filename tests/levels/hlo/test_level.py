"""The level as a whole: tuned, described, exported, validated; as a user does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from damaged_files import damage_zip
from levels.hlo.workloads import INFERENCE, PREDICT, STEP, TRAINING, WEIGHTS, write_all
from planish import tune
from planish.core import Candidate, PlanishError, ProgramError, candidate_from_json
from planish.core.installation import install_command
from planish.core.registry import level_of
from planish.levels.hlo import read_program
from planish.levels.hlo.edits import EDITS, CopyOp, DeleteOp, ScaleConstant
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.machine import hlo_target
from planish.levels.hlo.patch import difference, original, replay
from planish.store import open_store
from planish.tuning.api import task_of, tune_program
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings

QUICK = Settings(objectives=("time", "error"), searcher="random", workers=1, finalists=1)


@dataclass(frozen=True)
class Tuned:
    """A result, the module, and the store that it is in."""

    result: Result
    module: Path
    store: Path


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    folder = tmp_path_factory.mktemp("tuned")
    module = write_all(folder / "net", STEP, TRAINING)
    result = tune(str(module), budget=Budget(trials=6), settings=QUICK, store=folder / "store.db")
    return Tuned(result, module, folder / "store.db")


def test_sources_find_the_level() -> None:
    for source in ("a.mlir", "b.stablehlo", "c.mlirbc", STEP):
        assert level_of(source).name == "hlo"
    assert level_of("a.ll").name == "llvm"


def test_time_is_short_for_time_s(tuned: Tuned) -> None:
    assert [objective.name for objective in tuned.result.task.objectives] == ["time_s", "error"]
    task = tuned.result.task
    assert task_of(HloLevel(), task.program, Settings()) == task, "by time alone a wrong module would win"
    with pytest.raises(PlanishError, match="unknown objective 'tim'"):
        task_of(HloLevel(), task.program, Settings(objectives=("tim",)))


def test_a_run_compares_with_the_unchanged_module(tuned: Tuned) -> None:
    assert tuned.result.run.trials == 6
    assert tuned.result.baseline is not None
    assert tuned.result.baseline.lead.median > 0


def test_the_end_scores_each_member_and_asks_the_other_back_end(tuned: Tuned) -> None:
    result = tuned.result
    for member in result.finalists:
        assert {"error", "error_validation", "error_final"} == {*member.scores}
        assert member.cross_check.agrees or (find_spec("iree") is None and result.notes)
        assert len(member.candidate.steps) <= member.n_steps_found
    assert result.baseline is not None
    assert {*result.baseline.scores} == {"error", "error_validation", "error_final"}
    assert {*result.baseline.measured} == {"time_s", "error"}


def test_a_stored_run_reads_back_and_replays(tuned: Tuned) -> None:
    with open_store(tuned.store) as store:
        found = read_result(store, tuned.result.run.id)
    assert found.task.key == tuned.result.task.key
    assert found.candidate == tuned.result.candidate
    assert found.describe() == tuned.result.describe()


@pytest.mark.slow
def test_a_killed_search_goes_on_in_the_same_state(tmp_path: Path) -> None:
    """After the baseline and 8 more trials, of four to a generation, it breeds from the stored outcomes."""
    module = write_all(tmp_path / "net", STEP, TRAINING)
    path = tmp_path / "store.db"
    words = ["--objective", "time,error", "--set", "population=4", "--workers", "1", "--store", str(path)]
    command = [sys.executable, "-m", "quick_runs", "hlo", "tune", str(module), *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def stored() -> list[tuple[int, str]]:
        with open_store(path, read_only=True) as store:
            (run,) = store.runs()
            return [(trial.index, trial.candidate.hash) for trial in store.run_trials(run.id, EDITS)]

    with subprocess.Popen(
        [*command, "--seconds", "600"], env=environment, stderr=subprocess.PIPE, text=True
    ) as search:
        assert search.stderr is not None
        for line in search.stderr:
            if (found := re.search(r"; (\d+) trials", line)) and int(found[1]) > 8:
                break
        search.kill()
    before = stored()
    assert len(before) > 8
    most = str(len(before) + 2)
    words = ["--trials", most, "--finalists", "1"]
    subprocess.run([*command, *words], env=environment, check=True, capture_output=True)
    after = stored()
    assert after[: len(before)] == before
    assert len(after) == len(before) + 2, "what is known was asked for again, and nothing else"


def test_edits_are_described_with_their_layers(tuned: Tuned) -> None:
    edits = Candidate((ScaleConstant("3", 2.0), CopyOp("4", "5", (), "5", 1)))
    shown = HloLevel().describe(tuned.result.task, edits)
    assert shown["edits"].splitlines()[:2] == [
        "1. ScaleConstant(op='3', factor=2.0)",
        "   3: stablehlo.constant of tensor<4x3xf32>, with w",
    ]
    assert "-  %op3 = stablehlo.constant dense<1.000000e-01> : tensor<4x3xf32>" in shown["diff"]
    assert "+  %op3 = stablehlo.constant dense<2.000000e-01> : tensor<4x3xf32>" in shown["diff"]
    assert HloLevel().describe(tuned.result.task, Candidate()) == {
        "edits": "(unchanged)",
        "diff": "(no difference)",
    }


def test_the_diff_shows_what_changed_alone(tuned: Tuned) -> None:
    module = read_program(tuned.module)
    changed = replay(module, Candidate((DeleteOp("4", (("2#0", ()),)),)))
    lines = difference(original(module), changed).splitlines()
    kept = [line for line in lines[2:] if line[0] in "+-"]
    assert kept == [
        "-  %op4 = stablehlo.multiply %op2, %op3 : tensor<4x3xf32>",
        "-  %op5 = stablehlo.add %w, %op4 : tensor<4x3xf32>",
        "+  %op5 = stablehlo.add %w, %op2 : tensor<4x3xf32>",
    ]


def test_what_is_exported_can_be_used_alone(tuned: Tuned, tmp_path: Path) -> None:
    task = tuned.result.task
    candidate = Candidate((DeleteOp("4", (("2#0", ()),)),))
    level = HloLevel()
    files = level.export(task, candidate, tmp_path / "out")
    assert [file.name for file in files] == ["optimized.mlir", "main.mlir", "patch.json", "changes.diff"]
    whole, alone, patch, _ = files
    module = replay(read_program(tuned.module), candidate)
    again = original(read_program(whole))
    assert "@predict" in whole.read_text()
    assert "planish" not in whole.read_text() + alone.read_text()
    assert alone.read_text() == entry_text(again.root, "main") == entry_text(module.root, "main")
    assert candidate_from_json(json.loads(patch.read_text()), level.steps) == candidate


def test_spaces_are_all_edits_or_those_of_the_paper(tuned: Tuned) -> None:
    level, task = HloLevel(), tuned.result.task
    rng = np.random.default_rng(0)
    paper = level.space(task, "paper")
    names = {type(step).__name__ for _ in range(6) for step in paper.sample(rng).steps}  # type: ignore[attr-defined]
    assert names == {"CopyOp", "DeleteOp"}
    with pytest.raises(PlanishError, match="Did you mean 'patches'"):
        level.space(task, "patch")


def test_the_papers_space_is_searched_as_in_the_paper(tuned: Tuned, tmp_path: Path) -> None:
    """Where no other searcher is asked for; each of the first patches has one edit more than the last."""
    small = {"population": 2, "elites": 1}
    chosen = Settings(objectives=("time", "error"), space="paper", searcher_options=small, workers=1)
    budget, program = Budget(trials=6), tuned.result.task.program
    with open_store(tmp_path / "store.db") as store:
        tune_program(HloLevel(), program, budget=budget, settings=chosen, store=store, compares=False)
        (run,) = store.runs()
        lengths = [len(trial.candidate.steps) for trial in store.run_trials(run.id, EDITS)]
    assert run.searcher == "gevo"
    assert sorted(lengths)[:3] == [0, 1, 1]
    assert max(lengths) <= 3


def test_the_machine_lists_the_back_ends() -> None:
    assert "jaxlib" in HloLevel().machine()["xla"]
    with pytest.raises(PlanishError, match="cores requested"):
        hlo_target(10**6)


def test_without_jaxlib_the_other_levels_work(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["jaxlib"] = None
from planish.cli.script import main
sys.argv = ["planish", *sys.argv[1:]]
main()
"""
    module = write_all(tmp_path / "net", STEP, TRAINING)

    def planish(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, check=False, text=True, capture_output=True)

    assert "hlo" in planish("levels").stdout
    assert planish("targets").returncode == 0
    said = planish("tune", str(module), "--store", str(tmp_path / "s.db"))
    assert said.returncode == 5
    assert install_command("hlo") in said.stderr
    assert said.stderr.count("\n") == 1


@pytest.mark.parametrize("wrong", ["absent", "damaged", "no array", "other shape"])
def test_a_missing_weight_is_reported_before_a_run_is_stored(tmp_path: Path, wrong: str) -> None:
    module = write_all(tmp_path / "net", PREDICT, INFERENCE)
    weights = module.parent / "w.npz"
    match wrong:
        case "absent":
            weights.unlink()
        case "damaged":
            np.savez_compressed(weights, w=WEIGHTS)
            damage_zip(weights)
        case "no array":
            np.savez(weights, v=WEIGHTS)
        case _:
            np.savez(weights, w=WEIGHTS[:2])
    expected = {
        "absent": "cannot read the weights",
        "damaged": "cannot read the weights",
        "no array": "has no array 'w'",
    }.get(wrong, "the module takes")
    with open_store(tmp_path / "store.db") as store:
        with pytest.raises(ProgramError, match=expected):
            tune(str(module), budget=Budget(trials=1), settings=QUICK, store=store)
        assert store.runs() == []
