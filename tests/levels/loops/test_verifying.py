"""Verification refuses kernels that are wrong at one point, and passes right ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from threadpoolctl import threadpool_info, threadpool_limits

from amounts import examples
from levels.loops.mutants import mutants, some_mutants
from levels.loops.random_programs import programs
from planish.core import Candidate, Failed, Measured, ProgramError, Stage, Task
from planish.levels.loops import evaluator
from planish.levels.loops.backends import compile_with, kernel_of, schedule_of, this_machine, tree_of
from planish.levels.loops.evaluator import (
    KEPT_SEED,
    SEARCH_SEED,
    Called,
    LoopsEvaluator,
    Verifier,
    final_verifier,
    search_verifier,
    verify_again,
)
from planish.levels.loops.ir.tree import Loop, LoopTree, Node
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Const, Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.cases import choose_cases
from planish.levels.loops.reference.mutations import (
    Corrupted,
    LastOfEqual,
    Mutation,
    WrongInit,
    list_mutations,
)
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Pack, Reorder, Split, Vectorize
from planish.levels.loops.testing.interpreter import TreeFault, interpret
from planish.levels.loops.workloads import matmul
from planish.measure import Clocks
from planish.measure.executors import InlineExecutor

LEVEL = LoopsLevel()
HIDING = [
    ("O[] min= abs(X[a,c]) * exp(min(Y[c,a], 2)) * exp(min(Z[b,a], 2))", {"a": 4, "b": 5, "c": 7}),
    ("O[] += X[b,c] * Y[d,a]; ZZ[] = relu(O[])", {"a": 5, "b": 4, "c": 3, "d": 3}),
    ("O[] += X[a] * Y[a,b]; ZZ[] = min(O[], 2)", {"a": 9, "b": 7}),
    ("O[] *= tanh(X[a,b])", {"a": 9, "b": 7}),
    ("O[a] *= X[a,b] * relu(Y[b])", {"a": 3, "b": 33}),
    ("O[] max= X[a,b,c]", {"a": 5, "b": 5, "c": 7}),
    ("O[b] max= log(abs(X[b,c,a]) + 0.5)", {"a": 9, "b": 2, "c": 5}),
    ("O[a] += X[a,b] * Y[b]; Z[a] = tanh(O[a])", {"a": 4, "b": 50}),
    ("O[a] = log(X[a] - Y[a]) + sqrt(Y[a] - Z[a])", {"a": 30}),
    ("O[a,b] = max(X[a,b], 1.5) + min(Y[a], -2) + max(relu(X[b,a]) - 1, 0)", {"a": 6, "b": 6}),
    ("T[a] += X[a,b]; U[a] = exp(T[a]); S[] += U[a]; O[a] = U[a] / S[]", {"a": 6, "b": 20}),
]


def computed(tree: LoopTree, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Execute a tree; wrong ones may well overflow."""
    with np.errstate(all="ignore"):
        return interpret(tree, inputs)


class Interpreted:
    """A tree, executed point by point on a verifier's arrays."""

    def __init__(self, tree: LoopTree, verifier: Verifier) -> None:
        self._tree, self._verifier = tree, verifier

    def prepare(self) -> None:
        pass

    def poison(self, byte: int = 0xFF) -> None:
        pass

    def repeat(self, times: int) -> None:
        assert times == 1
        for name, flat in computed(self._tree, self._verifier.inputs).items():
            array = self._verifier.outputs[name]
            array[...] = flat.reshape(array.shape)


def differ(program: Program, tree: LoopTree, wrong: LoopTree) -> bool:
    """Return whether two trees compute different things of numbers that were made for no purpose."""
    for seed in range(8):
        generator = np.random.default_rng(seed)
        low, high = [(-1.0, 1.0), (0.2, 1.0), (-4.0, 4.0), (1.0, 9.0), (-1.0, -0.1)][seed % 5]
        inputs = {n: generator.uniform(low, high, program.type[n].shape) for n in program.inputs}
        one, other = computed(tree, inputs), computed(wrong, inputs)
        if any(not np.allclose(one[n], other[n], rtol=1e-3, atol=1e-3, equal_nan=True) for n in one):
            return True
    return False


def refused(
    program: Program, tree: LoopTree, chosen: list[tuple[str, LoopTree]]
) -> tuple[list[str], list[str]]:
    """Return the kinds of wrong trees that verification refuses, and of those that it passes."""
    verifier, found = search_verifier(program), (list[str](), list[str]())
    assert verifier.wrong(Interpreted(tree, verifier)) is None
    for kind, wrong in chosen:
        try:
            if differ(program, tree, wrong):
                found[verifier.wrong(Interpreted(wrong, verifier)) is None].append(kind)
        except TreeFault:  # it leaves a buffer
            continue
    return found


