"""A few disturbances of each quick kind; `make faults` has a thousand."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from faults.disturb import KINDS
from faults.running import Tally

FEW = {"kills": 4, "signals": 4, "damage": 40}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FEW)
def test_nothing_is_lost_wrong_or_left_over(tmp_path: Path, kind: str) -> None:
    tally, (disturb, _) = Tally(), KINDS[kind]
    with closing(disturb(tmp_path, random.Random(7))) as parts:
        while tally.events < FEW[kind]:
            tally.add(next(parts))
    assert tally.clean, "\n".join(tally.said)
