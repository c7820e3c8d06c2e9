"""What the tests of soundness need: a back end that runs every pass, and a compiler."""

import pytest

from planish.core import PlanishError
from planish.levels.llvm.backend import Backend, open_backend
from planish.levels.llvm.clang import Compiler, find_compiler
from soundness.needs import lacking
from soundness.subject import Subject, samples


@pytest.fixture(scope="session")
def backend() -> Backend:
    """Give a back end that runs every textual pipeline."""
    found = open_backend()
    if not found.full:
        lacking("no LLVM here runs every pass: apt-get install libllvm22")
    return found


@pytest.fixture(scope="session")
def compiler(backend: Backend) -> Compiler:
    """Give a compiler whose IR the back end reads."""
    try:
        return find_compiler(int(backend.version.partition(".")[0]))
    except PlanishError as error:
        lacking(str(error))
        raise


@pytest.fixture(scope="session")
def typed(compiler: Compiler) -> Subject:
    """Give the small programs as clang -Oz gives them to its passes."""
    return samples(compiler, "typed")
