"""The code generators against an independent answer: a short random run, and every failure ever found."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fuzz.case
from fuzz.candidates import cases
from fuzz.case import Case, judge, prepared
from fuzz.shrink import fails, shrink
from fuzz.worker import Plan, try_cases
from planish.levels.loops.backends import available_backends
from planish.levels.loops.codegen.llvm.ir_writer import EXTREMES
from planish.levels.loops.lang.parse import parse

TOOL = Path(fuzz.case.__file__).parent
CASES = sorted((TOOL / "cases").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_was_wrong_once_is_right(path: Path) -> None:
    case = Case.of_json(path.read_text())
    if case.backend not in available_backends():
        pytest.skip(f"this machine has no {case.backend}")
    assert not fails(case), path.read_text()


@pytest.mark.slow
def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fuzz", "--pairs", "105", "--seed", "5", "--cases", str(tmp_path)]
    paths = os.pathsep.join([str(TOOL.parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(words, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^all +105 +0 +0 ", done.stdout, re.MULTILINE), done.stdout


def test_a_wrong_kernel_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator that takes the greatest for the least is caught by a program of one statement."""
    program = parse("C[m] += A[m,k] * B[k]; D[m] = min(C[m], E[m]) + B[m]", {"m": 9, "k": 9})
    case = Case(program.text, '[["Split",{"axis":"m","factor":4,"nest":""}]]', "portable")
    assert judge(case) == ("right", "")
    monkeypatch.setitem(EXTREMES, "min", "llvm.maximum")
    assert judge(case)[0] == "wrong"
    small = shrink(case)
    assert small.steps == "[]"
    assert "min(" in small.program
    assert "+=" not in small.program


def test_a_kernel_that_ends_its_process_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        os.abort()

    case = Case(parse("C[m] = A[m]", {"m": 3}).text, "[]", "portable")
    monkeypatch.setattr(fuzz.case, "compile_with", crash)
    assert fails(case)


def test_workers_answer_in_order() -> None:
    plan = Plan(3, 1, ["portable"], "plain")
    found = [(t.case, t.verdict) for t in try_cases(plan, 0, 3, 60)]
    wanted = [c for number in range(20) for c in cases(3, number) if plan.takes(c)][:3]
    assert found == [(case, "right") for case in wanted]


def test_a_fault_of_the_fuzzer_is_reported() -> None:
    """A seed that no generator takes ends the worker before it has drawn a program."""
    with pytest.raises(RuntimeError, match="the fuzzer itself failed"):
        next(try_cases(Plan(-1, 1, ["portable"]), 0, 1, 60))


def test_inputs_show_errors() -> None:
    text = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 8, "n": 9, "k": 10}).text
    _, inputs, _ = prepared(text, False, 3)
    for values in inputs.values():
        sizes = np.abs(values)
        assert len(np.unique(sizes)) == values.size
        assert sizes.min() > 0.4
        assert (values < 0).any()
        assert (values > 0).any()
