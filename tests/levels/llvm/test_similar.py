"""Pass lists that were good for similar modules."""

from pathlib import Path

import pytest

from planish.core import Candidate, SearchContext
from planish.levels.llvm.function_steps import FunctionPasses
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import candidate_of
from planish.levels.llvm.passes.space import LEAST, opcode_profile, pass_space, recommended, similarity
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings

LOOP = """
define i32 @{name}(ptr %a, i32 %n) {{
entry:
  %s = alloca i32
  %i = alloca i32
  store i32 {start}, ptr %s
  store i32 0, ptr %i
  br label %head
head:
  %0 = load i32, ptr %i
  %1 = icmp slt i32 %0, %n
  br i1 %1, label %body, label %done
body:
  %2 = load i32, ptr %i
  %3 = sext i32 %2 to i64
  %4 = getelementptr i32, ptr %a, i64 %3
  %5 = load i32, ptr %4
  %6 = load i32, ptr %s
  %7 = add i32 %6, %5
  %8 = mul i32 %7, {factor}
  store i32 %8, ptr %s
  %9 = load i32, ptr %i
  %10 = add i32 %9, 1
  store i32 %10, ptr %i
  br label %head
done:
  %11 = load i32, ptr %s
  ret i32 %11
}}
"""
ONE, OTHER = LOOP.format(name="f", start=0, factor=3), LOOP.format(name="g", start=7, factor=5)
CALL = "define void @h() {\n  tail call void @f()\n  unreachable\n}\ndeclare void @f()\n"
GOOD, BETTER = candidate_of(["gvn"]), candidate_of(["sroa<modify-cfg>", "gvn"])


def test_modules_are_similar_by_their_opcodes() -> None:
    one, other, call = map(opcode_profile, (ONE, OTHER, CALL))
    assert similarity(one, other) > 0.999
    assert similarity(one, call) < LEAST
    assert set(call) == {"call", "unreachable"}


def test_what_gained_most_on_the_most_similar_modules_is_recommended_first() -> None:
    winners = {OTHER: [(GOOD, 0.9), (BETTER, 0.8)], CALL: [(candidate_of(["adce"]), 0.1)]}
    assert recommended(ONE, winners) == [BETTER, GOOD]
    assert recommended(ONE, winners, most=1) == [BETTER]
    assert recommended(ONE, {OTHER: [(GOOD, 1.0), (BETTER, None)]}) == []
    of_functions = Candidate((FunctionPasses("gvn", ("f",)),))
    assert recommended(ONE, {OTHER: [(of_functions, 0.5)]}) == []


def test_what_is_recommended_comes_after_oz_and_before_the_coreset() -> None:
    space = pass_space("passes", tuple(elements().values()), ir=ONE)
    long = candidate_of(["gvn"] * 21)
    seeds = space.seeds(SearchContext(warm_start=[BETTER, long, Candidate()]))
    assert seeds[:3] == (space.seeds()[0], BETTER, Candidate())
    assert seeds[3:] == space.seeds()[1:]


@pytest.mark.slow
def test_the_second_similar_function_begins_with_what_was_best_for_the_first(tmp_path: Path) -> None:
    level, settings = LlvmLevel(), Settings("llvm", searcher_options={"policy": "none"})
    with open_store(tmp_path / "store.db") as store:
        first, second = (
            tune_program(
                level, level.load(ir, {}), budget=Budget(trials=trials), settings=settings, store=store
            )
            for ir, trials in ((ONE, 60), (OTHER, 8))
        )
        winner = first.candidate
        begun = [trial.candidate for trial in store.run_trials(second.run.id, level.steps)]
    assert first.gain is not None
    assert first.gain > 1
    assert winner in begun
    assert second.gain == first.gain