@pytest.mark.slow(after=6)
@pytest.mark.parametrize(("text", "sizes"), HIDING)
def test_kernels_wrong_in_one_place_are_refused(text: str, sizes: dict[str, int]) -> None:
    program = parse(text, sizes)
    schedule = TemplateSpace(program, this_machine(1)).sample(np.random.default_rng(1))
    count = 0
    for candidate in (Candidate(), schedule):
        tree = tree_of(program, candidate)
        caught, passed = refused(program, tree, some_mutants(tree, examples(8), 0))
        assert not passed
        count += len(caught)
    assert count >= 2


@pytest.mark.parametrize(("text", "sizes"), HIDING)
def test_the_sets_show_the_mistakes_that_they_are_chosen_by(text: str, sizes: dict[str, int]) -> None:
    program = parse(text, sizes)
    shown = frozenset[Mutation]().union(*(case.shown for case in choose_cases(program, SEARCH_SEED)))
    mutations = frozenset(list_mutations(program, SEARCH_SEED))
    assert {type(mutation) for mutation in shown} == {type(mutation) for mutation in mutations}
    # What is added to all of T, or multiplies all of U, is divided out again.
    same = WrongInit | Corrupted if "U[a] / S[]" in text else LastOfEqual
    assert len([mutation for mutation in mutations - shown if not isinstance(mutation, same)]) <= 1


@pytest.mark.parametrize(
    ("text", "number", "other"),
    [
        ("O[y] max= pad(I[y + r - 1], {})", "-inf", "0"),  # as some pooling does
        ("O[y] min= pad(I[y + r - 1], {})", "inf", "0"),
        ("O[y] min= -pad(I[y + r - 1], {})", "-inf", "0"),
    ],
)
def test_what_is_padded_with_another_number_is_refused(text: str, number: str, other: str) -> None:
    sizes = {"y": 120, "r": 5}  # windows of one sign are in the midst, but hardly at the edges
    verifier = search_verifier(parse(text.format(number), sizes))
    for pad, right in ((number, True), (other, False)):
        tree = tree_of(parse(text.format(pad), sizes), Candidate())
        assert (verifier.wrong(Interpreted(tree, verifier)) is None) is right


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_keeps_exp_from_overflow_must_be_right(dtype: str) -> None:
    text = "M[b] max= X[b,i]; E[b,i] = exp(X[b,i] - M[b]); S[b] += E[b,i]; O[b,i] = E[b,i] / S[b]"
    verifier = search_verifier(parse(text, {"b": 9, "i": 11}, dtype=dtype))

    def softmax(looked_at: int) -> None:
        x = verifier.inputs["X"]
        with np.errstate(all="ignore"):
            e = np.exp(x - x[:, :looked_at].max(1, keepdims=True))
            np.divide(e, e.sum(1, keepdims=True), out=verifier.outputs["O"])

    assert verifier.wrong(Called(lambda: lambda: softmax(11))) is None
    assert verifier.wrong(Called(lambda: lambda: softmax(10)))


@pytest.mark.parametrize("reduce", ["max", "min", "+", "*"])
def test_reductions_that_start_elsewhere_are_refused(reduce: str) -> None:
    program = parse(f"O[a] {reduce}= X[a,b] * abs(Y[b]); Z[a] = exp(O[a])", {"a": 2, "b": 9})
    tree = tree_of(program, Candidate())
    wrong = [(kind, tree) for kind, tree in mutants(tree) if kind == "starts elsewhere"]
    assert refused(program, tree, wrong) == (["starts elsewhere"], [])


@pytest.mark.slow
def test_a_packed_buffer_that_does_not_move_is_refused() -> None:
    text = "O[] min= abs(X[a,c]) * exp(min(Y[c,a,d],2)) * exp(min(Z[b,a],2))"
    program = parse(text, {"a": 4, "b": 19, "c": 37, "d": 1})
    steps = Vectorize("b"), Split("b", 8), Reorder(("a", "c", "b:8", "b")), Pack("Z", "root")
    tree = tree_of(program, Candidate(steps))
    stuck = [(kind, wrong) for kind, wrong in mutants(tree) if kind == "reads the same again"][::3]
    caught, passed = refused(program, tree, stuck)
    assert len(caught) >= 3
    assert not passed


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_relu_hides_half_the_time_is_refused(dtype: str) -> None:
    sizes = {"a": 21, "b": 16, "c": 7, "d": 7, "e": 11}
    program = parse("O[] += X[b,c] * Y[d,e,a]; ZZ[] = relu(O[])", sizes, dtype=dtype)
    for seed in range(10):
        verifier = Verifier(program, choose_cases(program, seed))

        def wrong(verifier: Verifier = verifier) -> None:
            x, y = verifier.inputs["X"], verifier.inputs["Y"]
            again = x[:, [0, 1, 2, 3, 4, 5, 5]]
            verifier.outputs["ZZ"][...] = max(again.sum(dtype=float) * y.sum(dtype=float), 0.0)

        assert verifier.wrong(Called(lambda wrong=wrong: wrong))


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(programs(points=200))
def test_right_kernels_pass_on_every_set(program: Program) -> None:
    tree = tree_of(program, Candidate())
    try:
        verifier = final_verifier(program)
    except ProgramError as error:
        assert "NaN or infinite" in error.message  # noqa: PT017
        return
    assert verifier.wrong(Interpreted(tree, verifier)) is None
    arrays = {**verifier.inputs, **verifier.outputs}
    assert verifier.wrong(Called(lambda: numpy_callable(program, arrays))) is None


