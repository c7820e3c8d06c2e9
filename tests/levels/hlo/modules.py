"""Small modules, and their values by the interpreter of StableHLO."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Candidate, ScheduleError, rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.edits import Edit
from planish.levels.hlo.ir.mlir import TensorType, context, ir, stablehlo
from planish.levels.hlo.patch import replay

EXAMPLES = Path(__file__).parents[3] / "examples" / "hlo"

CHAIN = """
func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<2x3xf32>
  %a = stablehlo.add %x, %y : tensor<2x3xf32>
  %b = stablehlo.multiply %a, %two : tensor<2x3xf32>
  %c = stablehlo.subtract %b, %y : tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}
"""
"""Operations: 0 the constant, 1 add, 2 multiply, 3 subtract, 4 return."""

SUM = """
func.func public @main(%x: tensor<4x3xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %wide = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  %y = stablehlo.multiply %x, %wide : tensor<4x3xf32>
  %s = "stablehlo.reduce"(%y, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %0 = stablehlo.add %p, %q : tensor<f32>
    %1 = stablehlo.negate %0 : tensor<f32>
    %2 = stablehlo.negate %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %m:2 = stablehlo.while(%i = %n, %t = %s) : tensor<i32>, tensor<4xf32>
  cond {
    %3 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.compare GT, %i, %3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %5 = stablehlo.subtract %i, %one : tensor<i32>
    %6 = stablehlo.add %t, %t : tensor<4xf32>
    stablehlo.return %5, %6 : tensor<i32>, tensor<4xf32>
  }
  return %m#1, %m#0 : tensor<4xf32>, tensor<i32>
}
"""
"""0 zero, 1 half, 2 broadcast, 3 multiply, 4 reduce (5 add, 6 and 7 negate, 8 return), 9 one, 10 while
(11 constant, 12 compare, 13 return; 14 subtract, 15 add, 16 return), 17 return."""


def image_network(side: int) -> str:
    """Write a network: a convolution, one by slices and products with a stride of 2, a product, a mean."""
    half, big, pixels = (side + 1) // 2, side + 2, ((side + 1) // 2) ** 2
    ends = [big - 3 + k - (big - 3) % 2 + 1 for k in range(3)]
    return f"""
func.func public @main(%x: tensor<4x{side}x{side}x2xf32>, %k: tensor<3x3x2x4xf32>, %w: tensor<4x3xf32>,
                       %b: tensor<4xf32>) -> tensor<4x3xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %six = stablehlo.constant dense<6.0> : tensor<f32>
  %c = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {{stride = [1, 1], pad = [[1, 1], [1, 1]]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<4x{side}x{side}x2xf32>, tensor<3x3x2x4xf32>) -> tensor<4x{side}x{side}x4xf32>
  %shift = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<4xf32>) -> tensor<4x{side}x{side}x4xf32>
  %d = stablehlo.add %c, %shift : tensor<4x{side}x{side}x4xf32>
  %r = stablehlo.clamp %zero, %d, %six : (tensor<f32>, tensor<4x{side}x{side}x4xf32>, tensor<f32>)
    -> tensor<4x{side}x{side}x4xf32>
  %p = stablehlo.pad %r, %zero, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0]
    : (tensor<4x{side}x{side}x4xf32>, tensor<f32>) -> tensor<4x{big}x{big}x4xf32>
  %s0 = stablehlo.slice %p [0:4, 0:{ends[0]}:2, 2:{ends[2]}:2, 0:4]
    : (tensor<4x{big}x{big}x4xf32>) -> tensor<4x{half}x{half}x4xf32>
  %s1 = stablehlo.slice %p [0:4, 1:{ends[1]}:2, 1:{ends[1]}:2, 0:4]
    : (tensor<4x{big}x{big}x4xf32>) -> tensor<4x{half}x{half}x4xf32>
  %s = stablehlo.subtract %s0, %s1 : tensor<4x{half}x{half}x4xf32>
  %y = stablehlo.dot_general %s, %w, contracting_dims = [3] x [0]
    : (tensor<4x{half}x{half}x4xf32>, tensor<4x3xf32>) -> tensor<4x{half}x{half}x3xf32>
  %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1, 2]
    : (tensor<4x{half}x{half}x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %n = stablehlo.constant dense<{pixels}.0> : tensor<4x3xf32>
  %m = stablehlo.divide %sum, %n : tensor<4x3xf32>
  return %m : tensor<4x3xf32>
}}
"""


def chain() -> Program:
    return program_from(CHAIN)


def summing() -> Program:
    return program_from(SUM)


def normals(*shapes: tuple[int, ...], seed: int = 0) -> list[NDArray[np.float32]]:
    """Draw an array of each shape."""
    return [rng(seed, index).normal(size=shape).astype(np.float32) for index, shape in enumerate(shapes)]


def assert_refused(program: Program, reason: str, *edits: Edit) -> None:
    """A patch is illegal, and its error or hint gives the reason."""
    with pytest.raises(ScheduleError) as error:
        replay(program, Candidate(edits))
    assert reason in f"{error.value} {error.value.hint}"


def evaluate(root: ir.Operation, *arguments: Any) -> list[Any]:
    """Compute a module's `main` by the interpreter."""
    module = ir.Module.parse(str(root), context())
    results: list[Any] = list(stablehlo.eval_module(module, [_dense(np.asarray(a)) for a in arguments]))
    return [np.array(value).reshape(value.type.shape) for value in results]


def _dense(value: Any) -> ir.Attribute:
    type_ = TensorType(value.shape, {"float32": "f32", "int32": "i32"}[value.dtype.name])
    array: Any = np.ascontiguousarray(value)
    element = ir.Type.parse(type_.element, context())
    return ir.DenseElementsAttr.get(array, shape=type_.shape, type=element, context=context())
