"""Programs made faster where they spend their time: the space `functions`, its evaluator, and whole runs."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from levels.llvm.clocked import SECOND, ClockedLevel, Times, by_clock, inline
from levels.llvm.modules import require_compiler, require_linker
from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    EvaluatorSpec,
    Failed,
    Measured,
    Outcome,
    PlanishError,
    ProgramError,
    SearchContext,
    Step,
    Task,
    evaluate,
    rng,
)
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.evaluator import TimedEvaluatorSpec
from planish.levels.llvm.execution import Runner
from planish.levels.llvm.function_steps import FunctionPasses
from planish.levels.llvm.hot.functions import O3, HotFunctionSpace
from planish.levels.llvm.hot.lists import (
    BEGIN,
    USUAL,
    Parts,
    drawn,
    first_lists,
    passes_within,
    pipeline,
    without,
)
from planish.levels.llvm.hot.programs import ProgramBuild, ProgramBuilder, function_lists
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.passes.pipeline import candidate_of
from planish.levels.llvm.program import IRProgram
from planish.levels.llvm.task_setup import evaluator_spec_of, plain_spec_of, prepared
from planish.measure import Timing
from planish.measure.executors import InlineExecutor
from planish.store import open_store
from planish.testing.spaces import SpaceConformance
from planish.tuning.api import task_of, tune_program
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
static double table[200];
__attribute__((noinline)) double busy(double *a, const int *places, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    a[i & 127] = a[i & 127] * 0.5 + a[places[i & 63] & 127] * 0.375;
    sum = sum * 0.25 + a[i & 127] + i;
  }
  return sum;
}
__attribute__((noinline)) int idle(int n) { return n * 3 + 1; }
int main(int count, char **words) {
  int places[64], n = count > 1 ? atoi(words[1]) : 1;
  double sum = 0;
  for (int i = 0; i < 64; i++) places[i] = (i * 37) % 128;
  for (int i = 0; i < 200; i++) table[i] = i;
  for (int i = 0; i < n; i++) sum += busy(table, places, 1000);
  printf("%.6g %d\n", sum, idle(n));
  return 3;
}
"""
BASELINE = candidate_of((O3,))
ONCE = Timing(budget_s=0.0, block_s=0.0, fewest=1, most=1)
LEVEL = LlvmLevel()
BY_TIME = Settings(space="functions", objectives=("time_s",), finalists=1, workers=1)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> IRProgram:
    require_compiler()
    require_linker()
    if not open_bindings().full or not open_bindings().runs(f"{BEGIN},{pipeline(USUAL)}"):
        pytest.skip("this LLVM lacks passes of -O3 that are needed")
    path = tmp_path_factory.mktemp("hot") / "busy.c"
    path.write_text(SOURCE)
    return LEVEL.load(str(path), {"run": "./prog 400"})


@pytest.fixture
def task(program: IRProgram) -> Task[IRProgram]:
    return task_of(LEVEL, program, BY_TIME)


def on(function: str, passes: Parts) -> Candidate:
    return Candidate((FunctionPasses(pipeline(passes), (function,)),))


def with_another_idle(ir: str) -> str:
    return re.sub(r"(mul nsw i32 %\d+), 3", r"\1, 5", ir)


SLOW = on("busy", without(USUAL, "sroa<preserve-cfg>"))


# -- the evaluator


def quickly(task: Task[IRProgram]) -> TimedEvaluatorSpec:
    """Return the spec of a search by time that measures each candidate once."""
    spec = evaluator_spec_of(task)
    assert isinstance(spec, TimedEvaluatorSpec)
    return replace(spec, timing=ONCE, paired=(ONCE, ONCE))


def outcomes(spec: EvaluatorSpec, *candidates: Candidate) -> list[Outcome]:
    return [each.outcome for each in evaluate(InlineExecutor(spec()), candidates)]


def test_the_time_is_found_where_it_goes(task: Task[IRProgram]) -> None:
    (found,) = outcomes(quickly(task), BASELINE)
    assert isinstance(found, Measured)
    assert found.parts["busy"] > 0.5 * sum(found.parts.values())
    assert found.parts.get("idle", 0.0) < 0.05 * found.parts["busy"]
    assert sum(found.parts.values()) == pytest.approx(found.values["time_s"])  # pyright: ignore[reportUnknownMemberType]


