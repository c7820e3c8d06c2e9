"""What pass lists take."""

from __future__ import annotations

from planish.levels.llvm.passes import pass_cost


def test_a_pipeline_of_llvms_takes_as_long_as_many_passes() -> None:
    assert pass_cost([]) == 0.0
    assert pass_cost(["gvn-sink", "instcombine<no-verify-fixpoint>"]) == 2.0
    assert pass_cost(["default<Oz>", "gvn-sink"]) == 41.0
