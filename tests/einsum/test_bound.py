"""`planish.kernel` gives what is called with arrays of one kind, and refuses others."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import planish
from einsum.untuned import InTurn, choosing, untuned
from planish.core import PlanishError, ProgramError, usable_cores
from planish.einsum.backends import EinsumBackend, EinsumRequest
from planish.einsum.call import BoundEinsum, Dispatcher
from planish.einsum.planning import Planner
from planish.einsum.selection import Selection

A = np.arange(35, dtype=np.float32).reshape(7, 5)
B = np.arange(45, dtype=np.float32).reshape(5, 9)


def bind(planner: Planner, folder: Path, subscripts: str, *operands: NDArray[Any]) -> BoundEinsum:
    return Dispatcher(planner).bind(subscripts, operands, EinsumRequest(store=folder / "a.db"))


@pytest.fixture(params=["kernel", "matmul", "einsum"])
def bound(request: pytest.FixtureRequest, tmp_path: Path) -> BoundEinsum:
    """An einsum bound in each backend that there is."""
    return bind(choosing(request.param), tmp_path, "mk,kn->mn", A, B)


def test_it_computes_what_comes(bound: BoundEinsum) -> None:
    for factor in (1, 2, 3):
        np.testing.assert_array_equal(bound(factor * A, B), factor * (A @ B))
    assert bound.backend in repr(bound)


def test_it_can_be_pickled(bound: BoundEinsum) -> None:
    again = pickle.loads(pickle.dumps(bound))
    assert repr(again) == repr(bound)
    assert again.cores == bound.cores
    np.testing.assert_array_equal(again(A, B), bound(A, B))
    with pytest.raises(ProgramError):
        again(A, A)
    assert pickle.loads(pickle.dumps(again)).backend == bound.backend


@pytest.mark.parametrize(
    ("operands", "reason"),
    [
        ((), "0 operands given"),
        ((A,), "1 operands given"),
        ((A, B, B), "3 operands given"),
        ((A[:6], B), r"operand 0 is float32\[6, 5\]"),
        ((A, B.astype(np.float64)), r"operand 1 is float64\[5, 9\]"),
        ((A, B.astype(">f4")), "operand 1 is >f4"),
        ((np.asfortranarray(A), B), r"strides \[4, 28\]"),
        ((A, np.zeros((5, 18), np.float32)[:, ::2]), r"strides \[72, 8\]"),
        ((A, B.tolist()), "operand 1 is of class list"),
        ((A, np.ma.masked_array(B)), "operand 1 is a MaskedArray"),
        ((A, np.zeros((), np.float32)), "operand 1 is float32"),
        ((np.zeros((), np.float32), B), "operand 0 is float32"),
        ((A, None), "operand 1 is of class NoneType"),
    ],
)
def test_it_refuses_operands_of_another_kind(
    bound: BoundEinsum, operands: tuple[Any, ...], reason: str
) -> None:
    with pytest.raises(ProgramError, match=reason):
        bound(*operands)


def test_an_unaligned_operand_is_refused(bound: BoundEinsum) -> None:
    memory = np.zeros(B.nbytes + 1, np.uint8)[1:]
    with pytest.raises(ProgramError, match="operand 1"):
        bound(A, memory.view(np.float32).reshape(B.shape))


def test_results_and_operands_are_let_go(bound: BoundEinsum) -> None:
    """No reference is lost or kept, also where a call is refused."""
    a, calls = A.copy(), 100
    shared = (A.dtype, np.ndarray)  # which others let go meanwhile: what they collect is no leak
    for _ in range(3):
        bound(a, B)
    before = [sys.getrefcount(x) for x in (a, B, bound, *shared)]
    for _ in range(calls):
        result = bound(a, B)
        with pytest.raises(ProgramError):
            bound(a, a)
        assert sys.getrefcount(result) == 2
        del result
    after = [sys.getrefcount(x) for x in (a, B, bound, *shared)]
    own, others = np.split(np.subtract(after, before), [3])
    assert (own == 0).all()
    assert (np.abs(others) < calls // 2).all()


def test_a_result_owns_its_memory_and_can_be_written(bound: BoundEinsum) -> None:
    first, second = bound(A, B), bound(A, B)
    first[:] = 0
    np.testing.assert_array_equal(second, A @ B)
    assert first.flags.writeable


@pytest.mark.parametrize("cores", [1, 2])
def test_threads_may_call_at_once(cores: int, tmp_path: Path) -> None:
    """Long kernels let other threads run: a call that finds the memory in use takes another."""
    if cores > usable_cores():
        pytest.skip("the machine has one core")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, (160, 160)).astype(np.float32) for _ in range(2))
    bound_ = bind(choosing("kernel", cores), tmp_path, "mk,kn->mn", a, b)
    wrong: list[NDArray[Any]] = []

    def work(factor: int) -> None:
        for _ in range(30):
            got = bound_(factor * a, b)
            if not np.array_equal(got, factor * (a @ b)):
                wrong.append(got)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_kernels_cannot_compute_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="int64"):
        planish.kernel("ij,jk", np.ones((2, 2), np.int64), np.ones((2, 2), np.int64), store=tmp_path / "a.db")
    with pytest.raises(PlanishError, match="budget allows no tuning"):
        planish.kernel("ij,jk", A, B, budget_s=0, store=tmp_path / "a.db")


def test_scalars_and_turned_results_are_numpys(tmp_path: Path) -> None:
    def select(backends: Sequence[EinsumBackend], *_: object) -> Selection:
        return Selection(backends[-1], {})

    last = untuned(select)
    total = bind(last, tmp_path, "ij->", A)
    turned = bind(last, tmp_path, "ij,jk->ik", A.T.copy().T, B.T.copy().T)
    assert type(total(A)) is np.float32
    got = turned(A.T.copy().T, B.T.copy().T)
    np.testing.assert_array_equal(got, A @ B)
    assert got.strides == np.einsum("ij,jk->ik", A.T.copy().T, B.T.copy().T).strides


def test_a_bound_einsum_without_references_frees_its_kernel(tmp_path: Path) -> None:
    bound_ = bind(InTurn().planner, tmp_path, "mk,kn->mn", A, B)
    bound_(A, B)
    gone = weakref.ref(bound_)
    del bound_
    gc.collect()
    assert gone() is None
