"""Random programs by `planish cc` for several processors: the short form of `make fuzz-cc`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from campaign import State
from fuzz_cc import CSMITH_OPTIONS, TARGETS, Fuzzer, Target, try_programs
from planish.core import PlanishError
from planish.train.corpus.programs import find_csmith, random_program

SEED = 3


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_random_program_answers_the_same(target: Target, tmp_path: Path) -> None:
    if target.missing or not shutil.which("clang-22"):
        pytest.skip(f"{target.missing or 'clang-22'} is not here")
    try:
        csmith, headers = find_csmith()
    except PlanishError as error:
        pytest.skip(str(error))
    result = Fuzzer(target, tmp_path, 15).try_program(random_program(csmith, SEED, CSMITH_OPTIONS), headers)
    assert result
    assert "checksum" in result.expected
    assert result.answer == result.expected
    assert result.planish <= result.clang


@pytest.mark.slow
def test_a_campaign_continues_where_it_ended(tmp_path: Path) -> None:
    try:
        find_csmith()
    except PlanishError as error:
        pytest.skip(str(error))
    if not shutil.which("clang-22"):
        pytest.skip("clang-22 is not here")
    fuzzer, path, begins = Fuzzer(TARGETS[0], tmp_path, 1), tmp_path / "state.json", list[int]()
    for programs in (1, 1, 2):
        state = State(path, "host", SEED)
        begins.append(state.first)
        assert not list(try_programs(fuzzer, state, programs))
        assert state.counts["right"] == programs
    assert begins[0] == SEED < begins[1] == begins[2] < State(path, "host", SEED).first


def test_a_wrong_answer_is_noticed(tmp_path: Path) -> None:
    if not shutil.which("clang-22"):
        pytest.skip("clang-22 is not here")
    source = """#include <stdio.h>
int main(void) {
#ifdef __OPTIMIZE__
    puts("other");
#else
    puts("expected");
#endif
}
"""
    result = Fuzzer(TARGETS[0], tmp_path, 1).try_program(source, tmp_path)
    assert result
    assert (result.expected, result.answer) == ("0 expected\n", "0 other\n")
