"""What memory makes of a nest is reckoned with the target's caches."""

import pytest

from planish.core import Cache, Machine, Target
from planish.loops.lang.parse import parse
from planish.loops.space.facts import Facts
from planish.loops.space.memory import streamed

WIDE = frozenset({"x86-avx512"})
ROW = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 1, "n": 512, "k": 1024})


def machine(second: int) -> Machine:
    return Machine(64, 32, (Cache(1, 32 << 10), Cache(2, second)))


@pytest.mark.parametrize(("second", "axis"), [(1 << 20, "k"), (4 << 20, None)])
def test_a_matrix_is_streamed_where_it_does_not_fit_the_second_cache(second: int, axis: str | None) -> None:
    assert streamed(Facts.of(ROW, Target("", WIDE, machine=machine(second))), "n") == axis


def test_a_target_that_does_not_tell_has_usual_caches() -> None:
    assert streamed(Facts.of(ROW, Target("", WIDE)), "n") == "k"