def test_the_time_of_a_program_is_measured_in_seconds_of_the_known_baseline(task: Task[IRProgram]) -> None:
    spec = quickly(task)
    spec.set_baseline(Measured({"time_s": 1000.0}))
    other, usual, again = outcomes(spec, SLOW, on("idle", USUAL), SLOW)
    assert isinstance(other, Measured)
    assert other.values["time_s"] > 100.0
    assert other == again  # the same code is not measured twice
    assert isinstance(usual, Measured)


class Making(ProgramBuilder):
    """Builds the same code of every candidate."""

    def __init__(self, code: bytes, *_: object) -> None:
        self._code = code

    def build(self, candidate: Candidate) -> ProgramBuild:
        del candidate
        return ProgramBuild(self._code, b"")


def test_what_makes_the_baselines_code_is_not_measured(task: Task[IRProgram]) -> None:
    with closing(open_bindings().parse(prepared(task))) as module:
        module.run(O3)
        code = module.object_code()
    spec = replace(quickly(task), builder=partial(Making, code))
    spec.set_baseline(Measured({"time_s": 1000.0}))
    assert outcomes(spec, SLOW) == [Measured({"time_s": 1000.0})]


def test_a_wrong_answer_is_no_program(task: Task[IRProgram]) -> None:
    with closing(open_bindings().parse(prepared(task).replace("3.750000e-01", "2.500000e-01"))) as module:
        wrong = module.object_code()
    for final in (False, True):
        spec = evaluator_spec_of(task, final=final)
        (found,) = outcomes(replace(spec, timing=ONCE, builder=partial(Making, wrong)), SLOW)
        assert isinstance(found, Failed)
        assert (found.stage, found.reason) == ("verify", "wrong answer")


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((FunctionPasses("function(no-such-pass)", ("busy",)),), "'no-such-pass' is not a pass"),
        ((FunctionPasses("function(print<domtree>,dot-cfg)", ("busy",)),), "is not a pass that runs"),
        ((FunctionPasses("cgscc(inline)", ("busy",)),), "'cgscc' is not a pass"),
        ((*BASELINE.steps, *SLOW.steps), "does not go with lists of single functions"),
    ],
    ids=["unknown", "writes files", "not of functions", "a list for all"],
)
def test_a_list_that_may_not_be_run_fails(task: Task[IRProgram], steps: tuple[Step, ...], why: str) -> None:
    (found,) = outcomes(replace(plain_spec_of(task), timing=ONCE), Candidate(steps))
    assert isinstance(found, Failed)
    assert (found.stage, found.reason) == ("transform", "refused by LLVM")
    assert why in found.detail


def test_the_usual_lists_make_the_same_code_as_o3(task: Task[IRProgram]) -> None:
    builder = ProgramBuilder(prepared(task), open_bindings())
    with closing(open_bindings().parse(prepared(task))) as module:
        module.run(O3)
        assert len(builder.build(on("busy", USUAL)).code) == len(module.object_code())
    recipe = builder.recipe(on("busy", USUAL))
    assert {name for _, names in recipe.lists for name in names} == {"busy", "idle", "main"}


def test_a_program_does_not_depend_on_what_was_built_before(task: Task[IRProgram]) -> None:
    both = Candidate((*on("idle", without(USUAL, "gvn")).steps, *SLOW.steps))
    builder = ProgramBuilder(prepared(task), open_bindings())
    for each in (SLOW, on("main", USUAL), on("idle", USUAL), both):
        builder.build(each)
    assert builder.build(both) == ProgramBuilder(prepared(task), open_bindings()).build(both)


# -- the space


class TestConformance(SpaceConformance):
    @pytest.fixture(autouse=True)
    def given(self, program: IRProgram) -> None:
        self.program = program

    def space(self) -> HotFunctionSpace:
        return HotFunctionSpace(self.program)

    def known_steps(self) -> Mapping[str, type[Step]]:
        return LEVEL.steps

    def replay(self, space: object, candidate: Candidate) -> None:
        del space
        assert candidate == BASELINE or function_lists(candidate)