def test_what_no_inputs_can_tell_is_refused_at_once() -> None:
    program = parse("O[i] = sqrt(-1 - abs(A[i]))", {"i": 7})
    with pytest.raises(ProgramError, match="O is NaN or infinite on all inputs that were tried"):
        search_verifier(program)


def test_inputs_are_found_on_which_the_reference_is_finite() -> None:
    for text in ("O[] += log(A[i] - B[i])", "O[] += exp(exp(10 * A[i]))", "O[] += sqrt(-A[i]) / (B[i] - 1)"):
        for case in choose_cases(parse(text, {"i": 9}), 0):
            assert np.isfinite(case.outputs["O"]), text


def test_the_set_for_what_is_kept_is_another_one() -> None:
    for text in ("C[m,n] += A[m,k] * B[k,n]", "C[m] max= relu(A[m,k])"):
        program = parse(text, {"m": 5, "n": 6, "k": 7} if "n" in text else {"m": 5, "k": 7})
        searched, kept = choose_cases(program, SEARCH_SEED), choose_cases(program, KEPT_SEED, least=1)
        assert len(searched) >= 2
        assert len(kept) >= 1
        arrays = [case.inputs["A"].tobytes() for case in (*searched, *kept)]
        assert len(set(arrays)) == len(arrays)


def test_elements_that_are_not_written_show() -> None:
    program = parse("O[i] = relu(A[i])", {"i": 20})
    verifier = search_verifier(program)

    def all_but_one() -> None:
        np.maximum(verifier.inputs["A"][:-1], 0, out=verifier.outputs["O"][:-1])

    assert "O[19] is nan, not" in (verifier.wrong(Called(lambda: all_but_one)) or "")


def unwritten(node: Node, buffer: str) -> Node:
    """Let numbers that are written to a buffer be what is there already."""
    if isinstance(node, Loop):
        return Loop(node.axis, node.step, tuple([unwritten(n, buffer) for n in node.body]), node.kind)
    hit = node.target.buffer == buffer and isinstance(node.value, Const)
    return replace(node, value=node.target) if hit else node


def test_kernels_that_leave_their_arrays_are_refused() -> None:
    program = parse("O[i] = relu(A[i])", {"i": 20})
    verifier = search_verifier(program)

    def leaves(array: Any) -> None:
        beside = np.lib.stride_tricks.as_strided(array, (21,), writeable=True)
        np.maximum(verifier.inputs["A"], 0, out=verifier.outputs["O"])
        beside[20] = beside[0]

    for name, array in (("O", verifier.outputs["O"]), ("A", verifier.inputs["A"])):
        wrong = verifier.wrong(Called(lambda array=array: lambda: leaves(array)))
        assert (wrong or "").startswith(f"memory beside {name} is written")


def test_what_is_filled_too_late_ahead_of_time_shows() -> None:
    """The ahead part runs once before the first call: a second run would find what the first one left."""
    program, backend = parse("O[i] = A[i] + i", {"i": 20}), this_machine(1).toolchain["backend"]
    tree = tree_of(program, Candidate())
    late = replace(tree, ahead=tree.ahead[::-1])
    for each, right in ((tree, True), (late, False)):
        assert (verify_again(Kernel(program, each, compile_with(backend, each))) is None) is right


def test_memory_that_is_not_written_shows_where_it_is_compared() -> None:
    program = parse("O[y] += where(0 < pad(I[y + r - 30], 0), 1, 0) * W[r]", {"y": 100, "r": 61})
    tree = tree_of(program, Candidate())
    wrong = replace(tree, body=tuple([unwritten(node, "I.padded") for node in tree.body]))
    assert wrong != tree
    for each, right in ((tree, True), (wrong, False)):
        kernel = Kernel(program, each, compile_with(this_machine(1).toolchain["backend"], each))
        assert (verify_again(kernel) is None) is right


