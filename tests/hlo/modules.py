"""Small modules, and their values by the interpreter of StableHLO."""

from pathlib import Path
from typing import Any

import numpy as np

from planish.levels.hlo import Program, program_from
from planish.levels.hlo.ir import TensorType, context, ir
from planish.levels.hlo.ir.mlir import stablehlo

EXAMPLES = Path(__file__).parents[2] / "examples" / "hlo"

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


def chain() -> Program:
    return program_from(CHAIN)


def summing() -> Program:
    return program_from(SUM)


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
