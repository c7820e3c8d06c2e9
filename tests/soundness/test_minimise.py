"""Short lists that still fail."""

from hypothesis import given
from hypothesis import strategies as st

from soundness.minimise import minimised

LISTS = st.lists(st.sampled_from("abcdefgh"), max_size=20)


def holds(passes: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    rest = iter(passes)
    return all(one in rest for one in wanted)


@given(LISTS, LISTS, LISTS)
def test_only_the_passes_to_blame_are_left(before: list[str], between: list[str], behind: list[str]) -> None:
    passes = [*before, "X", *between, "Y", *behind]
    assert minimised(passes, lambda these: holds(these, ("X", "Y"))) == ("X", "Y")


@given(LISTS, st.sets(st.integers(0, 20)))
def test_no_single_pass_can_be_dropped_whatever_fails(passes: list[str], lengths: set[int]) -> None:
    def fails(these: tuple[str, ...]) -> bool:
        return these == tuple(passes) or len(these) in lengths

    short = minimised(passes, fails)
    assert fails(short)
    assert holds(tuple(passes), short)
    assert not any(fails(short[:place] + short[place + 1 :]) for place in range(len(short)))
