"""Loops: what is the same in each step leaves them, steps are left out, and what is done twice is shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.hlo.modules import EXAMPLES, assert_refused, chain, evaluate, normals, summing
from planish.core import Candidate, ScheduleError, rng
from planish.levels.hlo import Program, program_from, read_program
from planish.levels.hlo.edits import Edit, Hoist, Share, Shorten
from planish.levels.hlo.patch import original, replay

RECURRENT = """
func.func public @main(%xs: tensor<5x2x3xf32>, %w: tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<i32>) {
  %first = stablehlo.constant dense<0> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2x3xf32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %m:4 = stablehlo.while(%i = %first, %h = %zeros, %v = %w, %n = %end)
    : tensor<i32>, tensor<2x3xf32>, tensor<3x3xf32>, tensor<i32>
  cond {
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %half = stablehlo.constant dense<0.5> : tensor<3x3xf32>
    %part = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 2, 3]
      : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
    %x = stablehlo.reshape %part : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
    %t = stablehlo.transpose %v, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %u = stablehlo.multiply %t, %half : tensor<3x3xf32>
    %p = stablehlo.dot_general %h, %u, contracting_dims = [1] x [0]
      : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %g = stablehlo.add %p, %x : tensor<2x3xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %g, %v, %n : tensor<i32>, tensor<2x3xf32>, tensor<3x3xf32>, tensor<i32>
  }
  return %m#1, %m#0 : tensor<2x3xf32>, tensor<i32>
}
"""
"""3 the loop; 4 compare, 5 return; 6 to 8 constants, 9 slice, 10 reshape, 11 transpose, 12 half of it,
13 product, 14 sum, 15 counter, 16 return; 17 return."""

XS = rng(0, 1).normal(size=(5, 2, 3)).astype(np.float32)
W = rng(0, 2).normal(size=(3, 3)).astype(np.float32)


def recurrent() -> Program:
    return program_from(RECURRENT)


def result(*edits: Edit) -> list[NDArray[Any]]:
    return evaluate(replay(recurrent(), Candidate(edits)).root, XS, W)


def by_numpy(steps: range) -> NDArray[np.float32]:
    h = np.zeros((2, 3), np.float32)
    for i in steps:
        h = h @ (W.T * np.float32(0.5)) + XS[i]
    return h


def test_what_is_the_same_in_each_step_is_computed_before_the_loop() -> None:
    assert Hoist.match(original(recurrent())) == ("12",)
    edit = Hoist(("12",))
    module = replay(recurrent(), Candidate((edit,)))
    outside = [module.infos[uid].name for uid in module.blocks[""]]
    assert outside[3:6] == ["stablehlo.transpose", "stablehlo.constant", "stablehlo.multiply"]
    inside = {module.infos[uid].name for uid in module.blocks["3^1"] if uid in module.live()}
    assert not inside & {"stablehlo.transpose", "stablehlo.multiply"}
    for one, other in zip(result(edit), result(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert Hoist.match(module) == ()


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Hoist(()), "no operation is named"),
        (Hoist(("13",)), "differs from step to step"),
        (Hoist(("9",)), "differs from step to step"),
        (Hoist(("2",)), "is in no loop"),
        (Hoist(("16",)), "may not be changed"),
        (Hoist(("12", "12")), "no operation '12'"),
        (Share(()), "no operation is named"),
        (Share(("12",)), "no operation before '12' computes the same"),
        (Shorten("13", 2), "is not a loop"),
        (Shorten("3", 5), "a loop of 5 steps cannot take 5"),
        (Shorten("3", 0), "Take 1 to 4"),
        (Shorten("3", 2, "middle"), "Known: first, last"),
    ],
)
def test_what_cannot_be_is_refused(edit: Edit, reason: str) -> None:
    assert_refused(recurrent(), reason, edit)


@given(st.integers(1, 4), st.sampled_from(["first", "last"]))
@settings(max_examples=examples(8))
def test_a_loop_takes_fewer_steps(steps: int, without: str) -> None:
    taken = range(steps) if without == "last" else range(5 - steps, 5)
    found, counted = result(Shorten("3", steps, without))
    np.testing.assert_allclose(found, by_numpy(taken), rtol=1e-5, atol=1e-6)
    assert counted == taken.stop


@pytest.mark.parametrize(
    ("test", "first", "step", "end", "steps"),
    [("LT", 1, 3, 9, 3), ("LE", 1, 2, 9, 5), ("GT", 9, -2, 0, 5), ("GE", 8, -4, 0, 3), ("NE", 2, 2, 8, 3)],
)
def test_loops_count_up_and_down(test: str, first: int, step: int, end: int, steps: int) -> None:
    program = program_from(f"""