def test_all_lists_are_pipelines_and_are_read_back(program: IRProgram) -> None:
    del program
    draws, bindings = random.Random(3), open_bindings()
    lists = [*first_lists(), *(drawn(USUAL, draws) for _ in range(20))]
    assert [parts for parts in lists if not bindings.runs(pipeline(parts))] == []
    assert [passes_within(pipeline(parts)) for parts in lists] == lists
    assert len(set(lists)) > 25


def test_hot_functions_are_those_of_the_module_with_a_share_of_the_time(program: IRProgram) -> None:
    space = HotFunctionSpace(program)
    measured = {"main": 0.05, "busy": 0.6, "(libraries, the system)": 0.32, "idle": 0.03}
    assert space.parts(measured) == ["busy", "main"]
    assert space.parts({}) == []


def test_a_candidate_varies_one_function_and_that_comes_last(program: IRProgram) -> None:
    space = HotFunctionSpace(program)
    first = space.suggestions(space.start(), "busy")
    assert len(first) == len(set(first)) == len(list(first_lists()))
    second = space.suggestions(first[0], "main")[0]
    assert second.steps[:1] == first[0].steps
    third = space.vary(second, "busy", rng(0, 1))
    assert third.steps[0] == second.steps[1]
    assert third.steps[1] != first[0].steps[0]
    assert space.start() == BASELINE


def test_what_made_a_function_faster_in_another_program_is_suggested_first(program: IRProgram) -> None:
    best, worse, slower = (on("busy", passes) for passes in (USUAL[3:], USUAL[2:], USUAL[1:]))
    outcomes = [(worse, 0.95), (best, 0.9), (BASELINE, 1.0), (slower, 1.2), (on("idle", USUAL[5:]), 0.5)]
    other = with_another_idle(program.ir)
    changed = program.ir.replace("2.500000e-01", "1.250000e-01")
    space = HotFunctionSpace(program)
    assert other != program.ir
    for text, found in ((other, best), (changed, None)):
        first, *_ = space.suggestions(
            space.start(), "busy", SearchContext((), lambda text=text: {text: outcomes})
        )
        assert first == (found or space.suggestions(space.start(), "busy", EMPTY_CONTEXT)[0])


def test_functions_are_tuned_by_time_alone(program: IRProgram) -> None:
    with pytest.raises(PlanishError, match="tuned by one objective"):
        LEVEL.space(task_of(LEVEL, program, replace(BY_TIME, objectives=("time", "text_bytes"))), "functions")


# -- whole runs


def tuned(program: IRProgram, times: Times, store: Path, trials: int = 4, **settings: Any) -> Result:
    return tune_program(
        ClockedLevel(times),
        program,
        budget=Budget(trials=trials),
        settings=replace(BY_TIME, **settings),
        store=store,
        start=inline,
    )


def test_what_is_faster_is_kept(program: IRProgram, tmp_path: Path) -> None:
    found = tuned(program, by_clock(0.5), tmp_path / "a.db")
    assert found.finalists[0].lead.verdict == "better"
    assert found.candidate == Candidate((FunctionPasses(SECOND, ("busy",)),))
    with open_store(tmp_path / "a.db", read_only=True) as store:
        (run,) = store.runs()
        trials = list(store.each_trial(run.id, LEVEL.steps))
    assert (run.searcher, run.space, len(trials)) == ("hottest-first", "functions", 4)
    assert trials[0].candidate == BASELINE
    assert isinstance(trials[0].outcome, Measured)
    assert trials[0].outcome.parts["busy"] == 0.9


@pytest.mark.parametrize("times", [by_clock(1.0), by_clock(0.5, 1.0)], ids=["no gain", "lucky"])
def test_without_a_gain_it_is_o3_that_stays(program: IRProgram, tmp_path: Path, times: Times) -> None:
    found = tuned(program, times, tmp_path / "a.db")
    assert found.candidate == BASELINE


