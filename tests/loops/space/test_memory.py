"""What memory makes of a nest is reckoned with the target's caches."""

import pytest

from planish.core import Cache, Machine, Target
from planish.loops.lang.parse import parse
from planish.loops.space import TemplateSpace
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


def test_an_image_read_by_every_second_element_is_walked_by_vectors_where_lanes_can_be_permuted() -> None:
    image = "O[c,y,x] += pad(I[c,2*y+r-1,2*x+s-1],0) * W[c,r,s]"
    program = parse(image, {}, {"O": (64, 56, 56), "I": (64, 112, 112), "W": (64, 3, 3)})
    found = TemplateSpace(program, Target("", WIDE, machine=machine(1 << 20)))
    assert found.choices(found.start())["vector"] == "x"
    narrow = TemplateSpace(program, Target("", WIDE, machine=Machine(32, 16)))
    assert narrow.choices(narrow.start())["vector"] == "c"


@pytest.mark.parametrize(("second", "at"), [(1 << 20, "c"), (8 << 20, "none")])
def test_a_padded_image_beyond_the_second_cache_is_copied_in_parts(second: int, at: str) -> None:
    image = "O[c,y,x] += pad(I[c,y+r-1,x+s-1],0) * W[c,r,s]"
    program = parse(image, {}, {"O": (64, 112, 112), "I": (64, 112, 112), "W": (64, 3, 3)})
    found = TemplateSpace(program, Target("", WIDE, machine=machine(second)))
    assert found.choices(found.start())["pack I"] == at
