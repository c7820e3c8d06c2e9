"""`planish.einsum` gives what `numpy.einsum` gives, by a tuned kernel or by NumPy."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planish import einsum
from planish.core import Candidate, ProgramError
from planish.einsum import FallbackWarning, program_of
from planish.store import open_store

planish_einsum: Any = import_module("planish.einsum")

CASES = [
    ("mk,kn->mn", (7, 5), (5, 9)),
    ("mk,kn->nm", (7, 5), (5, 9)),
    ("mk,k->m", (7, 5), (5,)),
    ("bmk,bkn->bmn", (3, 4, 5), (3, 5, 6)),
    ("ij->ji", (4, 6), None),
    ("ij->i", (4, 6), None),
    ("ij->", (4, 6), None),
    ("ij,jk", (4, 6), (6, 3)),
    ("i,i", (33,), (33,)),
    ("i,j->ij", (5,), (18,)),
    ("abc,cd->abd", (2, 3, 4), (4, 5)),
]


@pytest.fixture(autouse=True)
def _forgetful() -> None:
    """Every test begins as a fresh process does."""
    planish_einsum._plans.clear()
    planish_einsum._said.clear()


def arrays(*shapes: tuple[int, ...] | None, dtype: str = "float32") -> list[NDArray[Any]]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes if shape is not None]


def _untuned(*_: object) -> Candidate:
    return Candidate()


def _yes(_: object) -> bool:
    return True


@pytest.mark.parametrize(("subscripts", "a", "b"), CASES)
def test_it_is_a_drop_in(
    subscripts: str,
    a: tuple[int, ...],
    b: tuple[int, ...] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel is used, be it faster than NumPy here or not."""
    operands = arrays(a, b)
    monkeypatch.setattr(planish_einsum, "_is_faster", _yes)
    monkeypatch.setattr(planish_einsum, "_tuned", _untuned)
    got = einsum(subscripts, *operands, store=tmp_path / "a.db")
    np.testing.assert_allclose(got, np.einsum(subscripts, *operands), rtol=1e-5, atol=1e-5)
    assert got.dtype == np.float32
    assert next(iter(planish_einsum._plans.values())).kernel is not None


def test_the_first_call_tunes_and_the_next_process_finds_it(tmp_path: Path) -> None:
    a, b = arrays((24, 16), (16, 32), dtype="float64")
    first = einsum("mk,kn->mn", a, b, budget_s=0.8, store=tmp_path / "a.db")
    np.testing.assert_allclose(first, a @ b)
    with open_store(tmp_path / "a.db") as store:
        assert store.runs()[0].trials > 0
    planish_einsum._plans.clear()
    again = einsum("mk,kn->mn", a, b, budget_s=0, store=tmp_path / "a.db")
    np.testing.assert_allclose(again, a @ b)


def test_new_values_give_new_results(tmp_path: Path) -> None:
    a, b = arrays((24, 16), (16, 32))
    einsum("mk,kn->mn", a, b, budget_s=0.8, store=tmp_path / "a.db")
    np.testing.assert_allclose(
        einsum("mk,kn->mn", 2 * a, b, store=tmp_path / "a.db"), 2 * a @ b, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("subscripts", "operands", "reason"),
    [
        ("ii->i", [np.ones((3, 3), np.float32)], "distinct letters"),
        ("...i->...", [np.ones((3, 3), np.float32)], "one letter for each dimension"),
        ("i,i->i", [np.ones(3, np.int64), np.ones(3, np.int64)], "int64"),
        ("i,i->i", [np.ones(3, np.float32), np.ones(3)], "float32, float64"),
        ("i->i", [np.ones(0, np.float32)], "not empty"),
    ],
)
def test_numpy_computes_what_is_not_supported_and_it_is_said_once(
    subscripts: str, operands: list[NDArray[Any]], reason: str, tmp_path: Path
) -> None:
    with pytest.warns(FallbackWarning, match=reason):
        got = einsum(subscripts, *operands, store=tmp_path / "a.db")
    np.testing.assert_array_equal(got, np.einsum(subscripts, *operands))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        einsum(subscripts, *operands, store=tmp_path / "a.db")


def test_without_a_budget_nothing_is_tuned(tmp_path: Path) -> None:
    a, b = arrays((8, 8), (8, 8))
    with pytest.warns(FallbackWarning, match="the budget allows no tuning"):
        einsum("mk,kn->mn", a, b, budget_s=0, store=tmp_path / "a.db")


def test_a_store_that_cannot_be_used_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database")
    a, b = arrays((8, 8), (8, 8))
    with pytest.warns(FallbackWarning, match="not a database"):
        np.testing.assert_allclose(einsum("mk,kn->mn", a, b, store=tmp_path / "a.db"), a @ b, rtol=1e-5)


def test_numpys_own_errors_come_through(tmp_path: Path) -> None:
    with pytest.warns(FallbackWarning), pytest.raises(ValueError, match="does not match"):
        einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)), store=tmp_path / "a.db")


def test_the_program_is_what_the_notation_says() -> None:
    a, b = arrays((7, 5), (5, 9))
    assert program_of("mk,kn->mn", [a, b]).text.startswith(
        "out[m, n] += (in0[m, k] * in1[k, n]) | k=5,m=7,n=9"
    )
    with pytest.raises(ProgramError, match="extents 5 and 6"):
        program_of("mk,kn->mn", [a, arrays((6, 9))[0]])
