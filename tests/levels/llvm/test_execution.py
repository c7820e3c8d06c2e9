"""Running programs: answers, limits, and what does not link."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from levels.llvm.modules import require_linker
from planish.core import TargetError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.execution import NotRunnableError, RunAnswer, Runner, find_linker, reference_answers
from planish.levels.llvm.program import Harness, Running

pytestmark = pytest.mark.usefixtures("linker")
HEAD = "declare i32 @putchar(i32)\ndeclare i32 @getchar()\ndeclare i64 @clock()\ndeclare void @abort()\n"
CAT = """define i32 @main() {
  br label %loop
loop:
  %c = call i32 @getchar()
  %end = icmp slt i32 %c, 0
  br i1 %end, label %done, label %more
more:
  call i32 @putchar(i32 %c)
  br label %loop
done:
  ret i32 7
}
"""
ABORT = "define i32 @main() {\n  call void @abort()\n  ret i32 0\n}\n"
SPIN = "define i32 @main() {\n  br label %l\nl:\n  br label %l\n}\n"
FLOOD = "define i32 @main() {\n  br label %l\nl:\n  call i32 @putchar(i32 65)\n  br label %l\n}\n"


@pytest.fixture
def linker() -> None:
    require_linker()


def answer(text: str, how: Running | None = None, **limits: Any) -> RunAnswer:
    bindings = open_bindings()
    runner = Runner(how or Running(), bindings)
    with runner.executable(bindings.parse(HEAD + text).object_code()) as program:
        return runner.answer(program, **limits)


def test_input_output_and_exit_code() -> None:
    given = bytes(range(1, 255)) * 1000
    found = answer(CAT, Running(stdin=given))
    assert (found.code, found.output) == (7, given)


def test_a_signal_is_an_answer_too() -> None:
    assert answer(ABORT).code == -6


def test_what_differs_is_reported() -> None:
    same = RunAnswer(0, b"abc", 1.0)
    assert RunAnswer(0, b"abc", 2.0).differs(same) == ""
    assert RunAnswer(0, b"abd", 1.0).differs(same) == "the output differs from byte 3 on"
    assert RunAnswer(0, b"ab", 1.0).differs(same) == "the output differs from byte 3 on"
    assert RunAnswer(-11, b"abc", 1.0).differs(same) == "killed by 'Segmentation fault', and not exit code 0"


def test_a_program_that_does_not_end_is_ended() -> None:
    with pytest.raises(NotRunnableError, match=r"did not end within 0\.3 s"):
        answer(SPIN, seconds=0.3)


def test_a_program_that_writes_without_end_is_ended() -> None:
    with pytest.raises(NotRunnableError, match="more than 1 MiB"):
        answer(FLOOD, most=1 << 20)


def test_what_is_undefined_does_not_link() -> None:
    with pytest.raises(NotRunnableError, match="nowhere"):
        answer("declare void @nowhere()\ndefine i32 @main() {\n  call void @nowhere()\n  ret i32 0\n}\n")


def test_it_is_linked_with_the_libraries_that_are_named() -> None:
    assert answer(ABORT, Running(link=("-pthread",))).code == -6
    with pytest.raises(NotRunnableError, match="planish_nowhere"):
        answer(ABORT, Running(link=("-lplanish_nowhere",)))


def test_a_harness_that_does_not_compile_is_an_error() -> None:
    with pytest.raises(NotRunnableError, match="cannot be compiled"):
        Runner(Running(harness=Harness("c", "int main(")), open_bindings())


def test_a_program_that_gives_different_answers_is_not_run() -> None:
    bindings = open_bindings()
    asks = (
        "declare i64 @getpid()\ndefine i32 @main() {\n  %p = call i64 @getpid()\n  %c = trunc i64 %p to i32\n"
    )
    module = bindings.parse(asks + "  %d = and i32 %c, 63\n  ret i32 %d\n}\n")
    with pytest.raises(NotRunnableError, match="two runs of the unoptimized program differ: exit code"):
        reference_answers(module.object_code(), Runner(Running(), bindings))


def test_nothing_is_left_behind(temporary: Path) -> None:
    answer(CAT)
    assert list(temporary.iterdir()) == []


def test_without_a_compiler_nothing_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    find_linker.cache_clear()
    try:
        with pytest.raises(TargetError, match="Install one"):
            find_linker()
    finally:
        find_linker.cache_clear()


@pytest.fixture
def forgotten() -> Iterator[None]:
    """The linker is looked for anew, here and by later callers."""
    find_linker.cache_clear()
    yield
    find_linker.cache_clear()


@pytest.mark.usefixtures("linker", "forgotten")
def test_cc_may_have_arguments_and_its_path_spaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "my compilers" / "cc"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    expected = {
        str(program): (str(program),),
        f"'{program}' -pthread -DA='b c'": (str(program), "-pthread", "-DA=b c"),
    }
    for given, words in expected.items():
        find_linker.cache_clear()
        monkeypatch.setenv("CC", given)
        assert find_linker() == words


@pytest.mark.usefixtures("linker", "forgotten")
def test_cc_with_a_quote_that_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc '-DA=b")
    with pytest.raises(TargetError, match="is not a valid command: No closing quotation"):
        find_linker()
