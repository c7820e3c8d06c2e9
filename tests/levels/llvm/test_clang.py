import os
import sys
from pathlib import Path

import pytest

from planish.core import ProgramError, TargetError
from planish.levels.llvm import clang
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.clang import Compiler, find_compiler
from planish.levels.llvm.ir.functions import normalize, split_module

SOURCE = (
    "#include <string.h>\nint f(const char *s) { int n = K; while (*s) n += *s++; return n + strlen(s); }\n"
)
FAKE = '#!/bin/sh\necho "{name} version {version} (build 1)"\n'
NEWEST = 22


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    try:
        return find_compiler(int(open_bindings().version.partition(".")[0]))
    except TargetError as error:
        pytest.fail(str(error)) if os.environ.get("CI") else pytest.skip(str(error))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is all of PATH, on a machine without ziglang."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(clang.VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    return tmp_path


def fake(folder: Path, program: str, version: str, name: str = "Debian clang") -> str:
    """Write a compiler that knows nothing but its version."""
    file = folder / program
    file.write_text(FAKE.format(name=name, version=version))
    file.chmod(0o755)
    return str(file)


def functions(text: str) -> list[str]:
    return [normalize(function.text) for function in split_module(text)]


def test_ir_is_not_optimized(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(SOURCE)
    text = compiler.to_ir(tmp_path / "f.c", ["-DK=3"])
    assert "optnone" not in text
    assert "alloca" in text
    assert "!dbg" not in text
    assert functions(compiler.to_ir("f.c", ["-DK=3"], source=SOURCE)) == functions(text)
    assert "alloca" not in compiler.to_ir(tmp_path / "f.c", ["-DK=3"], level="Oz")


def test_the_first_error_is_reported(compiler: Compiler, tmp_path: Path) -> None:
    file = tmp_path / "f.c"
    file.write_text(SOURCE)
    with pytest.raises(
        ProgramError, match=rf"{file} does not compile: .*f\.c:2:.*: use of undeclared identifier 'K'"
    ):
        compiler.to_ir(file)
    with pytest.raises(ProgramError, match="no such file or directory"):
        compiler.to_ir(tmp_path / "none.c")


def test_a_compiler_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "slow").write_text("#!/bin/sh\nexec sleep 100\n")
    (tmp_path / "slow").chmod(0o755)
    with pytest.raises(ProgramError, match=r"f\.c: the compiler did not end within 0\.01 s"):
        Compiler((str(tmp_path / "slow"),), "22.1.8").to_ir("f.c", seconds=0.01)


def test_ziglang_gives_what_clang_gives(
    compiler: Compiler, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    pytest.importorskip("ziglang")
    monkeypatch.setenv("PATH", str(path))
    zig = find_compiler(NEWEST)
    assert zig.name == "ziglang"
    assert functions(zig.to_ir("f.c", ["-DK=3"], source=SOURCE)) == functions(
        compiler.to_ir("f.c", ["-DK=3"], source=SOURCE)
    )
    wide = '__attribute__((target("avx2"))) int f(int x) { return x; }'
    assert "+avx2" in functions(zig.to_ir("f.c", source=wide))[0]


def test_header_folders_have_the_headers(compiler: Compiler) -> None:
    folders = compiler.header_folders()
    assert any((folder / "stdio.h").is_file() for folder in folders)
    assert any((folder / "stdarg.h").is_file() for folder in folders)


def test_the_newest_that_can_be_read_is_taken(path: Path) -> None:
    fake(path, "clang", "23.1.0")
    fake(path, "clang-19", "19.1.7")
    fake(path, "clang-21", "21.1.0")
    fake(path, "clang-16", "16.0.6")
    found = find_compiler(NEWEST)
    assert (found.name, found.version) == ("clang-21", "21.1.0")


def test_no_compiler(path: Path) -> None:
    fake(path, "clang", "17.0.0", name="Apple clang")  # its numbers are not LLVM's
    fake(path, "clang-22", "22.1.8", name="gcc")
    with pytest.raises(
        TargetError, match=r"no C compiler of LLVM 17 to 22 is here.*apt-get install clang-22"
    ):
        find_compiler(NEWEST)


def test_the_variable_names_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(path, "clang-22", "22.1.8")
    monkeypatch.setenv(clang.VARIABLE, fake(path, "mine", "18.1.0") + " --sysroot=/")
    found = find_compiler(NEWEST)
    assert (found.version, found.command[1:]) == ("18.1.0", ("--sysroot=/",))
    monkeypatch.setenv(clang.VARIABLE, fake(path, "new", "23.0.0"))
    with pytest.raises(TargetError, match=r"is of LLVM 23\.0\.0; what can be read is 17 to 22"):
        find_compiler(NEWEST)
    monkeypatch.setenv(clang.VARIABLE, "nowhere")
    with pytest.raises(TargetError, match="does not run as clang does"):
        find_compiler(NEWEST)
