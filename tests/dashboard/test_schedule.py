"""How often a store is polled, and a section of a live page is rendered."""

import pytest

from planish.dashboard.live import Section, poll_pause

SHARE = 0.01


def pauses(*costs: float, views: int = 1, before: int = 0) -> list[float]:
    """Return the seconds from each rendering, of so many seconds, until the next one is due."""
    section, found, now = Section(renderings=before), list[float](), 100.0
    for cost in costs:
        section.schedule(now, cost, SHARE, views)
        found.append(section.due - now)
        now = section.due
    return found


@pytest.mark.parametrize(
    ("costs", "pause"), [([0.1], 0.4), ([0.001, 0.05, 0.001], 0.4), ([0.008, 0.01, 0.009], 2.0)]
)
def test_one_slow_poll_delays_nothing(costs: list[float], pause: float) -> None:
    assert poll_pause(costs) == pytest.approx(pause)


def test_what_loads_code_delays_nothing() -> None:
    assert pauses(0.2, 0.002, 0.002) == pytest.approx([0.4, 0.4, 0.4])


def test_a_section_takes_its_share() -> None:
    assert pauses(0.01, 0.01, 0.05, 0.05, 0.05)[2:] == pytest.approx([1.0, 1.0, 5.0])
    assert pauses(0.02, 0.02, 0.02, views=3)[2] == pytest.approx(6.0)


def test_one_slow_rendering_delays_nothing() -> None:
    assert pauses(0.001, 0.001, 0.001, 0.15, 0.001)[3:] == pytest.approx([0.4, 0.4])


def test_what_is_always_slow_is_rendered_all_the_same() -> None:
    assert pauses(3.0, 3.0, 3.0)[2] == pytest.approx(20.0)


def test_a_section_that_other_pages_had_takes_its_share_from_the_first_rendering() -> None:
    assert pauses(0.02, 0.02, before=5) == pytest.approx([2.0, 2.0])
