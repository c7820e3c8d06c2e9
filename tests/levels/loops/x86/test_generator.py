"""Machine code for x86-64 keeps a register tile in registers."""

import pytest

from planish.levels.loops.backends import supported_isas
from planish.levels.loops.codegen.x86.compile import compile_tree
from planish.levels.loops.codegen.x86.isa import IsaName
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


@pytest.mark.skipif("avx512" not in supported_isas(), reason="constants of functions are counted for AVX-512")
def test_constants_of_functions_are_loaded_once_for_neighboring_vectors() -> None:
    program = parse("O[k] = sigmoid(X[k])", {"k": 128})
    text = compile_tree(lower(unscheduled(program)), "avx512").assembly("f")
    assert text.count("vscalefps") == 128 // 16
    # Two of the constants are overwritten by each vector: a sign, and the polynomial's first coefficient.
    assert text.count("vbroadcastss") <= 12 + 2 * (128 // 16)
    assert "vmovaps" not in text


def _innermost_loops(assembly: str) -> list[list[str]]:
    """Return the instructions of loops without others inside."""
    address, code = 0, list[tuple[int, str]]()
    for line in assembly.splitlines():
        data, _, text = line.partition("#")
        if ".byte" in data and text:
            code.append((address, text.strip()))
            address += data.count("0x")
    spans = [(int(text.split()[1].rstrip("h"), 16), end) for end, text in code if text.startswith("jne")]
    inner = [a for a in spans if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
    return [[text for at, text in code if first <= at <= last] for first, last in inner]


@pytest.mark.parametrize("text", [
    "E[i,k] = exp(X[i,k]); S[i] += E[i,k]; O[i,k] = E[i,k] / S[i]",
    "D[i,k] = X[i,k] - A[i]; V[i] += D[i,k] * D[i,k]; O[i,k] = D[i,k] * V[i]",
])  # fmt: skip
@pytest.mark.parametrize("isa", supported_isas())
def test_a_row_is_added_up_in_vectors_while_it_is_written(text: str, isa: IsaName) -> None:
    """The loops of softmax and normalization have packed instructions alone, and no sum over lanes."""
    program = parse(text, {"i": 4, "k": 4096})
    found = _innermost_loops(compile_tree(lower(unscheduled(program)), isa).assembly("f"))
    assert len(found) == 2
    for instruction in (text for loop in found for text in loop):
        assert "vextract" not in instruction
        assert not instruction.split()[0].endswith(("addss", "subss", "mulss", "divss", "231ss"))


@pytest.mark.parametrize("isa", supported_isas())
def test_parts_of_a_concatenation_are_copied_in_vectors(isa: IsaName) -> None:
    # Loops of one element are no loops of the copies: both are innermost in the same one.
    program = parse("O[i,a+b,j] = X[i,a,j] | Y[i,b,j]", {"i": 9, "a": 1, "b": 1, "j": 64})
    assert "movss" not in compile_tree(lower(unscheduled(program)), isa).assembly("f")
