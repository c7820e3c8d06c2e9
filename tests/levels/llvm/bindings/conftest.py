"""The back ends of this machine."""

import os
import shutil

import pytest

from planish.levels.llvm.bindings.libraries import available, open_bindings
from planish.levels.llvm.bindings.protocol import Bindings

ALL = ("libllvm", "llvmlite", "llvmlite-reduced")
WHOLE = ALL[:2]


def lacking(reason: str) -> None:
    """Skip the test; where everything should be installed, fail it."""
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def opened(name: str) -> Bindings:
    if name == "libllvm" and name not in available():
        lacking("libLLVM is not installed: apt-get install libllvm22")
    return open_bindings(name)


@pytest.fixture(params=ALL)
def bindings(request: pytest.FixtureRequest) -> Bindings:
    """Return each back end in turn."""
    return opened(request.param)


@pytest.fixture(params=WHOLE)
def whole(request: pytest.FixtureRequest) -> Bindings:
    """Return each back end that runs every pass in turn."""
    return opened(request.param)


@pytest.fixture
def libllvm() -> Bindings:
    """Return LLVM's own library."""
    return opened("libllvm")


@pytest.fixture
def opt(libllvm: Bindings) -> str:
    """Return the path of the `opt` of LLVM's own library."""
    major = libllvm.version.partition(".")[0]
    path = shutil.which(f"opt-{major}")
    if path is None:
        lacking(f"opt is not installed: apt-get install llvm-{major}")
    assert path
    return path
