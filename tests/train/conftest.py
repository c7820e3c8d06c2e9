"""A C compiler, a display that records progress, and corpora of small C files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planish.core import TargetError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.clang import Compiler, find_compiler
from planish.train.corpus.build import BuildPlan, build_corpus
from planish.train.corpus.sources import Package, SourceFolder
from planish.train.corpus.unit import CorpusRecipe
from train.corpus.sources import Build, Recording, lacking


@pytest.fixture(scope="session")
def llvm() -> str:
    """Return the version of the LLVM in this process."""
    return open_bindings().version


@pytest.fixture(scope="session")
def compiler(llvm: str) -> Compiler:
    """Return a C compiler."""
    try:
        return find_compiler(int(llvm.partition(".")[0]))
    except TargetError as error:
        lacking(str(error))


@pytest.fixture
def display() -> Recording:
    return Recording()


@pytest.fixture
def build(compiler: Compiler, llvm: str, display: Recording) -> Build:
    """Return a function that builds a corpus of packages, or of folders."""

    def build(
        out: Path, *sources: Package | Path, jobs: int = 1, max_chars: int = 20_000
    ) -> Mapping[str, Any]:
        packages = [SourceFolder(s.name, s) if isinstance(s, Path) else s for s in sources]
        return build_corpus(out, BuildPlan(packages, CorpusRecipe(compiler, max_chars), llvm, jobs), display)

    return build
