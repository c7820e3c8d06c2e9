"""The selection of a backend: by times that others did not disturb; in doubt it is NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from einsum.untuned import untuned
from planish.core import Candidate
from planish.einsum import planning
from planish.einsum.backends import EinsumBackend, contraction_of
from planish.einsum.call import SELECTIONS, Dispatcher
from planish.einsum.planning import COMPARISONS, read_history, record, stored_backend
from planish.einsum.selection import CallComparison, Selection, select, select_fastest
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.steps import Parallel
from planish.store import ResultRow, open_store

Array = NDArray[Any]
A = np.arange(384, dtype=np.float64).reshape(24, 16)
B = np.arange(512, dtype=np.float64).reshape(16, 32)
SUBSCRIPTS = "mk,kn->mn"
EINSUM, MATMUL = EinsumBackend("einsum", np.einsum), EinsumBackend("matmul", np.dot)
KERNEL, SHARED = (
    EinsumBackend("kernel", np.dot, 1, Candidate()),
    EinsumBackend("kernel", np.dot, 2, Candidate()),
)


def compared(
    kernel: float, numpys: float, *, by: EinsumBackend = KERNEL, delayed: float = 0.0, processor: float = 1.0
) -> CallComparison:
    """Compare a kernel with NumPy's multiplication, with some noise; processor time is a part of the time."""
    noise = [1.0, 1.02, 0.99, 1.01, 0.98, 1.0, 1.015, 0.985]
    wall = {by: [kernel * n for n in noise], MATMUL: [numpys * n for n in reversed(noise)]}
    own = {by: [processor * n for n in noise], MATMUL: noise[::-1]}
    return CallComparison(wall, own, delayed, by.cores == 1)


@pytest.mark.parametrize(("share", "backend"), [(0.5, KERNEL), (0.99, MATMUL), (1.0, MATMUL), (1.5, MATMUL)])
def test_a_kernel_is_taken_only_where_it_is_clearly_better(share: float, backend: EinsumBackend) -> None:
    found = select(compared(share, 1.0), {})
    assert (found.backend, found.conclusive) == (backend, True)


@pytest.mark.parametrize("share", [0.2, 5.0])
def test_a_disturbed_comparison_of_several_cores_says_nothing(share: float) -> None:
    found = select(compared(share, 1.0, by=SHARED, delayed=0.4), {})
    assert (found.backend, found.conclusive) == (MATMUL, False)
    found = select(compared(share, 1.0, by=SHARED), {}, before=0.4)
    assert (found.backend, found.conclusive) == (MATMUL, False)


@pytest.mark.parametrize(
    ("share", "backend", "conclusive"), [(0.5, KERNEL, True), (1.5, MATMUL, True), (0.99, MATMUL, False)]
)
def test_where_one_core_works_processor_time_decides_on_a_loaded_machine(
    share: float, backend: EinsumBackend, *, conclusive: bool
) -> None:
    for wall in (0.1, 10.0):
        found = select(compared(wall, 1.0, delayed=0.4, processor=share), {})
        assert (found.backend, found.conclusive) == (backend, conclusive)


@pytest.mark.parametrize(("share", "backend"), [(0.5, KERNEL), (0.96, MATMUL), (1.5, MATMUL)])
def test_on_a_loaded_machine_a_kernel_is_taken_provisionally_if_it_beats_the_best_of_numpys_threads(
    share: float, backend: EinsumBackend
) -> None:
    for wall in (0.1, 10.0):
        found = replace(compared(wall, 1.0, delayed=0.4, processor=share), one_core=False)
        assert (select(found, {}).backend, select(found, {}).conclusive) == (backend, False)


def test_the_fastest_of_what_is_timed_is_selected() -> None:
    contraction = contraction_of(SUBSCRIPTS, [A, B])
    found = select_fastest(
        [EinsumBackend("einsum", lambda *x: np.einsum(SUBSCRIPTS, *x)), MATMUL], contraction, [A, B], 0.01
    )
    assert found.backend.name in ("einsum", "matmul")
    slow = EinsumBackend("kernel", _slow, 1, Candidate())
    found = select_fastest([EINSUM_OF_ALL, MATMUL, slow], contraction, [A, B], 0.01)
    assert found.backend.name in ("einsum", "matmul")
    assert set(found.samples) == {EINSUM_OF_ALL, MATMUL, slow}


def _slow(a: Array, b: Array) -> Array:
    for _ in range(50):
        _ = a @ b
    return a @ b


EINSUM_OF_ALL = EinsumBackend("einsum", lambda *x: np.einsum(SUBSCRIPTS, *x))


