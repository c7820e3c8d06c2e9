"""Steps on single functions, as a store has them."""

from planish.core import Candidate
from planish.core.step import candidate_from_json
from planish.levels.llvm.function_steps import FunctionAttribute, FunctionPasses
from planish.levels.llvm.level import LlvmLevel


def test_candidates_of_steps_on_functions_are_read_back() -> None:
    steps = (FunctionAttribute("f", "noinline"), FunctionPasses("function(gvn)", ("f", "g")))
    candidate = Candidate(steps)
    data = [step.to_json() for step in steps]
    assert candidate_from_json(data, LlvmLevel().steps) == candidate
    assert str(candidate) == "noinline f; function(gvn) on f, g"
