"""Verification against kernels that are wrong on purpose: some, and all that it accepted once."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import fuzz.mutant
from fuzz.mutant import NONE, Mutant, Mutants
from fuzz.mutation_run import ACCEPTED, Confronting, of_program, shrunk, table
from fuzz.worker import Plan
from planish.levels.loops.backends import available_backends
from planish.levels.loops.lang.parse import parse

MUTANTS = sorted((Path(fuzz.mutant.__file__).parent / "mutants").glob("*.json"))
SUM = parse("C[m] += A[m,k] * B[k]; D[m] = relu(C[m])", {"m": 5, "k": 4}).text


@pytest.mark.slow
@pytest.mark.parametrize("path", MUTANTS, ids=lambda path: path.stem)
def test_what_was_accepted_once_is_refused(path: Path) -> None:
    mutant = Mutant.of_json(path.read_text())
    if mutant.backend not in available_backends():
        pytest.skip(f"this machine has no {mutant.backend}")
    there = Confronting(mutant, 0)
    try:
        there.mutants.code(mutant.mistake, mutant.number)
    except IndexError:
        pytest.skip(f"with this machine's vectors the kernel has not so many sites for '{mutant.mistake}'")
    assert there.confront(mutant).verdict == "refused"


ZERO_OF_EXP = "C[p,m] min= A[p] * B[v,u,m,l]; Z0[m,p] = where(exp(min(C[p,m],2)) != 0, E0[p], -1)"
GREATEST_OF_EXP = """
P[i,k] = max(where(1 <= min(X[k,i], 1), 1, 0), 0.75); O[i] = argmax(P[i,k]); Z0[i] = O[i] * E0[];
Z1[i] = where(exp(min(Z0[i], 2)) <= E1[], exp(min(Z0[i], 2)), 0.5)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sizes", "number"),
    [
        (ZERO_OF_EXP, {"l": 3, "m": 8, "p": 4, "u": 8, "v": 7}, 4),
        (GREATEST_OF_EXP, {"i": 3, "k": 32}, 14),
    ],
    ids=["zero", "greatest"],
)
def test_a_number_that_only_a_rare_way_reads_is_not_kept(
    text: str, sizes: Mapping[str, int], number: int
) -> None:
    """An exponential is 0, or as large as it can be and still below an input, in few sets of inputs."""
    program = parse(text, sizes, dtype="float64").text
    mutant = Mutant(program, "[]", "portable", "number", number)
    found = Confronting(mutant, 52817).confront(mutant)
    assert found.verdict in ("refused", "accepted")
    assert found.message


@pytest.mark.slow
def test_no_wrong_kernel_of_a_few_programs_is_accepted() -> None:
    plan = Plan(3, 1, ["portable"])
    tried = [one for number in range(3) for one in of_program(plan, number)]
    assert len(tried) > 20
    assert not [one for one in tried if one.verdict in ACCEPTED]
    assert all(one.verdict == "equal" for one in tried if one.mutant.mistake == NONE)


def test_every_kind_of_mistake_is_made() -> None:
    padded = parse("O[c,y] max= pad(I[c,2*y+r-1],0.5); Z[c] += O[c,y]", {"c": 3, "y": 5, "r": 3}).text
    kinds = {"start", "padding", "no store", "no start", "stride", "offset", "tensor", "guard", "bound"}
    assert kinds <= set(Mutants(Mutant(padded, "[]", "portable", "", 0)).kinds)
    if "x86-avx2" in available_backends():
        assert kinds | {"register"} <= set(Mutants(Mutant(padded, "[]", "x86-avx2", "", 0)).kinds)


@pytest.mark.slow
def test_what_verification_accepts_is_found_and_made_small() -> None:
    """Where nothing is refused, wrong kernels are accepted; those that are as good are none of them."""

    def accept(*_: object) -> str:
        return ""

    mutant = Mutant(SUM, "[]", "portable", "reduction", 0)
    found = Confronting(mutant, 0, accept).confront(mutant)
    assert found.verdict == "kept"
    assert found.message
    right = Mutant(SUM, "[]", "portable", NONE, 0)
    assert Confronting(right, 0, accept).confront(right).verdict == "equal"
    row = table([found]).splitlines()[1].split()
    assert row[:5] == ["reduction", "1", "1", "1", "1"]
    small = shrunk(mutant, 0, accept)
    assert small
    assert "relu" not in small.mutant.program


def test_a_kernel_that_ends_its_process_is_refused() -> None:
    def crash(*_: object) -> str:
        os.abort()

    mutant = Mutant(SUM, "[]", "portable", "reduction", 0)
    assert Confronting(mutant, 0, crash).confront(mutant).verdict == "refused"