def test_where_the_baseline_is_the_best_it_is_measured_in_one_process(
    program: IRProgram, tmp_path: Path
) -> None:
    started = list[EvaluatorSpec]()

    def start(spec: EvaluatorSpec, /, *, workers: int = 1) -> InlineExecutor:
        started.append(spec)
        return inline(spec, workers=workers)

    level, budget, store = ClockedLevel(by_clock(1.0)), Budget(trials=4), tmp_path / "a.db"
    found = tune_program(level, program, budget=budget, settings=BY_TIME, store=store, start=start)
    assert [each.candidate for each in found.finalists] == [BASELINE]
    assert len(started) == 2  # for the search, and for its end


def test_a_run_goes_on_where_it_ended(program: IRProgram, tmp_path: Path) -> None:
    whole = tuned(program, by_clock(0.5), tmp_path / "whole.db", 20)
    tuned(program, by_clock(0.5), tmp_path / "parts.db", 9)
    parts = tuned(program, by_clock(0.5), tmp_path / "parts.db", 20)
    runs: list[list[Candidate]] = []
    for name, result in (("whole", whole), ("parts", parts)):
        with open_store(tmp_path / f"{name}.db", read_only=True) as store:
            runs.append([each.candidate for each in store.each_trial(result.run.id, LEVEL.steps)])
    assert runs[0] == runs[1]
    assert len(runs[0]) == 20


def test_what_was_found_for_another_program_is_tried_first(program: IRProgram, tmp_path: Path) -> None:
    tuned(program, by_clock(0.5), tmp_path / "a.db")
    fast = program.fast or program
    other = replace(program, fast=replace(fast, ir=with_another_idle(fast.ir)))
    found = tuned(other, by_clock(0.5), tmp_path / "a.db", 2)
    with open_store(tmp_path / "a.db", read_only=True) as store:
        _, first = store.each_trial(found.run.id, LEVEL.steps)
    assert first.candidate == Candidate((FunctionPasses(SECOND, ("busy",)),))


def test_it_is_described_and_opt_makes_it_again(task: Task[IRProgram], tmp_path: Path) -> None:
    candidate = Candidate((FunctionPasses(SECOND, ("busy",)),))
    figures = {
        "seconds by function, baseline": {"busy": 0.9, "idle": 1e-4},
        "seconds by function": {"busy": 0.4},
    }
    said = LEVEL.describe(task, candidate, figures)["functions"].splitlines()
    assert said[0].split() == ["function", "share", "-O3", "now", "passes,", "where", "not", "as", "-O3"]
    assert said[1].startswith("busy       100%  900.000 ms  400.000 ms  +")
    assert len(said) == 2
    files = {path.name for path in LEVEL.export(task, candidate, tmp_path)}
    assert {"prepared.ll", "optimized.ll", "optimized.o", "manifest.json", "repeat.sh"} <= files
    assert json.loads((tmp_path / "manifest.json").read_text())["functions"] == {"busy": SECOND}
    major = open_bindings().version.partition(".")[0]
    opt, llc = (shutil.which(f"{tool}-{major}") for tool in ("opt", "llc"))
    if not opt or not llc:
        pytest.skip("no opt of this LLVM is on PATH")
    (tmp_path / "optimized.o").unlink()
    tools = {"PATH": "/usr/bin:/bin", "OPT": opt, "LLC": llc}
    subprocess.run([tmp_path / "repeat.sh"], check=True, env=tools)
    assert task.program.running
    runner = Runner(task.program.running, open_bindings())
    with runner.executable((tmp_path / "optimized.o").read_bytes()) as path:
        assert runner.answer(path).code == 3


def test_a_program_that_cannot_be_run_is_an_error(program: IRProgram, tmp_path: Path) -> None:
    del program
    path = tmp_path / "part.c"
    path.write_text("int f(int x) { return x; }\n")
    with pytest.raises(ProgramError, match="has no 'main' that could be timed"):
        tune_program(LEVEL, LEVEL.load(str(path), {}), settings=BY_TIME, store=tmp_path / "a.db")
    path.write_text("#include <unistd.h>\nint main(void) { return getpid() & 63; }\n")
    with pytest.raises(PlanishError, match="two runs of the unoptimized program differ"):
        tune_program(LEVEL, LEVEL.load(str(path), {"run": "yes"}), settings=BY_TIME, store=tmp_path / "a.db")
