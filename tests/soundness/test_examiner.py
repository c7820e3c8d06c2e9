"""Verdicts over lists, on the small programs."""

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from planish.levels.llvm.backend import Backend
from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.execution import NotRunnableError
from soundness.broken import BrokenBackend
from soundness.examiner import Examiner
from soundness.subject import Form, Subject, compile_subject, samples


@pytest.fixture
def examiner(typed: Subject, backend: Backend, tmp_path: Path) -> Generator[Examiner]:
    with closing(Examiner(typed, backend, tmp_path)) as made:
        yield made


def test_llvm_s_own_pipelines_keep_the_answer(examiner: Examiner) -> None:
    assert b"== volatiles\n" in examiner.expected.output
    for level in ("Oz", "O3"):
        verdict = examiner.examine(f"default<{level}>")
        assert (verdict.kind, verdict.detail) == ("right", "")
        assert verdict.answer
        assert verdict.answer.output == examiner.expected.output


@pytest.mark.parametrize("form", ["size", "typed", "plain"])
def test_the_attributor_is_caught(form: Form, compiler: Compiler, backend: Backend, tmp_path: Path) -> None:
    with closing(Examiner(samples(compiler, form), backend, tmp_path)) as examiner:
        verdict = examiner.examine("attributor")
    assert verdict.kind == "wrong"
    assert verdict.answer
    assert verdict.answer.output != examiner.expected.output


def test_equal_code_is_run_once_and_a_list_examined_once(examiner: Examiner) -> None:
    once, again = (
        examiner.examine("function(sroa<modify-cfg>)"),
        examiner.examine("function(sroa<modify-cfg>,dce)"),
    )
    assert (once.code, examiner.executed) == (again.code, 1)
    assert examiner.examine("function(sroa<modify-cfg>)") is once
    assert examiner.examine("function(sroa<modify-cfg>)", [0]).code != once.code


def test_what_llvm_does_not_do_has_a_kind_of_its_own(examiner: Examiner) -> None:
    assert examiner.examine("no-such-pass").kind == "refused"
    crashed = examiner.examine("function(codegenprepare)")
    assert (crashed.kind, crashed.detail) == ("crashed", "killed by SIGSEGV")
    assert "fixpoint" in examiner.examine("function(sroa<modify-cfg>,instcombine<max-iterations=1>)").detail
    assert examiner.examine("function(sroa<modify-cfg>)").kind == "right"


def test_invalid_code_is_not_run(typed: Subject, backend: Backend, tmp_path: Path) -> None:
    broken = cast("Backend", BrokenBackend(backend, "gvn", invalid=True))
    with closing(Examiner(typed, broken, tmp_path)) as examiner:
        verdict = examiner.examine("function(gvn)")
        assert (verdict.kind, verdict.detail) == ("invalid", "a use without a definition")
        assert examiner.executed == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [("int main(void) { for (;;); }", "2 s"), ("int main(void) { __builtin_trap(); }", "signal")],
)
def test_a_program_that_does_not_run_is_no_subject(
    text: str, why: str, compiler: Compiler, backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "odd.c").write_text(text)
    subject = compile_subject("odd", [tmp_path / "odd.c"], compiler, "plain")
    with pytest.raises(NotRunnableError, match=why):
        Examiner(subject, backend, tmp_path)
