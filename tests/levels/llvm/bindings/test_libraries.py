"""Finding and opening back ends."""

import re
import sys
from pathlib import Path

import pytest

from levels.llvm.bindings.processes import python
from levels.llvm.bindings.samples import SUM
from planish.core import PlanishError, TargetError
from planish.levels.llvm.bindings import libraries
from planish.levels.llvm.bindings.libraries import (
    LIBRARY_VARIABLE,
    VARIABLE,
    Wheel,
    available,
    facts,
    find_llvmlite,
    open_bindings,
    reach,
    survives,
)
from planish.levels.llvm.bindings.protocol import Bindings


def installed() -> Wheel:
    wheel = find_llvmlite()
    assert wheel
    return wheel


def test_llvmlite_is_always_there():
    assert available()[-1] == "llvmlite"


def test_a_back_end_is_opened_once_and_by_its_name(bindings: Bindings):
    assert open_bindings(bindings.name) is bindings
    assert re.fullmatch(r"\d+\.\d+\.\d+", bindings.version)
    assert bindings.full is (bindings.name != "llvmlite-reduced")


def test_the_preferred_one_is_the_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert open_bindings().name == available()[0]


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "llvmlite-reduced")
    assert open_bindings().name == "llvmlite-reduced"
    assert open_bindings("llvmlite").name == "llvmlite"
    monkeypatch.setenv(VARIABLE, "libllm")
    with pytest.raises(PlanishError, match=r"'libllm'.*Did you mean 'libllvm'"):
        open_bindings()


def test_a_missing_back_end_tells_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(libraries, "find_libllvm", lambda: None)
    libraries.open_named.cache_clear()
    with pytest.raises(TargetError, match=f"'libllvm' is not installed.*{LIBRARY_VARIABLE}"):
        open_bindings("libllvm")
    assert available() == ["llvmlite"]
    assert facts()["libllvm"].startswith("not found")


@pytest.mark.parametrize(
    ("library", "message"),
    [
        ("nowhere.so", "names no file: nowhere.so"),
        (__file__, "cannot be loaded"),
        ("{}", "lacks the function LLVM"),
    ],
)
def test_a_wrong_library_is_reported(library: str, message: str):
    import _ctypes

    program = """
    import os, sys
    os.environ["PLANISH_LIBLLVM"] = sys.argv[1]
    from planish.levels.llvm.bindings.libraries import open_bindings
    open_bindings("libllvm")
    """
    ended = python(program, library.format(_ctypes.__file__))
    assert "TargetError" in ended.stderr
    assert message in ended.stderr


def test_facts_tell_version_place_and_what_runs(libllvm: Bindings):
    told = facts()
    assert libllvm.version in told["libllvm"]
    assert "libLLVM" in told["libllvm"]
    assert told["llvmlite"].endswith("libllvmlite.so; runs every pass")


def test_nothing_heavy_is_imported_for_the_whole_of_llvmlite():
    program = """
    import sys
    from planish.levels.llvm.bindings.libraries import open_bindings
    assert open_bindings("llvmlite").full
    print(sorted({"numpy", "llvmlite"} & set(sys.modules)))
    """
    assert python(program).stdout == "[]\n"


def test_other_versions_of_llvmlite_are_not_reached_into():
    assert reach(Wheel("0.49.1", installed().library)) == "llvmlite 0.49.1 is not 0.50.x"


def test_a_library_without_local_symbols_is_not_reached_into(tmp_path: Path):
    library = tmp_path / "libllvmlite.so"
    library.write_bytes(open_bindings("llvmlite").parse(SUM).object_code())
    assert reach(Wheel("0.50.0", library)) == f"{library} names no local symbols"
    library.write_bytes(b"MZ")
    assert "not an ELF file" in str(reach(Wheel("0.50.1", library)))


@pytest.mark.skipif(sys.platform != "linux", reason="the whole of llvmlite is reached on Linux only")
def test_wrong_addresses_kill_the_self_test_alone(capfd: pytest.CaptureFixture[str]):
    assert not survives(lambda _: 8)
    assert not survives(lambda _: None)
    assert capfd.readouterr() == ("", "")
