"""The interpreter: right on what can be computed by hand, and strict."""

from dataclasses import replace

import numpy as np
import pytest

from levels.loops.odd_trees import COPY, TREES, ZERO, A, N, Z, along, call, tree
from levels.loops.trees import buffers, integers, matmul, ref
from planish.levels.loops.ir.tree import Leaf, Loop, LoopTree
from planish.levels.loops.lang.program import Const
from planish.levels.loops.testing.interpreter import TreeFault, interpret


@pytest.mark.parametrize("order", [("m", "n", "k"), ("k", "n_4", "m_2", "m", "n"), ("m_3", "k", "m", "n")])
def test_matmul(order: tuple[str, ...]) -> None:
    kernel = matmul(7, 9, 5, order)
    arrays = integers(kernel)
    product = arrays["A"].reshape(7, 5) @ arrays["B"].reshape(5, 9)
    np.testing.assert_array_equal(interpret(kernel, arrays)["C"], product.ravel())


def test_iterations_follow_one_another() -> None:
    kernel = TREES["running sum"]
    arrays = integers(kernel)
    expected = np.concatenate([[0.0], np.cumsum(arrays["A"])])
    np.testing.assert_array_equal(interpret(kernel, arrays)["S"], expected)


def test_a_derived_axis_has_the_window_that_the_tile_needs() -> None:
    kernel = TREES["a window in tiles"]
    arrays = integers(kernel)
    expected = [arrays["A"][2 * y : 2 * y + 3].sum() for y in range(14)]
    np.testing.assert_array_equal(interpret(kernel, arrays)["Z"], expected)


def test_every_function() -> None:
    x = np.array([0.25, 1.0, 2.5])
    for function, expected in {"sigmoid": 1 / (1 + np.exp(-x)), "relu": x, "log": np.log(x)}.items():
        body = along("i", Leaf(Z, None, call(function, A)))
        kernel = LoopTree((body,), (), buffers(A=("input", 3), Z=("output", 3)), (("i", 3),))
        np.testing.assert_allclose(interpret(kernel, {"A": x})["Z"], expected, rtol=1e-15)


def test_what_is_not_written_is_nan() -> None:
    kernel = tree(COPY, A=("input", N), Z=("output", N + 2))
    assert np.isnan(interpret(kernel, integers(kernel))["Z"][N:]).all()


FAULTS = {
    "outside": tree(along("i", Leaf(ref("Z", 1, i=1), None, A)), A=("input", N), Z=("output", N)),
    "before it is written": tree(
        along("i", Leaf(ref("S"), "add", A)), A=("input", N), S=("output", 1)
    ),
    "which does not enclose": tree(Leaf(ref("S"), None, A), A=("input", N), S=("output", 1)),
    "input A is written": tree(along("i", Leaf(A, None, Const(0.0))), A=("input", N)),
    "no loop of step 1": tree(
        along("i", Leaf(ref("Z", i_4=4), None, call("neg", ref("A", i_4=4))), step=4),
        A=("input", N), Z=("output", N),
    ),
    "inside itself": tree(along("i", COPY), A=("input", N), Z=("output", N)),
    "share S": tree(
        ZERO, replace(along("i", Leaf(ref("S"), "add", A)), kind="parallel"), A=("input", N), S=("output", 1)
    ),
    "share Z": tree(
        COPY, replace(along("s", Leaf(ref("Z", s=1), None, ref("Z", 3, s=1))), kind="parallel"),
        A=("input", N), Z=("output", N),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_tree_is_refused(fault: str) -> None:
    with pytest.raises(TreeFault, match=fault):
        interpret(FAULTS[fault], integers(FAULTS[fault]))


def test_a_temporary_does_not_outlive_its_iteration() -> None:
    first = Loop("k", 1, (Leaf(ref("T"), None, Const(1.0)),))
    body = along("j", first, along("i", Leaf(ref("Z", i=1, j=N), None, ref("T"))))
    right = tree(body, Z=("output", 5 * N), T=("temporary", 1, 1))
    right = replace(right, sizes=(*right.sizes, ("k", 1)))
    assert (interpret(right, {})["Z"] == 1).all()
    wrong = replace(right, buffers=buffers(Z=("output", 5 * N), T=("temporary", 1, 2)))
    with pytest.raises(TreeFault, match=r"T\[0\] is read before"):
        interpret(wrong, {})


def test_parallel_iterations_may_use_what_is_theirs() -> None:
    kernel = TREES["rows of a tile that are reduced, then scaled"]
    body = tuple(replace(n, kind="parallel") for n in kernel.body if isinstance(n, Loop))
    arrays = integers(kernel)
    serial, parallel = interpret(kernel, arrays)["Z"], interpret(replace(kernel, body=body), arrays)["Z"]
    np.testing.assert_array_equal(serial, parallel)


def test_an_unknown_kind_of_loop_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of loop 'sideways'"):
        Loop("i", 1, (), "sideways")
