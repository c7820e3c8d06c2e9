"""The small programs mean one thing, whoever compiles them."""

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from planish.levels.llvm.backend import Backend
from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.execution import find_linker
from soundness.examiner import Examiner
from soundness.subject import SAMPLES, Form, samples


@pytest.fixture(scope="session")
def by_others(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Give what this machine's compiler makes of them, optimised."""
    program = tmp_path_factory.mktemp("samples") / "samples"
    sources = map(str, sorted(SAMPLES.glob("*.c")))
    subprocess.run([*find_linker(), "-O2", "-w", *sources, "-o", str(program), "-lm"], check=True)
    return subprocess.run([program], check=True, capture_output=True).stdout


@pytest.mark.parametrize("form", ["size", "typed", "plain"])
def test_the_unoptimised_programs_answer_as_those_of_another_compiler(
    form: Form, by_others: bytes, compiler: Compiler, backend: Backend, tmp_path: Path
) -> None:
    with closing(Examiner(samples(compiler, form), backend, tmp_path)) as examiner:
        assert examiner.expected.code == 0
        assert examiner.expected.output == by_others


def test_the_forms_differ_in_what_the_passes_may_use(compiler: Compiler) -> None:
    texts = {form: "".join(samples(compiler, form).modules) for form in ("size", "typed", "plain")}
    assert [("minsize" in text, "!tbaa" in text) for text in texts.values()] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    assert not any("optnone" in text for text in texts.values())
