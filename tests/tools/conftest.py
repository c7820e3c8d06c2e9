"""Parts that the tests of soundness need, and a machine may lack."""

import os
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.clang import Compiler, find_compiler
from planish.train.corpus.programs import find_csmith
from soundness.subject import Subject, samples


def _lacking(reason: str) -> None:
    """Skip the test; where everything should be installed, fail it."""
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


@pytest.fixture(scope="session")
def bindings() -> Bindings:
    """Return a back end that runs every textual pipeline."""
    found = open_bindings()
    if not found.full:
        _lacking("no LLVM here runs every pass: apt-get install libllvm22")
    return found


@pytest.fixture(scope="session")
def compiler(bindings: Bindings) -> Compiler:
    """Return a compiler whose IR the back end reads."""
    try:
        return find_compiler(int(bindings.version.partition(".")[0]))
    except PlanishError as error:
        _lacking(str(error))
        raise


@pytest.fixture(scope="session")
def typed(compiler: Compiler) -> Subject:
    """Return the small programs as clang -Oz gives them to its passes."""
    return samples(compiler, "typed")


@pytest.fixture(scope="session")
def csmith() -> tuple[str, Path]:
    """Return the generator of random programs, and its headers."""
    try:
        return find_csmith()
    except PlanishError as error:
        _lacking(str(error))
        raise
