"""What memory makes of a nest is reckoned with the target's caches."""

from dataclasses import replace

import pytest

from planish.core import Cache, Machine, Target
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.space.facts import Facts, streamed
from planish.levels.loops.space.template import TemplateSpace

WIDE = frozenset({"x86-avx512"})
ROW = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 1, "n": 512, "k": 1024})


def machine(second: int) -> Machine:
    return Machine(64, 32, (Cache(1, 32 << 10), Cache(2, second)))


@pytest.mark.parametrize(("second", "axis"), [(1 << 20, "k"), (4 << 20, None)])
def test_a_matrix_is_streamed_where_it_does_not_fit_the_second_cache(second: int, axis: str | None) -> None:
    assert streamed(Facts.of(ROW, Target("", WIDE, machine=machine(second))), "n") == axis


def test_a_target_that_does_not_tell_has_usual_caches() -> None:
    assert streamed(Facts.of(ROW, Target("", WIDE)), "n") == "k"


@pytest.mark.parametrize(("rows", "vector", "packed"), [(2048, "k", "none"), (64, "n", "ahead")])
def test_weights_that_are_used_once_are_read_in_many_sequences_where_they_come_from_memory(
    rows: int, vector: str, packed: str
) -> None:
    program = parse("C[n] += A[k] * W[n,k]", {"n": rows, "k": 512})
    program = replace(program, constants=frozenset({"W"}))
    space = TemplateSpace(program, Target("", WIDE, machine=machine(1 << 20)))
    chosen = space.choices(space.start())
    assert (chosen["vector"], chosen["pack W"]) == (vector, packed)
    if vector == "k":
        assert int(chosen["tile"].removeprefix("n=").split()[0]) >= 12


@pytest.mark.parametrize(("rows", "first"), [(256, "k"), (16, "x")])
def test_rows_of_a_large_result_that_are_pages_apart_are_written_in_sequence(rows: int, first: str) -> None:
    program = parse("O[k,x] += I[5*x+s] * W[k,s]", {"k": rows, "s": 10, "x": 3199}, {"I": (16004,)})
    space = TemplateSpace(program, Target("", WIDE, machine=machine(1 << 20)))
    chosen = space.choices(space.start())
    assert chosen["vector"] == "x"
    assert chosen["order"].startswith(first)


@pytest.mark.parametrize(
    ("text", "size", "third", "expected"),
    [
        ("C[m,n] += A[m,k] * B[k,n]", 4096, 32 << 20, "k:1024"),
        ("C[m,n] += A[m,k] * B[k,n]", 4096, 8 << 20, "k:256"),
        ("C[m,n] += A[m,k] * B[k,n]", 4096, 0, None),  # a machine without a third cache
        ("C[m,n] += A[m,k] * B[k,n]", 2048, 32 << 20, None),  # all of A stays
        ("C[b,m,n] += A[b,m,k] * B[b,k,n]", 512, 8 << 20, None),  # A of each b stays
    ],
)
def test_a_reduction_is_split_outside_all_else_where_a_matrix_read_again_does_not_stay_in_the_third_cache(
    text: str, size: int, third: int, expected: str | None
) -> None:
    caches = Cache(1, 32 << 10), Cache(2, 1 << 20), *([Cache(3, third)] if third else [])
    program = parse(text, dict.fromkeys("bmnk" if "b" in text else "mnk", size))
    space = TemplateSpace(program, Target("", WIDE, machine=Machine(64, 32, caches)))
    chosen = space.choices(space.start())
    assert chosen["reduce"] == (expected.removeprefix("k:") if expected else "none")
    assert (chosen["order"].split()[0] == expected) == (expected is not None)


def test_an_image_read_by_every_second_element_is_walked_by_vectors_where_lanes_can_be_permuted() -> None:
    image = "O[c,y,x] += pad(I[c,2*y+r-1,2*x+s-1],0) * W[c,r,s]"
    program = parse(image, {}, {"O": (64, 56, 56), "I": (64, 112, 112), "W": (64, 3, 3)})
    found = TemplateSpace(program, Target("", WIDE, machine=machine(1 << 20)))
    assert found.choices(found.start())["vector"] == "x"
    narrow = TemplateSpace(program, Target("", WIDE, machine=Machine(32, 16)))
    assert narrow.choices(narrow.start())["vector"] == "c"


@pytest.mark.parametrize(
    ("text", "sizes", "split"),
    [
        ("C[m,n] += A[m,k] * B[k,n]", (32, 1024, 1024), "64"),
        ("C[m,n] += A[m,k] * B[k,n]", (512, 1024, 1024), "none"),  # a copy pays
        ("C[m,n] += A[m,k] * B[k,n]", (32, 512, 512), "none"),  # B stays in the second cache
        ("C[m,n] += A[m,k] * B[k,n]", (32, 4096, 256), "none"),  # few rows
        ("C[b,m,n] += A[b,m,k] * B[b,k,n]", (32, 512, 512), "none"),  # B of each b stays
    ],
)
def test_a_reduction_is_split_outside_all_else_where_few_rows_read_a_matrix_beyond_the_second_cache(
    text: str, sizes: tuple[int, int, int], split: str
) -> None:
    program = parse(text, dict(zip("mnk", sizes, strict=True)) | ({"b": 16} if "b" in text else {}))
    space = TemplateSpace(program, Target("", WIDE, machine=machine(2 << 20)))
    chosen = space.choices(space.start())
    assert chosen["reduce"] == split
    assert (chosen["order"].split()[0] == f"k:{split}") == (split != "none")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("O[c,y,x] += pad(I[c,y+r-1,x+s-1],0) * W[c,r,s]", "c"),
        ("O[c,y,x] max= pad(I[c,y+r-1,x+s-1],0) * W[c,r,s]", "c"),
        ("O[y,x,c] += pad(I[y+r-1,x+s-1,c],0) * W[r,s,c]", "none"),  # windows of rows overlap
        ("O[c,y,x] += pad(I[k,y+r-1,x+s-1],0) * W[c,k,r,s]", "none"),  # each load serves several channels
    ],
)
def test_slices_of_a_padded_image_that_is_loaded_for_each_operation_are_copied_one_after_the_other(
    text: str, at: str
) -> None:
    program = parse(text, dict.fromkeys("cyx", 64) | {"r": 3, "s": 3} | ({"k": 64} if "k" in text else {}))
    found = TemplateSpace(program, Target("", WIDE, machine=machine(1 << 20)))
    assert found.choices(found.start())["pack I"] == at