class Disturbed:
    """Calls a dispatcher whose first selections are disturbed, so many times; then it is sure of a kernel.

    Attributes:
        selections: how many there were.
        now: the time by its clock, in seconds.
    """

    def __init__(self, times: int, folder: Path) -> None:
        self.selections, self.now, self._times = 0, 0.0, times
        planner = untuned(self._select, lambda _store, _task, found, _kernels, _history: found.conclusive)
        self.einsum = Dispatcher(planner, lambda: self.now)
        self.compute = partial(self.einsum, SUBSCRIPTS, A, B, cores=1, store=folder / "a.db")

    def _select(self, backends: Sequence[EinsumBackend], *_: object) -> Selection:
        self.selections += 1
        conclusive = self.selections > self._times
        name = "kernel" if conclusive else "matmul"
        backend = next(backend for backend in backends if backend.name == name)
        return Selection(backend, {backend: [1.0] for backend in backends}, conclusive=conclusive)


def test_after_a_disturbed_selection_a_later_call_selects_again(tmp_path: Path) -> None:
    caller = Disturbed(1, tmp_path)
    for _ in range(3):
        np.testing.assert_array_equal(caller.compute(), A @ B)
    assert caller.selections == 1
    caller.now = 1000.0
    for _ in range(3):
        np.testing.assert_array_equal(caller.compute(), A @ B)
    caller.now = 9000.0
    caller.compute()
    assert caller.selections == 2


def test_a_process_selects_again_only_so_often(tmp_path: Path) -> None:
    caller = Disturbed(10**6, tmp_path)
    for _ in range(50):
        caller.now += 1000.0
        np.testing.assert_array_equal(caller.compute(), A @ B)
    assert caller.selections == SELECTIONS


def test_until_then_numpy_gets_the_arguments_of_the_call(tmp_path: Path) -> None:
    caller = Disturbed(1, tmp_path)
    caller.compute()
    out = np.zeros((24, 32))
    assert caller.einsum(SUBSCRIPTS, A, B, out=out, cores=1) is out
    np.testing.assert_array_equal(out, A @ B)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(caller.einsum(SUBSCRIPTS, 2 * A, B, cores=1), 2 * A @ B)
    with pytest.raises(ValueError, match="could not be broadcast"):
        caller.einsum(SUBSCRIPTS, A, A, cores=1)
    assert caller.selections == 1


def test_until_then_machine_code_takes_the_calls(tmp_path: Path) -> None:
    caller = Disturbed(1, tmp_path)
    caller.compute()
    call = caller.einsum.calls[1]
    if type(call).__name__ != "builtin_function_or_method":
        pytest.skip("machine code takes no calls here")
    np.testing.assert_array_equal(call(SUBSCRIPTS, A, B), A @ B)


def test_another_process_does_not_take_a_disturbed_selection(tmp_path: Path) -> None:
    contraction = contraction_of(SUBSCRIPTS, [A, B])
    task = planning.task_of(contraction, 1)
    backends = [EINSUM_OF_ALL, MATMUL]
    disturbed = Selection(MATMUL, {backend: [1.0] for backend in backends}, conclusive=False)
    with open_store(tmp_path / "a.db") as store:
        run = store.begin_run(task, searcher="random", space="template", seed=0)
        store.finish_run(run)
        for attempt in range(1, COMPARISONS + 1):
            history = read_history(store, task)
            assert stored_backend(history, contraction, task, backends) is None
            assert record(store, task, disturbed, 1, history) is (attempt == COMPARISONS)
        assert stored_backend(read_history(store, task), contraction, task, backends) is MATMUL


def test_a_selection_leaves_the_users_own_result_as_it_is_and_considers_it_once(tmp_path: Path) -> None:
    contraction = contraction_of(SUBSCRIPTS, [A, B])
    task = planning.task_of(contraction, 1)
    steps = LoopsLevel().steps
    with open_store(tmp_path / "a.db") as store:
        run = store.begin_run(task, searcher="random", space="template", seed=0)
        for kernel, gain in ((Candidate(), 3.0), (Candidate((Parallel("m"),)), 4.0)):
            store.save_result(run, [ResultRow(kernel, gain, {"said": "by the user's run"})])
            store.finish_run(run, seconds={"search": 1.0})
            held = store.run(run), store.result_rows(run, steps)
            history = read_history(store, task)
            assert stored_backend(history, contraction, task, [MATMUL]) is None
            assert history.kernels == [kernel]
            assert record(store, task, Selection(MATMUL, {MATMUL: [1.0]}), 1, history)
            assert stored_backend(read_history(store, task), contraction, task, [MATMUL]) is MATMUL
            assert (store.run(run), store.result_rows(run, steps)) == held
            store.resume_run(run)
        assert len(store.runs()) == 2


@pytest.mark.parametrize(("loop", "backend"), [(0.3, EINSUM), (0.9, MATMUL), (20.0, MATMUL)])
def test_on_a_busy_machine_processor_time_shows_which_of_numpys_backends_is_the_better(
    loop: float, backend: EinsumBackend
) -> None:
    wall = {SHARED: [1.0], MATMUL: [50.0], EINSUM: [20.0]}
    processor = {SHARED: [1.0], MATMUL: [1.0], EINSUM: [loop]}
    found = select(CallComparison(wall, processor, 0.5, one_core=False), {})
    assert (found.backend, found.conclusive) == (backend, False)
