"""Machine code for x86-64 keeps a register tile in registers."""

import pytest

from planish.levels.loops.backends import supported_isas
from planish.levels.loops.codegen.x86.compile import compile_tree
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.steps import Reorder


@pytest.mark.skipif("avx512" not in supported_isas(), reason="the tile is made for AVX-512")
def test_results_stay_in_registers_over_the_reduction() -> None:
    """The listing of a register tile has one load and one store of each result, and no spill."""
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 6, "n": 64, "k": 100})
    schedule = Reorder(("k", "m", "n")).apply(unscheduled(program))
    text = compile_tree(lower(schedule), "avx512").assembly("f")
    stores = [line for line in text.splitlines() if "vmovups [" in line]
    assert len(stores) == 6 * 64 // 16
    assert all("rsp" not in line for line in stores)
    assert sum("vfmadd231ps" in line for line in text.splitlines()) < 6 * 64 // 16 * 100
