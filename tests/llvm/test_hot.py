"""Programs made faster where they spend their time."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from llvm.modules import require_compiler, require_linker
from planish.cc.object_cache import ObjectCache
from planish.cc.optimize import FunctionMemory
from planish.core import Objective, ProgramError, is_locked
from planish.levels.llvm.backend import open_backend
from planish.levels.llvm.hot import HotBuild, RuntimeResult, export_program, optimize_runtime
from planish.levels.llvm.hot import search as hot_search
from planish.levels.llvm.hot.bench import Bench, Times, answer_of, judged
from planish.levels.llvm.hot.search import O3
from planish.levels.llvm.hot.versions import (
    BEGIN,
    LAST,
    USUAL,
    Parts,
    PreparedProgram,
    drawn,
    first_lists,
    make,
    pipeline,
)
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.modules import Memory
from planish.levels.llvm.modules.results import ModuleRecipe
from planish.levels.llvm.program import IRProgram

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
static double table[200];
__attribute__((noinline)) double busy(double *a, const int *places, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    a[i & 127] = a[i & 127] * 0.5 + a[places[i & 63] & 127] * 0.375;
    sum = sum * 0.25 + a[i & 127] + i;
  }
  return sum;
}
__attribute__((noinline)) int idle(int n) { return n * 3 + 1; }
int main(int count, char **words) {
  int places[64], n = count > 1 ? atoi(words[1]) : 1;
  double sum = 0;
  for (int i = 0; i < 64; i++) places[i] = (i * 37) % 128;
  for (int i = 0; i < 200; i++) table[i] = i;
  for (int i = 0; i < n; i++) sum += busy(table, places, 1000);
  printf("%.6g %d\n", sum, idle(n));
  return 3;
}
"""
ARGS = "4000"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> IRProgram:
    require_compiler()
    require_linker()
    if not open_backend().full or not open_backend().runs(f"{BEGIN},{pipeline(USUAL)}"):
        pytest.skip("this LLVM lacks passes of -O3 that are needed")
    path = tmp_path_factory.mktemp("hot") / "busy.c"
    path.write_text(SOURCE)
    return loaded(path, {"run": f"./prog {ARGS}"})


def loaded(path: Path, options: Mapping[str, str]) -> IRProgram:
    level = LlvmLevel()
    return level.specialize(level.load(str(path), options), [level.objectives["time_s"]])


def bench_of(program: IRProgram) -> Bench:
    assert program.running
    base, reference = make(program.ir, ModuleRecipe(O3, (), "")), make(program.ir, ModuleRecipe("", (), ""))
    return Bench(program.running, base.code, answer_of(program.running, reference.code, base.code))


def test_the_time_is_found_where_it_goes(program: IRProgram) -> None:
    counts = bench_of(program).sampled()
    assert counts["busy"] > 0.5 * counts.total() > 20
    assert counts["idle"] < 0.05 * counts.total()


def test_the_usual_lists_make_the_same_code_as_o3(program: IRProgram) -> None:
    begun = PreparedProgram.of(program.ir)
    made = begun.finished(ModuleRecipe(BEGIN, ((pipeline(USUAL), begun.names),), LAST))
    assert made
    assert len(made.code) == len(make(program.ir, ModuleRecipe(O3, (), "")).code)
    assert {"busy", "idle", "main"} == set(begun.names)


def test_all_lists_are_pipelines(program: IRProgram) -> None:
    del program
    rng, backend = random.Random(3), open_backend()
    lists = [*first_lists(), *(drawn(USUAL, rng) for _ in range(20))]
    assert [parts for parts in lists if not backend.runs(pipeline(parts))] == []
    assert len(set(lists)) > 25


def test_a_wrong_answer_is_no_version(program: IRProgram) -> None:
    bench = bench_of(program)
    wrong = make(program.ir.replace("3.750000e-01", "2.500000e-01"), ModuleRecipe(O3, (), ""))
    assert wrong.code != bench.baseline
    assert bench.beside(wrong.code, 0.0) is None
    assert bench.beside(bench.baseline, 0.0) is not None


