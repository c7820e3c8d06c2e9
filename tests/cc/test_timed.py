"""`planish cc --planish-objective time`: programs that are run, and made faster where their time goes."""

import json
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from cc.conftest import Place
from levels.llvm.clocked import ClockedLevel, by_clock, inline
from levels.llvm.modules import require_linker
from planish.cc import timed_search
from planish.cc.clang import Compiler
from planish.cc.command import main
from planish.cc.object_cache import contents, digest, open_cache
from planish.cc.reporting import builds
from planish.cc.timed_program import exchanged, link_parts, read_unit, without_output
from planish.cc.timed_search import seconds_had
from planish.core import Candidate
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.hot.lists import BEGIN, USUAL, pipeline
from prepared_workers import PreparedWorkers

KERNEL = """
double spread(double *c, const double *a, const double *b, int n) {
    for (int r = 0; r < 40; r++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) c[i] += a[i * n + k] * b[k * n + i];
    return c[n - 1];
}
"""
MAIN = """
#include <stdio.h>
#include <stdlib.h>
double spread(double *, const double *, const double *, int);
static double a[40000], b[40000], c[200];
int main(int count, char **words) {
    (void)count;
    FILE *file = fopen(words[1], "r");
    int n = 0;
    if (!file || fscanf(file, "%d", &n) != 1) return 1;
    for (int i = 0; i < n * n; i++) a[i] = i % 7, b[i] = i % 11;
    printf("%g\\n", spread(c, a, b, n));
    return 0;
}
"""
OBJECTIVE = ("--planish-objective", "time")


@pytest.fixture(scope="module")
def objects(
    tmp_path_factory: pytest.TempPathFactory, clang: Compiler, prepared_workers: PreparedWorkers
) -> Path:
    """Have objects of -O2, one of them in an archive, and the cache of planish cc that made them."""
    require_linker()
    if not open_bindings().full or not open_bindings().runs(f"{BEGIN},{pipeline(USUAL)}"):
        pytest.skip("this LLVM lacks passes of -O3 that are needed")
    place = Place(tmp_path_factory.mktemp("objects") / "work", clang, prepared_workers)
    place.write("kernel.c", KERNEL)
    place.write("main.c", MAIN)
    place.write("size", "190\n")
    for name in ("kernel", "main"):
        assert place.cc("-O2", "-c", f"{name}.c", *OBJECTIVE, PLANISH_RUN="./program size").returncode == 0
    subprocess.run(["ar", "rcs", "libkernel.a", "kernel.o"], check=True, cwd=place.folder)
    return place.folder.parent


