"""Modules of LLVM IR on the command line, as a newcomer meets them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Planish
from levels.llvm.modules import ECHO, SUM, require_compiler, require_linker
from planish.core import AllFailedError, PlanishError, ProgramError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.hot.lists import BEGIN, USUAL, pipeline
from planish.measure import Timing
from planish.store import open_store
from planish.tuning.batch import RegressionError

FEW = "--trials", 2, "--workers", 1


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "sum.ll"
    path.write_text(SUM)
    return path


def test_a_module_is_tuned_and_described(planish: Planish, module: Path) -> None:
    said = planish("tune", module, *FEW)
    assert said.code == 0
    assert said.out.startswith("sum.c: 3 functions, 27 instructions\n")
    assert "baseline (default<Oz>)" in said.out
    assert "95 %" not in said.out
    for heading in ("size", "passes", "verified", "repeat"):
        assert f"\n{heading}\n{'-' * len(heading)}\n" in said.out
    assert "opt -passes=" in said.out


def test_a_list_of_ones_own_is_shown(planish: Planish, module: Path) -> None:
    said = planish("passes", module, "mem2reg,function(simplifycfg,gvn)")
    assert said.code == 0
    assert "this pass list" in said.out
    assert "opt -passes='function(mem2reg,simplifycfg,gvn)'" in said.out
    assert list(json.loads(planish("passes", module, "gvn", "--format", "json").out)) == [
        *("schema_version", "size", "passes", "verified", "repeat")
    ]


def test_an_unknown_pass_of_a_list_is_one_line(planish: Planish, module: Path) -> None:
    said = planish("passes", module, "mem2rag")
    assert (said.code, said.out) == (ProgramError.exit_code, "")
    assert "Did you mean 'mem2reg'?" in said.error


def test_a_list_of_runs_names_modules_by_one_line(planish: Planish, module: Path) -> None:
    planish("tune", module, "--trials", 1, "--finalists", 1, "--workers", 1)
    assert "sum.c: 3 functions, 27 instructions\n" in planish("show").out


@pytest.mark.slow
def test_each_function_in_a_table(planish: Planish, module: Path, place: Path) -> None:
    said = planish("tune", module, "--per-function", *FEW)
    assert said.code == 0
    lines = [line.split() for line in said.out.splitlines()]
    assert [words[0] for words in lines[2:5]] == ["sum", "twice", "four"]
    assert "with the baseline as backup" in said.out
    with open_store(place, read_only=True) as store:
        assert len(list(store.runs())) == 3
    found = json.loads(planish("tune", module, "--per-function", *FEW, "--format", "json").out)
    assert [part["name"] for part in found["parts"]] == ["sum", "twice", "four"]
    assert found["totals"]["with backup"]["lost"] == 0
    assert not found["stopped"]


def test_a_module_made_smaller_by_functions_is_a_run_like_any_other(
    planish: Planish, module: Path, tmp_path: Path
) -> None:
    out, page = tmp_path / "out", tmp_path / "report.html"
    words = ("tune", module, "--per-function", "--export", out, "--trials", 6, "--seed", 2, "--workers", 1)
    said = planish(*words, "--report", page)
    assert said.code == 0
    assert "baseline (default<Oz>)" in said.out
    assert f"wrote {out / 'repeat.sh'}" in said.out
    assert page.exists()
    found = json.loads(planish(*words, "--format", "json").out)
    assert (found["run"]["searcher"], found["run"]["space"], found["run"]["seed"]) == (
        "parts",
        "functions",
        2,
    )
    run = found["run"]["id"]
    shown = planish("show", run)
    assert "\nfunctions\n---------\n" in shown.out
    assert planish("export", run, tmp_path / "again").code == 0
    objects = [(folder / "optimized.o").read_bytes() for folder in (out, tmp_path / "again")]
    assert objects[0] == objects[1]


def test_a_program_is_given_arguments_and_input(planish: Planish, tmp_path: Path) -> None:
    require_linker()
    (tmp_path / "echo.ll").write_text(ECHO)
    (tmp_path / "input").write_text("x")
    words = ["--args", "'a b'", "--stdin", tmp_path / "input"]
    said = planish("tune", tmp_path / "echo.ll", *words, "--trials", 2, "--workers", 1)
    assert said.code == 0
    assert "it was run with 'a b'" in said.out


def test_that_a_program_is_not_run_is_said_once(planish: Planish, tmp_path: Path) -> None:
    require_linker()
    text = "declare void @nowhere()\ndefine i32 @main() {\n  call void @nowhere()\n  ret i32 0\n}\n"
    (tmp_path / "f.ll").write_text(text)
    said = planish("tune", tmp_path / "f.ll", "--run", "--trials", 2, "--workers", 1)
    assert said.out.count("Note: not run, and checked by LLVM's verifier alone: it cannot be linked") == 1


WRONG: dict[tuple[str, ...], tuple[int, str]] = {
    ("--option", "function=sun"): (ProgramError.exit_code, "Did you mean 'sum'?"),
    ("--args", "'a"): (ProgramError.exit_code, "Quote them as in a shell."),
    ("--objective", "time_s"): (ProgramError.exit_code, "has no 'main' that could be timed"),
    ("--per-function", "--objective", "time_s"): (ProgramError.exit_code, "has no 'main' that could be"),
    ("--run", "./prog 5 | cat"): (ProgramError.exit_code, "needs a shell for '|'"),
    ("--run=./prog < none",): (ProgramError.exit_code, "cannot read 'none'"),
    ("--link", "a.so"): (ProgramError.exit_code, "programs are not linked with 'a.so'"),
    ("--link", "-lasan"): (ProgramError.exit_code, "a sanitizer ('-lasan') reserves more addresses"),
    ("--per-function", "--report", "out"): (PlanishError.exit_code, "out is for one run"),
    ("--per-function", "--export", "out", "--searcher", "genetc", "--seed", "3"): (
        PlanishError.exit_code,
        "Did you mean 'genetic'?",
    ),
    ("--per-function", "--export", "out", "--searcher", "genetic"): (
        PlanishError.exit_code,
        "Searchers that fit: parts, remote.",
    ),
    ("--per-function", "--export", "out", "--space", "passes"): (
        PlanishError.exit_code,
        "--per-function is the space 'functions'. Leave --space out.",
    ),
    ("--per-function", "--export", "out", "--objective", "instructions,text_bytes"): (
        PlanishError.exit_code,
        "functions are tuned by one objective",
    ),
    ("--per-function", "--objective", "time", "--space", "safe"): (
        PlanishError.exit_code,
        "--per-function is the space 'functions'",
    ),
    ("--per-function", "--objective", "time,text_bytes"): (PlanishError.exit_code, "by one objective"),
    ("--space", "functions", "--objective", "text_bytes,instructions"): (
        PlanishError.exit_code,
        "by one objective",
    ),
    ("--space", "pases"): (PlanishError.exit_code, "Did you mean 'passes'?"),
    ("--size", "m=3"): (PlanishError.exit_code, "level 'llvm' has no option 'size'"),
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_what_is_wrong_is_one_line(planish: Planish, module: Path, words: tuple[str, ...]) -> None:
    said = planish("tune", module, *words, "--trials", 1)
    code, expected = WRONG[words]
    assert expected in said.error
    assert (said.code, said.out) == (code, "")


def test_what_is_no_program_is_one_line(planish: Planish, tmp_path: Path) -> None:
    assert planish("tune", tmp_path).error == f"'{tmp_path}' is a folder. Name a file."
    assert planish("tune", f"{'x' * 300}.c++").error.startswith(f"no level reads '{'x' * 300}.c++'.")


ONE_RUN: dict[tuple[str, ...], str] = {
    ("--run",): "run without arguments,",
    ("--run", "./prog 5 < given"): "run with 5,",
    ("--run=./prog 6",): "run with 6,",
}


@pytest.mark.parametrize("words", ONE_RUN, ids=" ".join)
def test_how_a_program_is_run_is_said_in_one(
    planish: Planish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    require_linker()
    monkeypatch.chdir(tmp_path)
    Path("given").write_text("7")
    Path("a program.ll").write_text("define i32 @main() {\n  ret i32 0\n}\n")
    said = planish("tune", *words, "a program.ll", "--trials", 1, "--finalists", 1, "--workers", 1)
    assert (said.code, said.err.count("error")) == (0, 0)
    assert ONE_RUN[words] in said.out


BUSY = """\
#include <stdio.h>
__attribute__((noinline)) int busy(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum = sum * 3 + i;
  return sum;
}
int main(void) {
  printf("%d\\n", busy(2000000));
  return 0;
}
"""


@pytest.mark.slow
def test_a_program_is_made_faster_where_it_spends_its_time(
    planish: Planish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_compiler()
    require_linker()
    if not open_bindings().full or not open_bindings().runs(f"{BEGIN},{pipeline(USUAL)}"):
        pytest.skip("this LLVM lacks passes of -O3 that are needed")
    # The comparison need not settle anything.
    once = Timing(budget_s=0.0, block_s=0.0, fewest=1, most=1)
    monkeypatch.setattr("planish.levels.llvm.task_setup.LAST_TIMING", once)
    (tmp_path / "busy.c").write_text(BUSY)
    words = ("tune", tmp_path / "busy.c", "--per-function", "--objective", "time", "--run", "./busy")
    few = ("--trials", 3, "--finalists", 1, "--seed", 7, "--workers", 1)
    said = planish(*words, *few, "--export", tmp_path / "out")
    assert said.code == 0
    assert re.search(
        r"^functions\n-+\nfunction +share +-O3 +now +passes, where not as -O3\n", said.out, re.MULTILINE
    )
    assert re.search(r"^busy +\d+% ", said.out, re.MULTILINE)
    assert "it was run without arguments" in said.out
    assert (tmp_path / "out" / "optimized.o").exists()
    found = json.loads(planish(*words, *few, "--format", "json").out)
    assert (found["run"]["searcher"], found["run"]["space"], found["run"]["seed"]) == (
        "hottest-first",
        "functions",
        7,
    )
    assert found["trials"] == 3
    run = found["run"]["id"]
    assert "functions\n" in planish("show", run).out
    assert planish("report", run, "--output", tmp_path / "report.html").code == 0
    more = json.loads(planish(*words, *few, "--trials", 4, "--format", "json").out)
    assert (more["run"]["id"], more["trials"]) == (run, 4)


@pytest.mark.slow
def test_results_are_recorded_and_compared(planish: Planish, module: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    bench = ["bench-passes", module, *FEW]
    assert planish(*bench, "--record", record).code == 0
    same = planish(*bench, "--against", record)
    assert same.code == 0
    assert "1 of 1 recorded, 0 changed" in same.out
    data = json.loads(record.read_text())
    record.write_text(json.dumps({**data, "results": {}}))
    assert "0 of 1 recorded, 0 changed" in planish(*bench, "--against", record).out
    data["results"][str(module)]["value"] -= 1
    record.write_text(json.dumps(data))
    worse = planish(*bench, "--against", record, "--format", "json")
    assert worse.code == RegressionError.exit_code
    assert worse.error.startswith(f"worse than recorded: {module}")
    assert json.loads(worse.out)["changes"][0]["worse"]
    kept = record.read_text()
    assert planish(*bench, "--against", record, "--record", record).code == RegressionError.exit_code
    assert planish(*bench, tmp_path / "absent.ll", "--record", record, "--against", record).code
    assert record.read_text() == kept
    data["results"][str(module)]["value"] += 2
    record.write_text(json.dumps(data))
    assert planish(*bench, "--against", record, "--record", record).code == 0
    assert (
        json.loads(record.read_text())["results"][str(module)]["value"]
        == data["results"][str(module)]["value"] - 1
    )


def test_a_module_that_cannot_be_measured_is_an_error_and_the_others_are_shown(
    planish: Planish, module: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.ll"
    broken.write_text('define void @f() {\n  call void asm sideeffect "no such thing", ""()\n  ret void\n}\n')
    said = planish("bench-passes", broken, module, *FEW, "--objective", "text_bytes")
    assert said.code == AllFailedError.exit_code
    assert f"{module} " in said.out
    assert f"{broken}: not measured: build: no code is made of it" in said.out


def test_a_file_that_is_no_module_is_an_error_and_the_others_are_recorded(
    planish: Planish, module: Path, tmp_path: Path
) -> None:
    broken, record = tmp_path / "broken.ll", tmp_path / "record.json"
    broken.write_text("this is no module\n")
    said = planish("bench-passes", broken, tmp_path / "absent.ll", module, *FEW, "--record", record)
    assert said.code == AllFailedError.exit_code
    # Where the first took long, a line of progress stands before the error.
    assert "2 of 3 could not be measured" in said.err.splitlines()[-1]
    assert f"{broken}: not measured: " in said.out
    assert f"{tmp_path / 'absent.ll'}: not measured: " in said.out
    assert list(json.loads(record.read_text())["results"]) == [str(module)]


def test_if_no_function_can_be_measured_the_exit_code_says_so(planish: Planish, tmp_path: Path) -> None:
    broken = tmp_path / "broken.ll"
    broken.write_text('define void @f() {\n  call void asm sideeffect "no such thing", ""()\n  ret void\n}\n')
    said = planish("tune", broken, "--per-function", *FEW, "--objective", "text_bytes")
    assert said.code == AllFailedError.exit_code
    assert "f: not measured: build: no code is made of it" in said.out


def test_where_a_record_cannot_be_written_the_results_are_shown(
    planish: Planish, module: Path, tmp_path: Path
) -> None:
    said = planish("bench-passes", module, *FEW, "--record", tmp_path / "absent" / "r.json")
    assert said.code == PlanishError.exit_code
    assert f"{module} " in said.out
    assert "cannot write" in said.err


@pytest.mark.slow
def test_ctrl_c_keeps_the_functions_that_are_done(module: Path, place: Path) -> None:
    many = "".join(SUM.replace("@", f"@f{i}_") for i in range(20)).replace('source_filename = "sum.c"', "")
    module.write_text(many)
    words = ["tune", str(module), "--per-function", "--seconds", "0.5", "--workers", "1"]
    with subprocess.Popen(
        [sys.executable, "-c", "from planish.cli.script import main; main()", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PLANISH_STORE": str(place)},
    ) as process:
        assert process.stderr is not None
        assert " of 60 functions (f0_" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert "f0_sum" in out
    assert "f19_four" not in out
    assert "Stopped. Run the same command to resume." in out
