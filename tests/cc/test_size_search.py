"""Search for smaller code of a module: its budget, and what is remembered of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from math import inf
from pathlib import Path

import pytest

from amounts import examples
from cc.conftest import WORDS
from planish.cc.clang import Compiler
from planish.cc.object_cache import ObjectCache
from planish.cc.settings import SearchError
from planish.cc.size_search import SIZE, SmallerModule, make_smaller, search
from planish.core import Measured, PlanishError
from planish.levels.llvm.bindings.elf import function_bytes
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.modules.evaluator import FunctionEvaluatorSpec
from planish.levels.llvm.modules.space import FunctionSpace
from planish.levels.llvm.modules.transform import set_code_options, survived
from planish.measure.executors import ForkedExecutor

LOOP = """
int g(int, const char *);
int f(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += g(i, "x") ^ g(s, "y") ^ g(s + i, "z");
    return s;
}
"""


@pytest.fixture(scope="module")
def bitcode(clang: Compiler) -> bytes:
    if not open_bindings().full:
        pytest.skip("this back end cannot treat single functions")
    return front_end(clang, WORDS.read_text())


def front_end(clang: Compiler, source: str) -> bytes:
    options = ["-Oz", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-x", "c", "-", "-o", "-"]
    made = subprocess.run([*clang.command, *options], input=source.encode(), check=True, capture_output=True)
    return made.stdout


def size(code: bytes, pipeline: str = "") -> int:
    module = open_bindings().parse(code)
    try:
        module.run(pipeline)
        return module.text_bytes()
    finally:
        module.close()


def smaller(
    bitcode: bytes,
    cache: Path,
    evaluations: int | None,
    seconds: float = 600.0,
    patience: float = 4.0,
) -> SmallerModule:
    return make_smaller(bitcode, seconds, evaluations, ObjectCache(str(cache)), patience)


def test_without_time_a_module_is_made_once(bitcode: bytes, tmp_path: Path) -> None:
    found = smaller(bitcode, tmp_path, None, seconds=0)
    assert found.evaluations == 0
    assert size(found.bitcode) < size(bitcode)
    assert not list(tmp_path.iterdir())


def test_evaluations_end_a_search_and_decide_its_result(bitcode: bytes, tmp_path: Path) -> None:
    one, other = (smaller(bitcode, tmp_path / name, 40) for name in ("one", "other"))
    assert 40 <= one.evaluations < 40 + 150
    assert (one.bitcode, one.plan) == (other.bitcode, other.plan)
    assert size(one.bitcode) < size(bitcode, "default<Oz>")


@pytest.mark.slow
def test_a_longer_search_repeats_nothing(bitcode: bytes, tmp_path: Path) -> None:
    short = smaller(bitcode, tmp_path, 60)
    more = smaller(bitcode, tmp_path, 120)
    whole = smaller(bitcode, tmp_path / "other", short.evaluations + more.evaluations)
    assert size(more.bitcode) <= size(short.bitcode)
    assert (more.bitcode, short.evaluations + more.evaluations) == (whole.bitcode, whole.evaluations)


def test_what_was_searched_for_as_long_is_made_again(bitcode: bytes, tmp_path: Path) -> None:
    first = smaller(bitcode, tmp_path, 20)
    again = smaller(bitcode, tmp_path, 20)
    assert (again.bitcode, again.evaluations) == (first.bitcode, 0)


def test_no_code_is_made_of_functions_that_another_module_had(
    bitcode: bytes, clang: Compiler, tmp_path: Path
) -> None:
    more = "int added(const int *x, int n) { int sum = 0; while (n--) sum += x[n] * n; return sum; }\n"
    changed = front_end(clang, more + WORDS.read_text())

    def stored(name: str) -> int:
        return sum(path.stat().st_size for path in tmp_path.glob(f"{name}/functions/*/*"))

    alone = smaller(changed, tmp_path / "alone", examples(200), inf)
    smaller(bitcode, tmp_path / "both", examples(200), inf)
    before = stored("both")
    both = smaller(changed, tmp_path / "both", examples(200), inf)
    assert (both.bitcode, both.plan, both.evaluations) == (alone.bitcode, alone.plan, alone.evaluations)
    assert 0 < stored("both") - before < stored("alone") / 2


def test_functions_are_measured_with_options_of_llvm(clang: Compiler, tmp_path: Path) -> None:
    """Clang makes as much code with the options; without them, addresses are kept in registers."""
    code = front_end(clang, LOOP)
    made = smaller(code, tmp_path, None, seconds=0).bitcode
    with closing(open_bindings().parse(code)) as module:
        start = FunctionSpace(module.text(), SIZE).start()
    found: list[int] = []
    for options in ((), ("-disable-machine-licm",), ()):
        with ForkedExecutor(FunctionEvaluatorSpec(code, SIZE, options=options)) as executor:
            executor.submit([start])
            (evaluation,) = executor.results()
        assert isinstance(evaluation.outcome, Measured)
        more = [word for option in options for word in ("-mllvm", option)]
        words = ("-Oz", "-fPIC", *more, "-Xclang", "-disable-llvm-passes", "-c", "-x", "ir", "-", "-o", "-")
        ended = subprocess.run([*clang.command, *words], input=made, check=True, capture_output=True)
        assert evaluation.outcome.parts == function_bytes(ended.stdout)
        found.append(sum(function_bytes(ended.stdout).values()))
    assert found[1] < found[0] == found[2]


def test_options_of_llvm_are_set_once_in_a_process() -> None:
    def set_both() -> bool:
        set_code_options(("-disable-lsr",))
        set_code_options(("-disable-lsr",))
        set_code_options(())
        return True

    with pytest.raises(PlanishError, match="other options"):
        survived(set_both, bool)


def test_a_damaged_record_is_searched_anew(bitcode: bytes, tmp_path: Path) -> None:
    first = smaller(bitcode, tmp_path, 20)
    (path,) = tmp_path.glob("searches/*/*")
    path.write_bytes(path.read_bytes()[:-1])
    again = smaller(bitcode, tmp_path, 20)
    assert (again.bitcode, again.evaluations) == (first.bitcode, first.evaluations)


def test_a_search_that_load_cuts_short_is_resumed(bitcode: bytes, tmp_path: Path) -> None:
    assert smaller(bitcode, tmp_path, None, 1.0, 0.02).seconds < 1.0  # as if others had the processor
    second = smaller(bitcode, tmp_path, None, 1.0, 1e9)  # whatever else runs on this machine
    assert (second.seconds, second.evaluations > 0) == (1.0, True)
    third = smaller(bitcode, tmp_path, None, 1.0, 1e9)
    assert (third.seconds, third.evaluations, third.plan) == (1.0, 0, second.plan)


def test_a_search_that_crashes_or_hangs_is_ended(tmp_path: Path) -> None:
    def crash(*_: object) -> SmallerModule:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    def hang(*_: object) -> SmallerModule:
        time.sleep(60)
        raise AssertionError

    for work, patience_s, why in ((crash, 60.0, "the search died: .*SIGSEGV"), (hang, 0.5, "did not end")):
        with pytest.raises(SearchError, match=why):
            search(b"", 0.1, None, ObjectCache(str(tmp_path)), patience_s, work)


def test_a_search_imports_neither_a_database_nor_numpy() -> None:
    """They take longer to import than a small file takes to compile."""
    code = "import sys, planish.cc.optimize; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"sqlalchemy", "numpy", "asyncio"} & set(loaded.split())


def test_an_interrupted_search_by_evaluations_ends_as_if_it_was_not(bitcode: bytes, tmp_path: Path) -> None:
    whole = smaller(bitcode, tmp_path / "whole", 60, inf)
    child = os.fork()
    if not child:
        smaller(bitcode, tmp_path, 60, inf)
        os._exit(0)
    while not list(tmp_path.glob("searches/*/*")):
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    resumed = smaller(bitcode, tmp_path, 60, inf)
    assert (resumed.bitcode, resumed.plan) == (whole.bitcode, whole.plan)