HANGING = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) {
  if (!access("ran", F_OK) && HANGS) for (;;) pause();
  fclose(fopen("ran", "w"));
  puts("done");
  return 0;
}
"""


def test_a_version_that_hangs_while_it_is_timed_is_none_and_frees_the_machine(
    program: IRProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del program  # which skips where nothing can be built
    lock = tmp_path / "lock"
    for module in ("llvm.hot.bench", "measure.machine_lock"):  # else others that measure would be in the way
        monkeypatch.setattr(f"planish.{module}.machine_lock", lambda: lock)
    monkeypatch.setattr("planish.levels.llvm.hot.bench._LEAST_S", 0.5)
    made: list[IRProgram] = []
    for hangs in ("0", "1"):
        path = tmp_path / f"hangs{hangs}.c"
        path.write_text(HANGING.replace("HANGS", hangs))
        made.append(loaded(path, {"run": "./prog"}))
    bench = bench_of(made[0])
    assert bench.beside(make(made[1].ir, ModuleRecipe(O3, (), "")).code, 0.0) is None
    assert not is_locked(lock)
    assert bench.beside(bench.baseline, 0.0) is not None


def test_what_is_known_to_be_faster_is_kept(program: IRProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    found = timed(program, monkeypatch, 0.5)
    assert found.verdict == "better"
    (changed,) = (each for each in found.functions if each.passes)
    assert changed.name == "busy"
    assert changed.passes != pipeline(USUAL)
    assert found.tried == 3


def test_without_a_gain_it_is_o3_that_stays(program: IRProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    found = timed(program, monkeypatch, 1.0)
    assert (found.ratio, found.verdict) == (None, "same")
    assert found.made.code == make(program.ir, ModuleRecipe(O3, (), "")).code
    assert found.recipe.passes == O3


def test_what_was_lucky_is_not_kept(program: IRProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    found = timed(program, monkeypatch, 0.5, at_the_end=1.0)
    assert found.ratio is not None
    assert (found.verdict, found.recipe.passes) == ("same", O3)
    assert found.made.code == make(program.ir, ModuleRecipe(O3, (), "")).code


def test_opt_makes_it_again(program: IRProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = timed(program, monkeypatch, 0.5)
    major = open_backend().version.partition(".")[0]
    opt, llc = (shutil.which(f"{tool}-{major}") for tool in ("opt", "llc"))
    files = {path.name for path in export_program(program, found, tmp_path)}
    assert {"prepared.ll", "optimised.ll", "optimised.o", "manifest.json", "repeat.sh"} <= files
    assert json.loads((tmp_path / "manifest.json").read_text())["verdict"] == "faster"
    if not opt or not llc:
        pytest.skip("no opt of this LLVM is on PATH")
    (tmp_path / "optimised.o").unlink()
    tools = {"PATH": "/usr/bin:/bin", "OPT": opt, "LLC": llc}
    subprocess.run([tmp_path / "repeat.sh"], check=True, env=tools)
    assert bench_of(program).beside((tmp_path / "optimised.o").read_bytes(), 0.0) is not None


def test_a_program_that_cannot_be_run_is_an_error(program: IRProgram, tmp_path: Path) -> None:
    del program
    path = tmp_path / "part.c"
    path.write_text("int f(int x) { return x; }\n")
    with pytest.raises(ProgramError, match="has no 'main' that could be timed"):
        optimize_runtime(loaded(path, {}))
    path.write_text("#include <unistd.h>\nint main(void) { return getpid() & 63; }\n")
    with pytest.raises(ProgramError, match="two runs of the unoptimised program differ"):
        optimize_runtime(loaded(path, {"run": "yes"}))


def timed(
    program: IRProgram,
    monkeypatch: pytest.MonkeyPatch,
    ratio: float,
    at_the_end: float | None = None,
    remember: Memory | None = None,
) -> RuntimeResult:
    """Search by clocks that say what they are told: the second version is the one that differs."""
    seen = dict[bytes, None]()

    def beside(bench: Bench, code: bytes, seconds: float, *, patient: bool = False) -> Times:
        del bench, seconds
        seen[code] = None
        second = list(seen)[1:2] == [code]
        own = (at_the_end or ratio) if patient else ratio if second else 1.0
        noise = (1.0, 1.001, 0.999, 1.0, 1.002)
        return Times(noise, tuple(own * each for each in reversed(noise)), (0.0,), (0.0,))

    monkeypatch.setattr(Bench, "beside", beside)
    return optimize_runtime(program, 600.0, 3, remember=remember)


def test_processes_are_witnesses_of_one_ratio() -> None:
    rows = [Times((1.0, 2.0), (0.5, 1.0), (1.0, 2.0), (0.5, 1.0))] * 5
    assert judged(rows).value == 0.5
    assert judged(rows).verdict(Objective("time_s", "s")) == "better"


def test_what_made_a_function_faster_is_tried_first(
    program: IRProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = FunctionMemory(ObjectCache(str(tmp_path / "cache")))
    found = timed(program, monkeypatch, 0.5, remember=kept)
    (faster,) = (each.passes for each in found.functions if each.passes)
    tried = list[str]()
    search = hot_search.HotSearch.version

    def noted(self: hot_search.HotSearch, name: str, parts: Parts) -> HotBuild | None:
        tried.append(pipeline(parts))
        return search(self, name, parts)

    monkeypatch.setattr(hot_search.HotSearch, "version", noted)
    again = timed(program, monkeypatch, 0.5, remember=FunctionMemory(ObjectCache(str(tmp_path / "cache"))))
    assert tried[0] == faster != pipeline(next(first_lists()))
    assert again.tried == 3
    other = replace(program, ir=program.ir.replace("2.500000e-01", "1.250000e-01"))
    tried.clear()
    timed(other, monkeypatch, 0.5, remember=kept)
    assert tried[0] == pipeline(next(first_lists()))


def test_what_was_found_before_an_interrupt_is_tried_first(
    program: IRProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried = list[str]()
    search = hot_search.HotSearch.version

    def noted(self: hot_search.HotSearch, name: str, parts: Parts) -> HotBuild | None:
        if self.lists:  # one was faster
            raise KeyboardInterrupt
        tried.append(pipeline(parts))
        return search(self, name, parts)

    monkeypatch.setattr(hot_search.HotSearch, "version", noted)
    cache = str(tmp_path / "cache")
    with pytest.raises(KeyboardInterrupt):
        timed(program, monkeypatch, 0.5, remember=FunctionMemory(ObjectCache(cache)))
    faster = tried[-1]
    tried.clear()
    with pytest.raises(KeyboardInterrupt):
        timed(program, monkeypatch, 0.5, remember=FunctionMemory(ObjectCache(cache)))
    assert tried[0] == faster != pipeline(next(first_lists()))