func.func @main() -> (tensor<i32>, tensor<i32>) {{
  %first = stablehlo.constant dense<{first}> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %m:2 = stablehlo.while(%i = %first, %n = %none) : tensor<i32>, tensor<i32>
  cond {{
    %end = stablehlo.constant dense<{end}> : tensor<i32>
    %more = stablehlo.compare {test}, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %step = stablehlo.constant dense<{abs(step)}> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.{"add" if step > 0 else "subtract"} %i, %step : tensor<i32>
    %o = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %j, %o : tensor<i32>, tensor<i32>
  }}
  return %m#0, %m#1 : tensor<i32>, tensor<i32>
}}
""")
    assert int(evaluate(original(program).root)[1]) == steps
    (loop,) = {edit.op for edit in Shorten.enumerate(original(program))}
    for taken in range(1, steps):
        for without in ("first", "last"):
            module = replay(program, Candidate((Shorten(loop, taken, without),)))
            counter, count = map(int, evaluate(module.root))
            assert count == taken
            assert counter == (first + steps * step if without == "first" else first + taken * step)


def test_loops_of_no_constant_number_of_steps_are_left_alone() -> None:
    assert not Shorten.enumerate(original(summing()))
    with pytest.raises(ScheduleError, match="how many steps loop '10' takes is not constant"):
        replay(summing(), Candidate((Shorten("10", 2),)))
    assert Shorten.enumerate(original(recurrent())) == [
        Shorten("3", steps, end) for steps in (4, 3, 2) for end in ("first", "last")
    ]
    loop = Shorten.enumerate(original(read_program(EXAMPLES / "lstm.mlir")))
    assert [edit.steps for edit in loop] == [5, 5, 4, 4, 3, 3]


TWICE = """
func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %n: tensor<i32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = stablehlo.add %x, %y : tensor<2x3xf32>
  %b = stablehlo.add %y, %x : tensor<2x3xf32>
  %c = stablehlo.subtract %a, %x : tensor<2x3xf32>
  %d = stablehlo.subtract %b, %x : tensor<2x3xf32>
  %e = stablehlo.subtract %x, %b : tensor<2x3xf32>
  %f = stablehlo.multiply %d, %e : tensor<2x3xf32>
  %g = stablehlo.slice %x [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %h = stablehlo.slice %x [1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %k = stablehlo.concatenate %g, %h, dim = 0 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %m:2 = stablehlo.while(%i = %n, %t = %k) : tensor<i32>, tensor<2x3xf32>
  cond {
    %more = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %s = stablehlo.add %y, %x : tensor<2x3xf32>
    %u = stablehlo.multiply %t, %s : tensor<2x3xf32>
    stablehlo.return %j, %u : tensor<i32>, tensor<2x3xf32>
  }
  %l = stablehlo.multiply %c, %f : tensor<2x3xf32>
  return %l, %m#1 : tensor<2x3xf32>, tensor<2x3xf32>
}
"""
"""0 and 1 are the same, so are 2 and 3 (not 4), and 15 in the loop; 6 and 7 are other slices."""


def test_what_is_computed_twice_is_computed_once() -> None:
    program = program_from(TWICE)
    assert Share.match(original(program)) == ("1", "3", "15")
    x, y = normals((2, 3), (2, 3), seed=3)
    module = replay(program, Candidate((Share(("1", "3", "15")),)))
    assert not {"1", "3", "15"} & set(module.infos)
    wanted = evaluate(original(program).root, x, y, np.int32(2))
    for one, other in zip(evaluate(module.root, x, y, np.int32(2)), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    alone = replay(program, Candidate((Share(("3",)),)))
    np.testing.assert_array_equal(evaluate(alone.root, x, y, np.int32(2))[0], wanted[0])
    assert Share.match(module) == ()


def test_nothing_is_shared_in_what_computes_nothing_twice() -> None:
    assert not Share.match(original(chain()))
    assert not Hoist.match(original(summing()))


def test_what_may_be_hoisted_is_in_the_order_of_the_module() -> None:
    products = "".join(
        f"    %u{i} = stablehlo.multiply %t, %half : tensor<3x3xf32>\n"
        f"    %p{i} = stablehlo.dot_general %p{i - 1 if i else ''}, %u{i}, contracting_dims = [1] x [0]\n"
        "      : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>\n"
        for i in range(8)
    )
    text = RECURRENT.replace("    %g = stablehlo.add %p,", f"{products}    %g = stablehlo.add %p7,")
    found = Hoist.match(original(program_from(text)))
    assert len(found) == 9
    assert found == tuple(sorted(found, key=int))
