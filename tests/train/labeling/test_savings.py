"""The columns of figure 4.5, by hand."""

from __future__ import annotations

from planish.train.labeling.run import Saving, summarize

EFFECTS = [Saving("a", 10, 8), Saving("a", 20, 20), Saving("b", 30, 33), Saving("b", 40, 36)]


def test_the_columns() -> None:
    made = summarize(EFFECTS)

    assert (made.functions, made.improved, made.regressed, made.saved, made.lost) == (4, 2, 1, 6, 3)
    assert made.overall == 0.03
    assert made.low <= made.overall <= made.high


def test_the_backup_takes_back_what_regressed() -> None:
    made = summarize(EFFECTS, backup=True)

    assert (made.improved, made.regressed, made.saved, made.lost) == (2, 0, 6, 0)
    assert made.overall == 0.06


def test_packages_that_gain_alike_leave_no_doubt() -> None:
    made = summarize([Saving(str(package), 100, 97) for package in range(9)])

    assert made.low == made.high == made.overall == 0.03


def test_nothing_has_no_gain() -> None:
    made = summarize([])

    assert (made.functions, made.overall, made.low, made.high) == (0, 0.0, 0.0, 0.0)
