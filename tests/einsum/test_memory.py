"""Memory of a process that computes many different einsums: it does not grow without end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WARM, MEASURED = 40, 60
MOST_KB = 60
"""For each kind of call. It is 30 here, 6 after some hundred more, and 170 where nothing is bounded."""

PROGRAM = """
import functools, gc, sys
sys.path.insert(0, {tests!r})
import numpy as np
from einsum.untuned import InTurn
from planish.einsum.call import Dispatcher, release_memory
from planish.levels.loops.codegen.x86 import assembler

# Reached early, so that few kinds show what thousands do.
einsum, assembler._ENCODED_MAX = Dispatcher(InTurn().planner, kinds_max=20), 2000

def resident():
    # What is kept of the last calls is not counted: it is as much after few as after many.
    assert len(einsum._backends) <= 20 and len(assembler._encoded) <= assembler._ENCODED_MAX
    einsum.clear()
    assembler._encoded.clear()
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and each.cache_info().maxsize is not None:
            each.cache_clear()
    gc.collect()
    release_memory()
    return 4 * int(open("/proc/self/statm").read().split()[1])

def call_of(number):
    m, n, k = 4 + number % 61, 3 + 7 * number % 67, 5 + 13 * number % 53
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    for _ in range(2):
        assert (einsum("mk,kn->mn", a, b, cores=1, store={store!r}) == k).all()

for number in range({warm}):
    call_of(number)
before = resident()
for number in range({warm}, {warm} + {measured}):
    call_of(number)
print((resident() - before) / {measured})
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="this system does not say how much is in use"
)
def test_memory_does_not_grow_with_the_kinds_of_calls(tmp_path: Path) -> None:
    tests, store = str(Path(__file__).parent.parent), str(tmp_path / "s.db")
    text = PROGRAM.format(tests=tests, store=store, warm=WARM, measured=MEASURED)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST_KB