@pytest.fixture
def built(
    objects: Path,
    tmp_path: Path,
    clang: Compiler,
    prepared_workers: PreparedWorkers,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    """Have a copy of the objects and their cache, and variables by which the program is run."""
    shutil.copytree(objects, tmp_path, dirs_exist_ok=True)
    place = Place(tmp_path / "work", clang, prepared_workers)
    monkeypatch.chdir(place.folder)
    for name in ("PLANISH_CACHE", "PLANISH_SECONDS"):
        monkeypatch.setenv(name, {**place.environment, "PLANISH_SECONDS": "0.5"}[name])
    monkeypatch.setenv("PLANISH_RUN", "./program size")
    return place


def link(*words: str) -> int:
    return main(["main.o", "-o", "program", "libkernel.a", *words, *OBJECTIVE], plus=False)


def faster(monkeypatch: pytest.MonkeyPatch, ratio: float) -> list[Candidate]:
    """Have clocks say that the second list on a function is faster and no other."""
    seen, times = list[Candidate](), by_clock(ratio)

    def seconds(candidate: Candidate, final: bool) -> float:
        seen.append(candidate)
        return times(candidate, final)

    monkeypatch.setattr(timed_search, "LlvmLevel", partial(ClockedLevel, seconds, "spread"))
    monkeypatch.setattr(timed_search, "LocalExecutor", inline)
    return seen


def test_a_program_is_made_of_faster_objects(
    built: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = faster(monkeypatch, 0.5)
    built.as_clang("main.o", "libkernel.a", "-o", "clangs")
    before = built.files()
    assert link("--planish-report") == 0
    said = capfd.readouterr().err
    assert "program: 2.000 times as fast" in said
    assert "spread" in said
    after = built.files()
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"program"}
    assert after["program"] != before["clangs"]
    answers = {built.run([f"./{name}", "size"]).stdout for name in ("clangs", "program")}
    assert len(answers) == 1
    assert answers != {""}
    assert len(seen) > 3


def test_a_second_time_it_is_known(built: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    faster(monkeypatch, 0.5)
    assert link() == 0
    program = (built.folder / "program").read_bytes()
    seen = faster(monkeypatch, 0.5)
    (built.folder / "program").unlink()
    assert link() == 0
    assert (built.folder / "program").read_bytes() == program
    assert seen == []
    (one,) = (each for each in builds(open_cache().folder, built.folder) if each.faster is not None)
    assert (one.how, one.faster and one.faster[0].source) == ("known", "kernel.c")
    built.write("size", "180\n")  # an argument's file is the user's affair, and the same command
    monkeypatch.setenv("PLANISH_RUN", "./program size again")
    assert link() == 0
    assert len(seen) > 3


@pytest.mark.usefixtures("built")
def test_a_damaged_store_costs_no_result(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    faster(monkeypatch, 0.5)
    cache = Path(open_cache().folder)
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "store.db").write_bytes(b"no database\n" * 999)
    assert link("--planish-report") == 0
    said = capfd.readouterr().err
    assert "program: 2.000 times as fast" in said
    assert f"the cache {cache} cannot be written" in said


@pytest.mark.slow
@pytest.mark.usefixtures("built")
def test_a_search_that_load_cuts_short_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(*_: float) -> float:
        return 0.25  # of 0.5

    monkeypatch.setattr(timed_search, "seconds_had", half)
    for is_known in (False, False, True):
        seen = faster(monkeypatch, 0.5)
        assert link() == 0
        assert (seen == []) == is_known


@pytest.mark.parametrize(
    ("passed", "used", "load", "had"),
    [(20.5, 3.0, 4.0, 3.0), (20.5, 3.0, 0.25, 20.0), (20.5, 15.0, 4.0, 20.0), (5.0, 1.0, 4.0, 20.0)],
    ids=["loaded", "a program that waits", "enough", "over before its time"],
)
def test_seconds_of_a_loaded_machine_are_those_of_the_processor(
    passed: float, used: float, load: float, had: float
) -> None:
    assert seconds_had(20.0, passed, used, load) == had


def test_what_is_not_faster_is_left(
    built: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    faster(monkeypatch, 1.0)
    built.as_clang("main.o", "libkernel.a", "-o", "clangs")
    assert link("--planish-report") == 0
    assert "nothing faster was found" in capfd.readouterr().err
    assert (built.folder / "program").read_bytes() == (built.folder / "clangs").read_bytes()


def test_objects_are_clangs_and_a_second_time_known(built: Place) -> None:
    ours = (built.folder / "kernel.o").read_bytes()
    built.as_clang("-O2", "-c", "kernel.c")
    assert (built.folder / "kernel.o").read_bytes() == ours
    (built.folder / "kernel.o").unlink()
    again = built.cc("-O2", "-c", "kernel.c", *OBJECTIVE, PLANISH_RUN="./program", PLANISH_CLANG="")
    assert (again.returncode, again.stderr) == (0, "")
    assert (built.folder / "kernel.o").read_bytes() == ours


def test_who_says_not_how_it_is_run_gets_clangs_result(built: Place) -> None:
    done = built.cc("-O2", "kernel.c", "main.c", "-o", "other", *OBJECTIVE, PLANISH_RUN="")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "PLANISH_RUN=" in done.stderr
    strict = built.cc("-O2", "-c", "main.c", "--planish-strict", *OBJECTIVE, PLANISH_RUN="")
    assert strict.returncode == 2
    other = built.cc(
        "main.o", "kernel.o", "-o", "other", "--planish-strict", *OBJECTIVE, PLANISH_RUN="./prog x"
    )
    assert (other.returncode, other.stderr) == (0, "")


def test_a_program_that_cannot_be_judged_stays_clangs(built: Place) -> None:
    built.write(
        "main.c", '#include <unistd.h>\n#include <stdio.h>\nint main(void) { printf("%d", getpid()); }\n'
    )
    words = ("-O2", "main.c", "-o", "program", *OBJECTIVE)
    done = built.cc(*words, PLANISH_RUN="./program size")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "two runs of the unoptimized program differ" in done.stderr
    assert (built.folder / "program").exists()
    strict = built.cc(*words, "--planish-strict", PLANISH_RUN="./program size")
    assert strict.returncode == 2
    assert not (built.folder / "program").exists()
    missing = built.cc(*words, PLANISH_RUN="./program < nothing")
    assert "cannot read 'nothing'" in missing.stderr


def test_without_time_only_what_is_known_is_used(
    built: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = faster(monkeypatch, 0.5)
    monkeypatch.setenv("PLANISH_SECONDS", "0")
    assert link("--planish-report") == 0
    assert "left to clang: there is no time" in capfd.readouterr().err
    assert (built.folder / "program").exists()
    assert seen == []


def test_objects_of_others_are_reported(built: Place) -> None:
    shutil.rmtree(built.cache)
    done = built.cc("main.o", "kernel.o", "-o", "program", *OBJECTIVE, PLANISH_RUN="./program size")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "compile them with planish cc" in done.stderr
    assert (built.folder / "program").exists()


@pytest.mark.slow
def test_what_is_damaged_is_made_anew(built: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    faster(monkeypatch, 0.5)
    assert link() == 0
    program = (built.folder / "program").read_bytes()
    (path,) = Path(built.cache).glob("programs/*/*")
    kept, about = json.loads(contents(path.read_bytes()) or b"")
    assert list(kept) == [digest((built.folder / "kernel.o").read_bytes())]
    assert about["run"] == "./program size"
    for path in Path(built.cache).glob("programs/*/*"):
        path.write_bytes(path.read_bytes()[:-3])
    assert len(seen := faster(monkeypatch, 0.5)) == 0
    assert link() == 0
    assert (built.folder / "program").read_bytes() == program
    assert len(seen) > 3


def test_an_object_that_two_sources_have_is_left(built: Place) -> None:
    """Sums that wrap, and sums that must not overflow: the same object, until other passes make it."""
    source, sums = "sum.c", "int sum(int a, int b) { return a + b; }\n"
    built.write(source, sums)
    time.sleep(0.05)  # what was written just now is not kept
    names: list[str] = []
    for more in ((), ("-fwrapv",)):
        assert main(["-O2", *more, "-c", source, *OBJECTIVE], plus=False) == 0
        names.append(digest((built.folder / "sum.o").read_bytes()))
        assert (read_unit(open_cache(), names[0]) is None) == bool(more)
    assert names[0] == names[1]


def test_members_of_archives_are_objects_too(built: Place) -> None:
    built.write("a name that is longer than sixteen.c", "int f(void) { return 3; }\n")
    built.as_clang("-c", "a name that is longer than sixteen.c")
    names = [f"{built.folder}/{name}.o" for name in ("kernel", "a name that is longer than sixteen", "main")]
    subprocess.run(["ar", "rcs", "all.a", *names], check=True)
    words = ["-o", "main.o", "all.a", "main.o", "-lm", "missing.o"]
    parts = link_parts(words)
    assert [part.name for part in parts[:3]] == [digest(Path(name).read_bytes()) for name in names]
    assert [(part.word, part.in_archive) for part in parts] == [(2, True), (2, True), (2, True), (3, False)]
    assert exchanged(words, {parts[3]: "X", parts[1]: "Y"}) == [
        *("-o", "main.o", "Y", "all.a", "X", "-lm", "missing.o")
    ]
    assert without_output([*words, "-oprogram"]) == ["all.a", "main.o", "-lm", "missing.o"]
