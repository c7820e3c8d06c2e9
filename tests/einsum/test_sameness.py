"""`planish.einsum` gives what `numpy.einsum` gives, whatever it is called with."""

from functools import partial
from pathlib import Path

import pytest

from einsum.calls import call
from einsum.sameness import difference
from einsum.untuned import InTurn
from planish.einsum.call import Dispatcher
from planish.store import open_store

CALLS = 400
BATCHES = 4


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_calls_differ_in_nothing(batch: int, tmp_path: Path) -> None:
    """`fuzz_einsum.py` compares as many calls as one likes, in the same way."""
    turns = InTurn()
    einsum = Dispatcher(turns.planner)
    with open_store(tmp_path / "a.db") as store:
        for seed in range(batch, CALLS, BATCHES):
            found = difference(partial(einsum, store=store), seed)
            assert found is None, f"seed {seed}: {call(seed)}: {found}"
    assert turns.taken["kernel"] > CALLS // BATCHES // 8
    assert turns.taken["einsum"] > 0