def test_what_is_left_from_the_run_before_shows() -> None:
    program = matmul(4, 5, 6)
    verifier, packed = search_verifier(program), dict[str, Any]()

    def packs_once() -> None:
        packed.setdefault("B", verifier.inputs["B"].copy())
        np.matmul(verifier.inputs["A"], packed["B"], out=verifier.outputs["C"])

    assert (verifier.wrong(Called(lambda: packs_once)) or "").startswith("C[")


def test_constants_are_packed_anew_for_each_set() -> None:
    program = matmul(16, 16, 16).with_constants(["B"])
    target = this_machine(1)
    candidate = Candidate((Vectorize("n"), Pack("B", "root", ahead=True)))
    tree = lower(schedule_of(program, candidate))
    assert tree.ahead
    assert verify_again(kernel_of(program, candidate, target, tree)) is None


def no_clock(stage: Stage) -> AbstractContextManager[None]:
    del stage
    return nullcontext()


def test_what_is_right_on_the_search_s_inputs_alone_is_not_kept() -> None:
    program, target = matmul(4, 5, 6), this_machine(1)
    known = {case.inputs["A"].tobytes() for case in choose_cases(program, SEARCH_SEED)}

    def knows_some(_: Program, arrays: Mapping[str, Any]) -> Callable[[], object]:
        def call() -> None:
            np.matmul(arrays["A"], arrays["B"], out=arrays["C"])
            arrays["C"][2, 3] *= 1 if arrays["A"].tobytes() in known else 2

        return call

    task = Task(program, target, (LEVEL.objectives["time_s"],), LEVEL.version)
    searched = LoopsEvaluator(task.program, task.target, library=knows_some).evaluate(
        LEVEL.baseline(task), no_clock
    )
    final = LoopsEvaluator(task.program, task.target, final=True, library=knows_some)
    kept = final.evaluate(LEVEL.baseline(task), no_clock)
    assert isinstance(searched, Measured)
    assert isinstance(kept, Failed)
    assert (kept.stage, kept.reason) == ("verify", "wrong answer")
    assert "C[2, 3] is " in kept.detail


@pytest.mark.parametrize("final", [False, True])
def test_answers_that_go_wrong_while_they_are_timed_are_refused(*, final: bool) -> None:
    program, calls = matmul(4, 5, 6), itertools.count()

    def right_at_first(_: Program, arrays: Mapping[str, Any]) -> Callable[[], object]:
        def call() -> None:
            np.matmul(arrays["A"], arrays["B"], out=arrays["C"])
            arrays["C"][0, 0] += next(calls) > 50

        return call

    task = Task(program, this_machine(1), (LEVEL.objectives["time_s"],), LEVEL.version)
    made = LoopsEvaluator(task.program, task.target, final=final, library=right_at_first)
    outcome = made.evaluate(LEVEL.baseline(task), no_clock)
    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == ("verify", "wrong answer")
    assert outcome.detail.startswith("C[0, 0] is ")
    assert outcome.detail.endswith(", after the timed calls")


def test_inputs_that_are_timed_are_those_of_no_earlier_call() -> None:
    verifier, seen = search_verifier(matmul(4, 5, 6)), list[bytes]()

    def look() -> None:
        np.matmul(verifier.inputs["A"], verifier.inputs["B"], out=verifier.outputs["C"])
        seen.append(verifier.inputs["A"].tobytes())

    timed = Called(lambda: look)
    assert verifier.wrong_at_first(timed) is None
    verifier.begin_last(timed)
    assert verifier.inputs["A"].tobytes() not in seen
    assert (verifier.wrong_at_last() or "").startswith("C[")  # no call has written it
    timed.repeat(2)
    assert verifier.wrong_at_last() is None


def test_a_clock_that_stands_still_fails_the_candidate() -> None:
    still = Clocks(lambda: 7, lambda: 7)
    task = Task(parse("R[i] = A[i]", {"i": 1}), this_machine(1), (LEVEL.objectives["time_s"],), LEVEL.version)
    executor = InlineExecutor(LoopsEvaluator(task.program, task.target, clocks=still))
    executor.submit([Candidate()])
    (found,) = executor.results()
    assert isinstance(found.outcome, Failed)
    assert (found.outcome.stage, found.outcome.reason) == ("run", "ClockError")


def test_the_reference_uses_as_many_cores_as_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, threads of BLAS that wait for each other make the reference ten times slower."""
    seen: list[set[int]] = []

    def count_threads(program: Program) -> Verifier:
        seen.append({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})
        return search_verifier(program)

    monkeypatch.setattr(evaluator, "search_verifier", count_threads)
    task = Task(matmul(8, 8, 8), this_machine(1), (LEVEL.objectives["time_s"],), LEVEL.version)
    with threadpool_limits(2, user_api="blas"):
        LoopsEvaluator(task.program, task.target)
    assert seen == [{1}]
