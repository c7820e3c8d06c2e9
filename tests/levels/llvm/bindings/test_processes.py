"""Back ends in processes that fork, die, and live long."""

import os

import pytest

from levels.llvm.bindings.processes import python
from levels.llvm.bindings.samples import SUM, TWO_ROUNDS
from planish.levels.llvm.bindings.protocol import Bindings

RUN = """
import sys
from planish.levels.llvm.bindings.libraries import open_bindings
module = open_bindings(sys.argv[1]).parse(sys.argv[2])
module.run(sys.argv[3])
print("survived")
"""

# 1,500 evaluations: each parses, clones, transforms, fails and closes. Printed is by how many bytes the last
# 1,000 made the process grow.
LIVE_LONG = """
import resource, sys
from contextlib import suppress
from pathlib import Path
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import IRError, PassError

bindings = open_bindings(sys.argv[1])

def evaluate():
    module = bindings.parse(sys.argv[2])
    copy = module.clone()
    copy.run("function(sroa<modify-cfg>,early-cse<memssa>)")
    copy.instructions(), copy.text(), copy.bitcode(), copy.verify()
    for wrong in (copy.run, bindings.parse):
        with suppress(PassError, IRError):
            wrong("nonsense")
    copy.close()
    module.close()

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

for _ in range(500):
    evaluate()
before = resident()
for _ in range(1000):
    evaluate()
print(resident() - before)
"""


def test_safe_pipelines_survive(whole: Bindings):
    fine = python(RUN, whole.name, TWO_ROUNDS, "function(instcombine<no-verify-fixpoint>,loop-mssa(licm))")
    assert (fine.returncode, fine.stdout) == (0, "survived\n")


@pytest.mark.parametrize(
    ("pipeline", "last_words"),
    [
        ("function(instcombine)", "did not reach a fixpoint"),
        ("function(mem2reg,licm)", "LICM requires MemorySSA"),
    ],
)
def test_some_pipelines_end_the_process(whole: Bindings, pipeline: str, last_words: str):
    """LLVM returns no error for these: the catalogue must keep them out, and work is done in processes."""
    dead = python(RUN, whole.name, TWO_ROUNDS, pipeline)
    assert dead.returncode != 0
    assert last_words in dead.stderr
    assert "survived" not in dead.stdout


def test_a_forked_process_works_on_modules_of_its_parent(bindings: Bindings):
    module = bindings.parse(SUM)
    before = module.text_bytes()
    child = os.fork()
    if not child:
        passed = False
        try:
            copy = module.clone()
            copy.run("default<Oz>")
            passed = copy.instructions() < module.instructions() and copy.text_bytes() < before
            copy.close()
            module.close()
        finally:
            os._exit(not passed)
    assert os.waitpid(child, 0)[1] == 0
    assert module.text_bytes() == before


def test_libllvm_leaks_nothing(libllvm: Bindings):
    assert libllvm.lifetime is None
    grown = python(LIVE_LONG, "libllvm", SUM)
    assert grown.returncode == 0, grown.stderr
    # A leak of one module an evaluation would be 10 MB.
    assert int(grown.stdout) < 2_000_000


@pytest.mark.parametrize("name", ["llvmlite", "llvmlite-reduced"])
def test_llvmlite_says_how_long_it_may_live(name: str):
    from planish.levels.llvm.bindings.libraries import open_bindings

    assert open_bindings(name).lifetime == 10_000
