"""`planish.einsum` tunes what NumPy is slow at, and leaves to NumPy what kernels cannot compute."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from einsum.untuned import InTurn, untuned
from levels.loops.mutants import mutants
from planish import einsum
from planish.core import Candidate, Measured, ProgramError, Target, Trial
from planish.einsum.backends import Contraction, EinsumBackend, contraction_of
from planish.einsum.call import Dispatcher, FallbackWarning
from planish.einsum.planning import (
    ATTEMPTS,
    COMPARISONS,
    NUMPY,
    Planner,
    best_known,
    default_schedule,
    is_final,
    read_history,
    task_of,
)
from planish.einsum.selection import Selection
from planish.levels.loops.backends import UseBackend, kernel_of, tree_of
from planish.levels.loops.runtime.dispatch import CompiledKernel
from planish.store import STARTED_BY, ResultRow, Run, open_store

Array = NDArray[Any]
CASES = [
    ("mk,kn->mn", (7, 5), (5, 9)),
    ("mk,kn->nm", (7, 5), (5, 9)),
    ("mk,k->m", (7, 5), (5,)),
    ("bmk,bkn->bmn", (3, 4, 5), (3, 5, 6)),
    ("bmk,bnk->bmn", (3, 4, 5), (3, 6, 5)),
    ("ij->i", (4, 6), None),
    ("ij->", (4, 6), None),
    ("ij,jk", (4, 6), (6, 3)),
    ("i,i", (33,), (33,)),
    ("i,j->ij", (5,), (18,)),
    ("abc,cd->abd", (2, 3, 4), (4, 5)),
    ("abc,cd->dab", (2, 3, 4), (4, 5)),
]


def arrays(*shapes: tuple[int, ...] | None, dtype: str = "float32") -> list[Array]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes if shape is not None]


def _run(operands: Sequence[Array], subscripts: str, backends: Sequence[EinsumBackend]) -> None:
    expected = np.einsum(subscripts, *operands)
    for backend in backends:
        got = backend.call(*operands)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=backend.name)
        assert got.dtype == expected.dtype, backend.name
        assert got.strides == expected.strides, backend.name


@pytest.mark.parametrize(("subscripts", "a", "b"), CASES)
def test_every_backend_gives_what_numpy_gives(
    subscripts: str,
    a: tuple[int, ...],
    b: tuple[int, ...] | None,
    tmp_path: Path,
) -> None:
    seen: set[str] = set()

    def each(backends: Sequence[EinsumBackend], _: object, given: Sequence[Array], __: float) -> Selection:
        _run(given, subscripts, backends)
        seen.update(backend.name for backend in backends)
        return Selection(backends[-1], {})

    operands = arrays(a, b)
    for given in (operands, [np.asfortranarray(o) for o in operands]):
        Dispatcher(untuned(each))(subscripts, *given, store=tmp_path / "a.db")
    assert {"einsum", "kernel"} <= seen


def test_the_first_call_tunes_and_the_next_process_takes_its_selection(tmp_path: Path) -> None:
    a, b = arrays((24, 16), (16, 32), dtype="float64")
    path = tmp_path / "a.db"
    call: Mapping[str, Any] = {}
    runs: list[Run] = []
    for budget_s in (1, 8, *(30,) * COMPARISONS):  # a loaded machine may need more, or say nothing at first
        if not is_final(call):
            got = Dispatcher()("mk,kn->mn", a, b, budget_s=budget_s, cores=1, store=path)
            np.testing.assert_allclose(got, a @ b)
            call, runs = selected(path, a, b)
    assert call["backend"] in ("kernel", "matmul", "einsum")
    assert sorted(run.trials > 0 for run in runs) == [False, True]
    np.testing.assert_allclose(Dispatcher()("mk,kn->mn", a, b, budget_s=0, cores=1, store=path), a @ b)
    assert selected(path, a, b) == (call, runs)
    assert all(run.options == {STARTED_BY: "einsum"} for run in runs)


def selected(path: Path, a: Array, b: Array) -> tuple[Mapping[str, Any], list[Run]]:
    """Read what was selected for a matrix multiplication, and the runs that there are."""
    task = task_of(contraction_of("mk,kn->mn", [a, b]), 1)
    with open_store(path) as store:
        return read_history(store, task).call, store.runs()


def test_what_cannot_be_tuned_in_time_is_guessed_and_tried_again_and_then_kept(tmp_path: Path) -> None:
    a, b = arrays((24, 16), (16, 32))
    call: Mapping[str, Any] = {}
    for attempt in range(1, ATTEMPTS + 1):
        np.testing.assert_allclose(
            Dispatcher()("mk,kn->mn", a, b, budget_s=1e-6, cores=1, store=tmp_path / "a.db"),
            a @ b,
            rtol=1e-5,
            atol=1e-5,
        )
        call, _ = selected(tmp_path / "a.db", a, b)
        assert (call["attempts"], call["kernels"]) == (attempt, 0)
        # Guesses were compared, of which nothing had been measured.
        assert "kernel" in [each["backend"] for each in call["compared"]]
    Dispatcher()("mk,kn->mn", a, b, cores=1, store=tmp_path / "a.db")
    assert selected(tmp_path / "a.db", a, b)[0] == call


@pytest.mark.parametrize("backend", ["kernel", "matmul", "einsum"])
def test_a_selection_in_the_store_is_taken_and_nothing_is_timed(backend: str, tmp_path: Path) -> None:
    a, b = arrays((24, 16), (16, 32))
    task = task_of(contraction_of("mk,kn->mn", [a, b]), 1)
    candidate = Candidate() if backend == "kernel" else NUMPY
    with open_store(tmp_path / "a.db") as store:
        run = store.begin_run(task, searcher="random", space="template", seed=0)
        store.save_result(
            run, [ResultRow(candidate, 1.0, {"call": {"backend": backend, "cores": 1, "kernels": 1}})]
        )
        store.finish_run(run)

    def none(*_: object) -> Selection:
        raise AssertionError("a backend is timed")

    got = Dispatcher(Planner(select=none))("mk,kn->mn", a, b, cores=1, store=tmp_path / "a.db")
    np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-5)


def test_new_values_give_new_results(tmp_path: Path) -> None:
    a, b = arrays((24, 16), (16, 32))
    einsum = Dispatcher(InTurn().planner)
    for factor in (1, 2, 3):
        got = einsum("mk,kn->mn", factor * a, b, store=tmp_path / "a.db")
        np.testing.assert_allclose(got, factor * a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("subscripts", "operands", "reason"),
    [
        ("ii->i", [np.ones((3, 3), np.float32)], "distinct letters"),
        ("...i->...", [np.ones((3, 3), np.float32)], "one letter for each dimension"),
        ("i,i->i", [np.ones(3, np.int64), np.ones(3, np.int64)], "int64"),
        ("i,i->i", [np.ones(3, np.float32), np.ones(3)], "float32, float64"),
        ("i->", [np.ones(0, np.float32)], "with elements"),
        ("ij->ji", [np.ones((2, 3))], "view"),
        ("ij->i", [np.ones((4, 6))[:, ::2]], "without gaps"),
        ("ij,k->i", [np.ones((4, 6)), np.ones(3)], "before it multiplies"),
    ],
)
def test_numpy_computes_what_kernels_cannot_in_silence(
    subscripts: str, operands: list[Array], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ProgramError) as caught:
        contraction_of(subscripts, operands)
    assert reason in f"{caught.value} {caught.value.hint}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = einsum(subscripts, *operands, store=tmp_path / "a.db")
    np.testing.assert_array_equal(got, np.einsum(subscripts, *operands))
    assert not (tmp_path / "a.db").exists()


def test_what_numpy_gives_as_a_view_is_a_view(tmp_path: Path) -> None:
    (a,) = arrays((4, 4))
    einsum("ii->i", a, store=tmp_path / "a.db")[:] = 7
    assert np.all(np.diag(a) == 7)


def test_without_a_budget_nothing_is_tuned_and_it_is_said_once(tmp_path: Path) -> None:
    a, b = arrays((8, 8), (8, 8))
    einsum = Dispatcher()
    with pytest.warns(FallbackWarning, match="the budget allows no tuning"):
        einsum("mk,kn->mn", a, b, budget_s=0, store=tmp_path / "a.db")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        einsum("mk,kn->mn", a, b, budget_s=0, store=tmp_path / "a.db")


def test_a_store_that_cannot_be_used_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database")
    a, b = arrays((8, 8), (8, 8))
    with pytest.warns(FallbackWarning, match="not a database"):
        np.testing.assert_allclose(Dispatcher()("mk,kn->mn", a, b, store=tmp_path / "a.db"), a @ b, rtol=1e-5)


def test_numpys_own_errors_come_through(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="could not be broadcast"):
        einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)), store=tmp_path / "a.db")


def test_while_one_thread_plans_the_others_are_given_numpys_answer(tmp_path: Path) -> None:
    a, b = arrays((8, 8), (8, 8))
    planning_, done = threading.Event(), threading.Event()

    def slow(backends: Sequence[EinsumBackend], *_: object) -> Selection:
        planning_.set()
        assert done.wait(30)
        return Selection(backends[0], {})

    einsum = Dispatcher(untuned(slow))
    first = threading.Thread(target=einsum, args=("mk,kn->mn", a, b), kwargs={"store": tmp_path / "a.db"})
    first.start()
    assert planning_.wait(30)
    np.testing.assert_array_equal(einsum("mk,kn->mn", a, b), np.einsum("mk,kn->mn", a, b))
    done.set()
    first.join()


def test_an_arrow_has_no_space_within(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="proper '->'"):
        einsum("ij- >i", np.ones((2, 3)), store=tmp_path / "a.db")


def test_the_program_is_what_the_notation_says() -> None:
    a, b = arrays((7, 5), (5, 9))
    written = "out[m, n] += (in0[m, k] * in1[k, n]) | k=5,m=7,n=9"
    assert contraction_of("mk,kn->mn", [a, b]).program.text.startswith(written)
    turned = contraction_of("mk,kn->mn", [np.asfortranarray(a), np.asfortranarray(b)])
    assert turned.program.text.startswith("out[n, m] += (in0[k, m] * in1[n, k]) | k=5,m=7,n=9")
    with pytest.raises(ProgramError, match="extents 5 and 6"):
        contraction_of("mk,kn->mn", [a, arrays((6, 9))[0]])


def test_the_default_schedule_is_timed_beside_the_best_of_the_search(tmp_path: Path) -> None:
    a, b = arrays((24, 16), (16, 32))
    task = task_of(contraction_of("mk,kn->mn", [a, b]), 1)
    guess = default_schedule(task)
    seen: list[Candidate | None] = []

    def look(backends: Sequence[EinsumBackend], *_: object) -> Selection:
        seen.extend(backend.candidate for backend in backends if backend.name == "kernel")
        return Selection(backends[0], {backends[0]: [1.0]})

    with open_store(tmp_path / "a.db") as store:
        run = store.begin_run(task, searcher="random", space="template", seed=0)
        measured = ((guess, 3e-6), (Candidate(), 1.5e-6), (guess.then(UseBackend("portable")), 1e-6))
        store.add_trials(
            run, [Trial(c, Measured({"time_s": s}), i, 0, {}, "", 0.0) for i, (c, s) in enumerate(measured)]
        )
        store.finish_run(run)
    Dispatcher(Planner(select=look))("mk,kn->mn", a, b, cores=1, store=tmp_path / "a.db")
    assert seen == [guess.then(UseBackend("portable")), Candidate()]
    with open_store(tmp_path / "a.db") as store:
        store.resume_run(run)
        store.add_trials(run, [Trial(guess, Measured({"time_s": 1.9e-6}), 3, 0, {}, "", 0.0)])
        assert best_known(task, store) == [*seen, guess]


def test_a_kernel_that_is_wrong_on_further_inputs_is_not_kept(tmp_path: Path) -> None:
    """What is fastest sums one product twice; the next fastest is taken."""
    a, b = arrays((24, 16), (16, 32))

    def compile_(contraction: Contraction, candidate: Candidate, target: Target) -> CompiledKernel:
        tree = tree_of(contraction.program, candidate)
        tree = tree if candidate.steps else dict(mutants(tree))["iterations repeated"]
        kernel = kernel_of(contraction.program, candidate, target, tree)
        return CompiledKernel(kernel, contraction.operands, contraction.result)

    def fastest_is_wrong(backends: Sequence[EinsumBackend], *_: object) -> Selection:
        wrong = next(backend for backend in backends if backend.candidate == Candidate())
        return Selection(wrong, {backend: [1.0] for backend in backends[::-1]})

    planner = Planner(
        known=lambda task, _: [Candidate(), default_schedule(task)], compile=compile_, select=fastest_is_wrong
    )
    with pytest.warns(RuntimeWarning, match="is wrong and not used: out"):
        got = Dispatcher(planner)("mk,kn->mn", a, b, cores=1, store=tmp_path / "a.db")
    np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-5)
