"""What becomes of candidates: counts, bytes, answers, times, and everything that can go wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from levels.llvm.modules import ASSEMBLY, COUNTED, ECHO, HARNESS, SUM, require_linker
from levels.llvm.unguarded import Unguarded
from planish.core import (
    Candidate,
    Failed,
    Lost,
    Measured,
    Outcome,
    Stage,
    TargetError,
    Task,
    evaluate,
    evaluate_in_order,
)
from planish.levels.llvm.bindings.elf import code_bytes
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.execution import NotRunnableError, RunAnswer, Runner, find_linker
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.passes.pipeline import candidate_of, print_pipeline
from planish.levels.llvm.task_setup import evaluator_spec_of, prepared
from planish.measure import Timing
from planish.measure.executors import InlineExecutor, LocalExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

SMALL = candidate_of(["default<Oz>"])
ONCE = Timing(budget_s=0.0, block_s=0.0, fewest=1, most=1)


def make(text: str, *objectives: str, **options: str) -> Task:
    level = LlvmLevel()
    return task_of(level, level.load(text, options), Settings(objectives=objectives))


def outcomes_of(task: Task, *candidates: Candidate) -> list[Outcome]:
    evaluator = replace(evaluator_spec_of(task), timing=ONCE)()
    return [answer.outcome for answer in evaluate(InlineExecutor(evaluator), candidates)]


def test_counts_are_those_of_the_transformed_module() -> None:
    task = make(SUM, "instructions", "text_bytes")
    start, small = outcomes_of(task, Candidate(), SMALL)
    other = open_bindings().parse(prepared(task))
    assert start == Measured({"instructions": 27.0, "text_bytes": float(code_bytes(other.object_code()))})
    other.run("default<Oz>")
    assert small == Measured(
        {"instructions": float(other.instructions()), "text_bytes": float(other.text_bytes())}
    )
    assert other.instructions() < 20


def test_candidates_do_not_meet() -> None:
    task = make(SUM)
    first, _, again = outcomes_of(task, SMALL, Candidate(), SMALL)
    assert first == again


def test_for_size_every_definition_is_to_be_small_and_for_time_none() -> None:
    text = "define void @f() noinline optnone {\n  ret void\n}\n" + ECHO
    small, fast = (_attributes(make(text, objective)) for objective in ("instructions", "time_s"))
    assert small.count(" #0 {") == 2
    assert "attributes #0 = { minsize optsize }" in small
    assert "optsize" not in fast
    assert "optnone" not in small + fast


def _attributes(task: Task) -> str:
    """Return the attributes that definitions have."""
    text = open_bindings().parse(prepared(task)).text()
    return "\n".join(line for line in text.splitlines() if line.startswith(("attributes", "define")))


def test_the_answer_is_the_unoptimized_programs(tmp_path: Path) -> None:
    """A module that lies about a function it calls gives another answer where the lie is believed."""
    require_linker()
    (tmp_path / "h.c").write_text(HARNESS)
    task = make(COUNTED, harness=str(tmp_path / "h.c"))
    right, wrong = outcomes_of(task, candidate_of(["instsimplify"]), candidate_of(["early-cse"]))
    assert isinstance(right, Measured)
    assert wrong == Failed("verify", "wrong answer", "the output differs from byte 1 on")


def test_a_harness_may_be_ir(tmp_path: Path) -> None:
    require_linker()
    (tmp_path / "h.ll").write_text(
        "declare i32 @counted()\n@count = global i32 40\n"
        "define i32 @bump() {\n  %c = load i32, ptr @count\n  ret i32 %c\n}\n"
        "define i32 @main() {\n  %c = call i32 @counted()\n  ret i32 %c\n}\n"
    )
    task = make(COUNTED, "time_s", harness=str(tmp_path / "h.ll"))
    (outcome,) = outcomes_of(task, SMALL)
    assert isinstance(outcome, Measured)
    assert set(outcome.values) == {"instructions", "time_s"}
    assert 0 < outcome.values["time_s"] < 10


def test_a_program_is_run_with_its_arguments() -> None:
    require_linker()
    for words, code, output in (("x", 2, b"x\n"), ("'a b' c", 3, b"a b\n")):
        evaluator = evaluator_spec_of(make(ECHO, "time_s", args=words))()
        expected = evaluator._expected  # pyright: ignore[reportPrivateUsage]
        assert (expected.code, expected.output) == (code, output)


def test_code_that_was_run_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    require_linker()
    runs: list[Path] = []
    answer = Runner.answer

    def counted(runner: Runner, program: Path, *args: Any, **named: Any) -> RunAnswer:
        runs.append(program)
        return answer(runner, program, *args, **named)

    monkeypatch.setattr(Runner, "answer", counted)
    lists = [candidate_of(["sroa<modify-cfg>"]), candidate_of(["sroa<modify-cfg>", "dce"])]
    first, second = outcomes_of(make(ECHO, args="x"), *lists)
    assert first == second
    assert len(runs) == 3  # two of the unoptimized program


def test_a_program_that_cannot_be_linked_is_checked_by_the_verifier_alone() -> None:
    require_linker()
    text = "declare void @nowhere()\ndefine i32 @main() {\n  call void @nowhere()\n  ret i32 0\n}\n"
    evaluator = evaluator_spec_of(make(text, run="yes"))()
    (note,) = evaluator.notes
    assert "nowhere" in note
    (answer,) = evaluate(InlineExecutor(evaluator), [SMALL])
    assert answer.outcome == Measured({"instructions": 2.0})
    with pytest.raises(NotRunnableError, match="cannot be linked"):
        evaluator_spec_of(make(text, "time_s"))()


def test_without_a_compiler_sizes_are_measured_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "'cc")  # a quote that does not end
    find_linker.cache_clear()
    evaluator = evaluator_spec_of(make(ECHO, run="yes"))()
    (note,) = evaluator.notes
    assert note.startswith("not run, and checked by LLVM's verifier alone: CC='cc is not a valid command")
    with pytest.raises(TargetError, match="CC='cc is not a valid command"):
        evaluator_spec_of(make(ECHO, "time_s"))()


def test_inline_assembly_is_carried_along() -> None:
    task = make(ASSEMBLY.replace("TEXT", "nop"), "instructions", "text_bytes")
    (outcome,) = outcomes_of(task, SMALL)
    assert isinstance(outcome, Measured)
    assert outcome.values["instructions"] == 2
    assert outcome.values["text_bytes"] > 1


def test_assembly_that_is_none_fails_where_code_is_made() -> None:
    text = ASSEMBLY.replace("TEXT", "no such instruction")
    assert outcomes_of(make(text), SMALL) == [Measured({"instructions": 2.0})]
    (outcome,) = outcomes_of(make(text, "text_bytes"), SMALL)
    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == ("build", "no code is made of it")


def test_an_unknown_pass_is_an_illegal_step() -> None:
    (outcome,) = outcomes_of(make(SUM), candidate_of(["sroa<modify-cfg>", "newgwn"]))
    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == ("transform", "illegal step")
    assert "Did you mean 'newgvn'" in outcome.detail


def test_an_llvm_that_ends_the_process_costs_one_candidate(tmp_path: Path) -> None:
    """`loop(licm)` lacks MemorySSA, of which LLVM makes a fatal error."""
    spec = Unguarded(evaluator_spec_of(make(SUM)))
    lists = [["default<Oz>"], ["function(loop(licm))"], ["no-such-pass"], ["default<Oz>"]]
    with LocalExecutor(spec, lock=tmp_path / "lock") as executor:
        results = evaluate_in_order(executor, [*map(candidate_of, lists)])
    first, crashed, refused, last = (result.outcome for result in results if result)
    assert isinstance(first, Measured)
    assert first == last
    assert isinstance(crashed, Failed)
    assert (crashed.stage, crashed.reason) == ("transform", "crash")
    assert isinstance(refused, Failed)
    assert (refused.stage, refused.reason) == ("transform", "refused by LLVM")
    assert "no-such-pass" in refused.detail


def test_limits_grow_with_the_module() -> None:
    task = make(SUM)
    program = LlvmLevel().load(SUM, {})
    huge = replace(task, program=replace(program, instructions=100_000))
    assert evaluator_spec_of(huge).limits.transform > 100
    assert evaluator_spec_of(task).limits.transform < 15
    assert evaluator_spec_of(task).limits.lifetime == open_bindings().lifetime


def test_a_list_whose_code_may_vary_counts_where_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's gvn-sink goes by addresses in memory; here the printed code stands for what it made."""
    task, kind = make(SUM), type(open_bindings().parse(SUM))
    varying, steady = candidate_of(["gvn-sink"]), candidate_of(["gvn-hoist"])
    before = outcomes_of(task, varying, steady)
    assert all(isinstance(outcome, Measured) for outcome in before)
    printed = iter(["once", "once", "otherwise"])

    def text(_: object) -> str:
        return next(printed)

    monkeypatch.setattr(kind, "text", text)
    failed, kept = outcomes_of(task, varying, steady)
    assert isinstance(failed, Failed)
    assert (failed.stage, failed.reason) == ("verify", "not reproducible")
    assert next(printed, None) is None
    assert kept == before[1]


