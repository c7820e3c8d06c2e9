"""The level as a whole: tuned, described, exported, validated; as a user does."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from levels.llvm.modules import ASSEMBLY, ECHO, SUM, lacking, require_linker
from planish import tune, validate
from planish.core import Candidate, Measured, PlanishError, ProgramError, Task, outcome_to_json
from planish.core.registry import level_of
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.describe import described
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.passes.pipeline import candidate_of, passes_of
from planish.levels.llvm.task_setup import baseline_passes
from planish.measure import ends_by
from planish.measure.executors import LocalExecutor
from planish.store import open_store
from planish.tuning import finish
from planish.tuning.api import task_of
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings

QUICK = Settings(workers=1, finalists=2)


@dataclass(frozen=True)
class Tuned:
    """A result, and the store that it is in."""

    result: Result
    store: Path


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    store = tmp_path_factory.mktemp("tuned") / "store.db"
    return Tuned(tune(SUM, budget=Budget(trials=40), settings=QUICK, store=store), store)


def test_sources_find_the_level() -> None:
    for source in ("a.ll", "b.bc", "c.c", SUM):
        assert level_of(source).name == "llvm"
    assert level_of("C[m] += A[m,k] * B[k]").name == "loops"


def test_the_winner_is_never_worse_than_the_baseline(tuned: Tuned) -> None:
    result = tuned.result
    assert result.baseline is not None
    assert result.value <= result.baseline.lead.median
    assert {len(ranked.lead.samples) for ranked in result.finalists} == {0}
    bad = tune(
        SUM,
        budget=Budget(trials=1),
        settings=replace(QUICK, searcher="random", space="uniform"),
        store=tuned.store,
    )
    assert bad.baseline is not None
    assert bad.value <= bad.baseline.lead.median


def test_the_result_is_what_the_back_end_counts(tuned: Tuned) -> None:
    level, result = LlvmLevel(), tuned.result
    files = {
        path.name: path for path in level.export(result.task, result.candidate, tuned.store.parent / "out")
    }
    module = open_bindings().parse(files["optimized.ll"].read_text())
    assert module.instructions() == result.value
    assert module.text_bytes() == open_bindings().parse(files["optimized.ll"].read_bytes()).text_bytes()
    assert files["optimized.o"].read_bytes()[:4] == b"\x7fELF"
    assert files["pipeline.txt"].read_text().strip() in files["README.txt"].read_text()


def test_opt_makes_the_same_of_what_is_exported(tuned: Tuned, tmp_path: Path) -> None:
    bindings = open_bindings()
    opt = shutil.which(f"opt-{bindings.version.partition('.')[0]}")
    if opt is None or bindings.name != "libllvm":
        lacking("there is no opt of the same LLVM")
    assert opt
    tuned.result.export(tmp_path)
    command = next(
        line for line in (tmp_path / "README.txt").read_text().splitlines() if line.startswith("opt ")
    )
    subprocess.run([opt + command.removeprefix("opt")], shell=True, check=True, cwd=tmp_path, env={})
    again = (tmp_path / "optimized.ll").read_text()
    tuned.result.export(tmp_path)
    assert again == (tmp_path / "optimized.ll").read_text()


def test_what_each_pass_contributes(tuned: Tuned) -> None:
    texts = _described(tuned.result.task, ["sroa<modify-cfg>", "early-cse", "instsimplify"])
    assert list(texts) == ["size", "passes", "verified", "repeat"]
    start, base, this = texts["size"].splitlines()[1:]
    assert start.split()[:2] == ["unoptimized", "27"]
    assert base.split()[0] == "default<Oz>"
    whole = _count("sroa<modify-cfg>", "early-cse", "instsimplify")
    assert this.split()[:4] == ["this", "pass", "list", str(whole)]
    sroa, cse, _ = (line.split() for line in texts["passes"].splitlines()[1:])
    without = _count("early-cse", "instsimplify")
    assert sroa == [str(without), f"{without - whole:+}", "sroa<modify-cfg>"]
    assert cse[0] == str(_count("sroa<modify-cfg>", "instsimplify"))
    assert "no 'main'" in texts["verified"]
    assert "opt -passes='function(sroa<modify-cfg>,early-cse,instsimplify)' prepared.ll" in texts["repeat"]


def _described(task: Task, passes: Sequence[str]) -> Mapping[str, str]:
    """Describe a pass list as the end of a run does, with analysis that have been stored."""
    level, candidate = LlvmLevel(), candidate_of(passes)
    with LocalExecutor(level.evaluator(task)) as executor:
        analysis = json.loads(json.dumps(level.analyzer(task)(candidate, executor)))
    return level.describe(task, candidate, analysis)


def _count(*passes: str) -> int:
    module = open_bindings().parse(SUM)
    module.run(f"function({','.join(passes)})")
    return module.instructions()


def test_beyond_the_deadline_nothing_is_measured_and_what_is_missing_is_reported(tuned: Tuned) -> None:
    with ends_by(0.0):
        texts = _described(tuned.result.task, ["sroa<modify-cfg>"])
    assert texts["size"].count("not measured") == 6
    assert "no time for it at the end of the run" in texts["size"]
    assert texts["passes"].splitlines()[0] == "sroa<modify-cfg>"
    assert "no time to measure" in texts["passes"]


def test_figures_are_measured_until_the_deadline(tuned: Tuned) -> None:
    ends: list[float] = []

    class Watched(LocalExecutor):
        def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
            ends.append(deadline)
            super().submit(candidates, deadline)

    level, task, end = LlvmLevel(), tuned.result.task, time.monotonic() + 600
    with ends_by(end), Watched(level.evaluator(task)) as executor:
        level.analyzer(task)(Candidate(), executor)
    assert ends == [end, end]


def test_what_was_measured_is_read_from_the_store(tuned: Tuned) -> None:
    with open_store(tuned.store, read_only=True) as store:
        stored = read_result(store, tuned.result.run.id)
    assert stored.describe() == tuned.result.describe()
    assert "not measured" not in tuned.result.describe()["size"]


def test_nothing_done_is_described(tuned: Tuned, tmp_path: Path) -> None:
    level, task = LlvmLevel(), tuned.result.task
    assert level.describe(task, Candidate())["passes"] == "none: the module stays as it is"
    level.export(task, Candidate(), tmp_path)
    assert open_bindings().parse((tmp_path / "optimized.ll").read_text()).instructions() == 27


def test_what_cannot_be_compiled_is_described_and_not_exported(tmp_path: Path) -> None:
    text = ASSEMBLY.replace("TEXT", "no such instruction")
    result = tune(text, budget=Budget(trials=2), settings=QUICK, store=tmp_path / "store.db")
    assert result.describe()["size"].count("failed (build: no code is made of it)") == 3
    with pytest.raises(PlanishError, match=r"cannot make .*optimized"):
        result.export(tmp_path / "out")


def test_a_crash_of_llvm_while_it_exports_is_one_error(tmp_path: Path) -> None:
    level = LlvmLevel()
    task = task_of(level, level.load('define void @f() gc "nonsense" {\n  ret void\n}\n', {}), QUICK)
    with pytest.raises(PlanishError, match=r"cannot make .*optimized.ll: LLVM does not .*killed by SIGABRT"):
        level.export(task, Candidate(), tmp_path)


def test_a_stored_winner_holds(tuned: Tuned) -> None:
    found = validate(tuned.result.run.id, store=tuned.store)
    assert [check.verdict for check in found.checks] == ["holds"] * 3
    assert "verified by LLVM's verifier" in found.answer.detail


def test_bytes_of_code_can_lead(tmp_path: Path) -> None:
    settings = replace(QUICK, objectives=("text_bytes", "instructions"))
    result = tune(SUM, budget=Budget(trials=10), settings=settings, store=tmp_path / "store.db")
    assert isinstance(result.best.outcome, Measured)
    assert set(result.best.outcome.values) == {"text_bytes", "instructions"}
    assert result.describe()["passes"].startswith("text bytes without it")


@pytest.mark.slow
def test_time_is_compared_with_the_fast_baseline(tmp_path: Path) -> None:
    require_linker()
    settings = replace(QUICK, objectives=("time_s",), finalists=1)
    result = tune(ECHO, budget=Budget(trials=2), settings=settings, store=tmp_path / "store.db", args="x")
    assert baseline_passes(result.task) == ("default<O3>",)
    assert result.baseline is not None
    assert len(result.baseline.lead.samples) >= 3 * 3
    facts = result.describe()
    assert "it was run with x" in facts["verified"]
    hurried = described(result.task, result.candidate, {})
    assert "it was run with x" in hurried["verified"]
    assert facts["size"].splitlines()[0].split() == ["instructions", ".text", "bytes", "time"]
    assert " ms" in facts["size"].splitlines()[1]
    if result.candidate.steps:
        assert facts["passes"].splitlines()[0].startswith("time without it")


def test_what_was_run_is_reported_where_no_time_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_linker()
    monkeypatch.setattr(finish, "seconds_left", lambda: 0.0)
    result = tune(
        ECHO, budget=Budget(trials=2), settings=QUICK, store=tmp_path / "store.db", args="x", run="yes"
    )
    assert result.finalist
    assert not result.finalist.analysis
    assert "it was run with x" in result.describe()["verified"]
    with open_store(tmp_path / "store.db", read_only=True) as store:
        read = read_result(store, result.run.id)
        assert read.description == read.describe() == result.describe()


def test_passes_that_change_nothing_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    level = LlvmLevel()
    fast, small = (
        task_of(level, level.load(ECHO, {"args": "x"}), replace(QUICK, objectives=(name,)))
        for name in ("time_s", "instructions")
    )
    whole, shorter, other = (candidate_of(each) for each in (["mem2reg", "adce"], ["mem2reg"], []))
    with level.identities(fast) as name:
        assert name(whole) == name(shorter) != name(other)
    with level.identities(small) as name:
        assert name(whole) == name(shorter) == name(candidate_of(["mem2reg", "gvn-sink"])) != name(other)
        assert name(candidate_of(["no such pass"])) == candidate_of(["no such pass"]).hash

        def varies_from_run_to_run(*_: object) -> bool:
            return False

        monkeypatch.setattr("planish.levels.llvm.task_setup.reproduces", varies_from_run_to_run)
        varies = candidate_of(["mem2reg", "gvn-sink", "gvn-sink"])
        assert name(varies) == varies.hash


def test_time_without_a_main_asks_for_a_harness(tmp_path: Path) -> None:
    settings = replace(QUICK, objectives=("time_s",))
    with pytest.raises(ProgramError, match='harness="FILE'):
        tune(SUM, budget=Budget(trials=2), settings=settings, store=tmp_path / "store.db")
    with open_store(tmp_path / "store.db") as store:
        assert list(store.runs()) == []


def test_that_it_was_not_run_is_reported(tmp_path: Path) -> None:
    require_linker()
    text = "declare void @nowhere()\ndefine i32 @main() {\n  call void @nowhere()\n  ret i32 0\n}\n"
    result = tune(text, budget=Budget(trials=2), settings=QUICK, store=tmp_path / "store.db", run="yes")
    (note,) = result.notes
    assert note.startswith("not run, and checked by LLVM's verifier alone: it cannot be linked")
    assert "it cannot be linked" in result.describe()["verified"]


@pytest.mark.slow(after=3)
@pytest.mark.parametrize(
    "searcher", ["random", "greedy1", "beam-dfs", "genetic", "annealing", "random-minimize"]
)
def test_every_searcher_runs(tmp_path: Path, searcher: str) -> None:
    settings = replace(QUICK, searcher=searcher, finalists=1)
    result = tune(SUM, budget=Budget(trials=12), settings=settings, store=tmp_path / "store.db")
    assert result.run.trials == 12
    assert not result.failures


def test_the_same_seed_finds_the_same(tuned: Tuned, tmp_path: Path) -> None:
    again = tune(SUM, budget=Budget(trials=40), settings=QUICK, store=tmp_path / "store.db")
    assert passes_of(again.candidate) == passes_of(tuned.result.candidate)


def test_targets_tell_of_llvm() -> None:
    facts = LlvmLevel().machine()
    assert "LLVM" in facts[open_bindings().name]
    runs, _, known = facts["passes"].partition(" of ")
    assert 0 < int(runs) <= int(known)


def test_the_back_end_is_part_of_the_target() -> None:
    level = LlvmLevel()
    task = task_of(level, level.load(SUM, {"backend": "llvmlite"}), QUICK)
    assert task.target.toolchain["backend"] == "llvmlite"
    assert task.target.toolchain["llvm"] == open_bindings("llvmlite").version


def test_times_of_passes_are_reported_in_their_unit() -> None:
    level = LlvmLevel()
    task = task_of(level, level.load(ECHO, {"args": "x"}), replace(QUICK, objectives=("time_s",)))
    whole = candidate_of(["mem2reg", "adce"])
    times = {whole: 2e-3, candidate_of(["adce"]): 2.5e-3, candidate_of(["mem2reg"]): 2e-3}
    analysis = {each.hash: outcome_to_json(Measured({"time_s": time})) for each, time in times.items()}
    facts = level.describe(task, whole, {"time_s": analysis})["passes"].splitlines()
    assert facts[0] == "time without it"
    assert [line.split() for line in facts[1:3]] == [
        ["2.500", "ms", "+0.500", "ms", "mem2reg"],
        ["2.000", "ms", "+0.000", "ms", "adce"],
    ]
    assert "differences of some percent are noise" in facts[3]
    assert facts[4].startswith("(Without those of +0.000 ms the code is the same")