def test_a_list_whose_code_may_vary_is_run_again_where_it_may_be_the_best() -> None:
    """A search by counts runs others once; the comparison at the end runs each again."""
    task, again = make(SUM), list[str]()

    def reproduced(_: object, __: object, pipeline: str) -> bool:
        again.append(pipeline)
        return True

    best, worse, equal = ["gvn-sink", "default<Oz>"], ["gvn-sink"], ["default<Oz>", "gvn-sink"]
    lists = [candidate_of(passes) for passes in (best, worse, equal, ["default<Oz>"])]
    for final, expected in ((False, [best]), (True, [best, worse, equal])):
        again.clear()
        executor = InlineExecutor(replace(evaluator_spec_of(task, final=final), reproduced=reproduced)())
        for each in lists:
            assert [type(answer.outcome) for answer in evaluate(executor, [each])] == [Measured]
        assert again == [*map(print_pipeline, expected)]


@pytest.mark.parametrize(("place", "stage"), [(0, "verify"), (1, "run")])
def test_a_program_that_is_killed_from_outside_is_lost_and_not_wrong(
    monkeypatch: pytest.MonkeyPatch, place: int, stage: Stage
) -> None:
    require_linker()
    runs: list[bool] = []

    class Struck(subprocess.Popen[bytes]):
        def __init__(self, words: Sequence[str], **options: Any) -> None:
            super().__init__(words, **options)
            if words[0].endswith("/program"):
                runs.append(True)
                if len(runs) == place + 1:
                    self.kill()

    nap = (
        "declare i32 @usleep(i32)\ndefine i32 @main() {\n  %r = call i32 @usleep(i32 50000)\n  ret i32 0\n}\n"
    )
    executor = InlineExecutor(replace(evaluator_spec_of(make(nap, "time_s")), timing=ONCE)())
    monkeypatch.setattr(subprocess, "Popen", Struck)
    (lost, found) = (answer.outcome for answer in evaluate(executor, [SMALL, SMALL]))
    assert isinstance(lost, Lost)
    assert (lost.stage, lost.reason) == (stage, "killed")
    assert lost.detail.startswith("its program was killed by SIGKILL")
    assert isinstance(found, Measured)
    assert found.values["time_s"] >= 0.05
