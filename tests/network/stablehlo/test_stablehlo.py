"""StableHLO modules as networks, beside the interpreter of StableHLO, XLA and JAX."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import planish
from levels.hlo.modules import evaluate, image_network
from network.compiled import run_onnxruntime
from planish.core import ProgramError
from planish.levels.graph.source import read_model
from planish.levels.hlo import program_from
from planish.levels.hlo.ir.mlir import context, ir
from planish.levels.hlo.workload.arguments import signature
from planish.network.reader import read_network
from planish.network.stablehlo.source import (
    RULES,
    read_module,
    verify_translation,
    write_translation,
    xla_answers,
)

needs_jax = pytest.mark.skipif(
    find_spec("jax") is None and os.environ.get("CI") != "true", reason="JAX is not installed"
)

ELEMENTS = """
func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>, %p: tensor<i32>)
    -> (tensor<3x4xf32>, tensor<3x4xi1>) {
  %0 = stablehlo.constant dense<[0.5, -1.0, 2.0, 0.0]> : tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
  %2 = stablehlo.iota dim = 0 : tensor<3x4xf32>
  %3 = stablehlo.add %x, %1 : tensor<3x4xf32>
  %4 = stablehlo.multiply %3, %2 : tensor<3x4xf32>
  %5 = stablehlo.compare NE, %4, %y : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %6 = stablehlo.logistic %y : tensor<3x4xf32>
  %7 = stablehlo.rsqrt %6 : tensor<3x4xf32>
  %8 = stablehlo.exponential_minus_one %x : tensor<3x4xf32>
  %9 = stablehlo.log_plus_one %6 : tensor<3x4xf32>
  %10 = stablehlo.cbrt %x : tensor<3x4xf32>
  %11 = stablehlo.remainder %x, %6 : tensor<3x4xf32>
  %12 = stablehlo.maximum %8, %7 : tensor<3x4xf32>
  %13 = stablehlo.minimum %9, %10 : tensor<3x4xf32>
  %14 = stablehlo.power %6, %13 : tensor<3x4xf32>
  %15 = stablehlo.select %5, %12, %14 : tensor<3x4xi1>, tensor<3x4xf32>
  %low = stablehlo.constant dense<-0.25> : tensor<f32>
  %16 = stablehlo.clamp %low, %15, %2 : (tensor<f32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %17 = stablehlo.convert %p : (tensor<i32>) -> tensor<i1>
  %18 = stablehlo.not %5 : tensor<3x4xi1>
  %19 = stablehlo.select %17, %5, %18 : tensor<i1>, tensor<3x4xi1>
  %20 = stablehlo.subtract %16, %11 : tensor<3x4xf32>
  return %20, %19 : tensor<3x4xf32>, tensor<3x4xi1>
}
"""

MOVES = """
func.func @main(%x: tensor<2x3x4xf32>, %i: tensor<5xi32>)
    -> (tensor<5x3x4xf32>, tensor<7x2xf32>, tensor<2x12xf32>) {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = stablehlo.slice %0 [1:4:2, 0:2, 0:3] : (tensor<4x2x3xf32>) -> tensor<2x2x3xf32>
  %2 = stablehlo.reverse %1, dims = [0, 2] : tensor<2x2x3xf32>
  %3 = stablehlo.concatenate %2, %1, dim = 2 : (tensor<2x2x3xf32>, tensor<2x2x3xf32>) -> tensor<2x2x6xf32>
  %4 = stablehlo.reshape %3 : (tensor<2x2x6xf32>) -> tensor<2x12xf32>
  %5 = stablehlo.reshape %i : (tensor<5xi32>) -> tensor<5x1xi32>
  %6 = "stablehlo.gather"(%0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 2, 3>}> : (tensor<4x2x3xf32>, tensor<5x1xi32>) -> tensor<5x2x3xf32>
  %7 = stablehlo.slice %6 [0:5, 0:1, 0:3] : (tensor<5x2x3xf32>) -> tensor<5x1x3xf32>
  %8 = stablehlo.reshape %7 : (tensor<5x1x3xf32>) -> tensor<5x3xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<5x3xf32>) -> tensor<5x3x4xf32>
  %f = stablehlo.constant dense<2.5> : tensor<f32>
  %10 = stablehlo.pad %8, %f, low = [0, -1], high = [2, 0], interior = [0, 0]
    : (tensor<5x3xf32>, tensor<f32>) -> tensor<7x2xf32>
  return %9, %10, %4 : tensor<5x3x4xf32>, tensor<7x2xf32>, tensor<2x12xf32>
}
"""

PRODUCTS = """
func.func @main(%x: tensor<2x3x4x5xf32>, %y: tensor<5x2x6x4xf32>)
    -> (tensor<2x3x6xf32>, tensor<3x4x5x3x6xf32>) {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2, 3] x [3, 0]
    : (tensor<2x3x4x5xf32>, tensor<5x2x6x4xf32>) -> tensor<2x3x6xf32>
  %1 = stablehlo.transpose %x, dims = [1, 3, 0, 2] : (tensor<2x3x4x5xf32>) -> tensor<3x5x2x4xf32>
  %2 = stablehlo.slice %y [0:3, 0:2, 0:6, 0:4] : (tensor<5x2x6x4xf32>) -> tensor<3x2x6x4xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0, 2, 3] : (tensor<3x2x6x4xf32>) -> tensor<2x3x6x4xf32>
  %4 = stablehlo.slice %3 [0:2, 0:3, 0:6, 0:1] : (tensor<2x3x6x4xf32>) -> tensor<2x3x6x1xf32>
  %5 = stablehlo.reshape %4 : (tensor<2x3x6x1xf32>) -> tensor<2x3x6xf32>
  %6 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<3x5x2x4xf32>) -> tensor<3x4x5x2xf32>
  %7 = stablehlo.dot_general %6, %5, contracting_dims = [3] x [0]
    : (tensor<3x4x5x2xf32>, tensor<2x3x6xf32>) -> tensor<3x4x5x3x6xf32>
  return %0, %7 : tensor<2x3x6xf32>, tensor<3x4x5x3x6xf32>
}
"""

CONVOLUTIONS = """
func.func @main(%x: tensor<1x6x7x4xf32>, %k: tensor<3x2x2x6xf32>, %t: tensor<3x3x4x2xf32>)
    -> (tensor<1x4x6x6xf32>, tensor<1x12x14x2xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[2, 3], [1, 0]], rhs_dilate = [2, 2], reverse = [true, false]}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
    : (tensor<1x6x7x4xf32>, tensor<3x2x2x6xf32>) -> tensor<1x4x6x6xf32>
  %1 = stablehlo.convolution(%x, %t) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 2], [2, 1]], lhs_dilate = [2, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x6x7x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x12x14x2xf32>
  return %0, %1 : tensor<1x4x6x6xf32>, tensor<1x12x14x2xf32>
}
"""


def reduction(kind: str, initial: str) -> str:
    """Write a reduction, pooling and a cumulative sum."""
    window = f"""
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.{kind} %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }})"""
    return f"""
func.func @main(%x: tensor<2x5x6x3xf32>) -> (tensor<5x3xf32>, tensor<2x3x3x3xf32>, tensor<2x5x6x3xf32>) {{
  %z = stablehlo.constant dense<{initial}> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.{kind} across dimensions = [0, 2]
    : (tensor<2x5x6x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %p = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 1, 3, 2, 1>,
    window_strides = array<i64: 1, 2, 2, 1>,
    padding = dense<[[0, 0], [1, 1], [0, 0], [0, 0]]> : tensor<4x2xi64>}}> ({{{window}
    : (tensor<2x5x6x3xf32>, tensor<f32>) -> tensor<2x3x3x3xf32>
  %s = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 1, 1, 6, 1>,
    padding = dense<[[0, 0], [0, 0], [5, 0], [0, 0]]> : tensor<4x2xi64>}}> ({{{window}
    : (tensor<2x5x6x3xf32>, tensor<f32>) -> tensor<2x5x6x3xf32>
  return %r, %p, %s : tensor<5x3xf32>, tensor<2x3x3x3xf32>, tensor<2x5x6x3xf32>
}}
"""


LOOP = """
func.func @main(%x: tensor<5x2x3xf32>, %w: tensor<3x3xf32>)
    -> (tensor<5x2x3xf32>, tensor<5x2x3xf32>, tensor<2x3xf32>) {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %ys = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<5x2x3xf32>
  %r:3 = stablehlo.while(%k = %i, %s = %h, %o = %ys) : tensor<i32>, tensor<2x3xf32>, tensor<5x2x3xf32>
    cond {
      %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %xt = stablehlo.dynamic_slice %x, %k, %i, %i, sizes = [1, 2, 3]
        : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
      %xr = stablehlo.reshape %xt : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
      %p = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0]
        : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
      %a = stablehlo.add %p, %xr : tensor<2x3xf32>
      %t = stablehlo.tanh %a : tensor<2x3xf32>
      %tr = stablehlo.reshape %t : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
      %u = stablehlo.dynamic_update_slice %o, %tr, %k, %i, %i
        : (tensor<5x2x3xf32>, tensor<1x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x2x3xf32>
      %m = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %m, %t, %u : tensor<i32>, tensor<2x3xf32>, tensor<5x2x3xf32>
    }
  %mid = stablehlo.slice %r#1 [1:2, 0:2] : (tensor<2x3xf32>) -> tensor<1x2xf32>
  %mids = stablehlo.reshape %mid : (tensor<1x2xf32>) -> tensor<1x1x2xf32>
  %v = stablehlo.dynamic_update_slice %x, %mids, %n, %i, %one
    : (tensor<5x2x3xf32>, tensor<1x1x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x2x3xf32>
  return %r#2, %v, %r#1 : tensor<5x2x3xf32>, tensor<5x2x3xf32>, tensor<2x3xf32>
}
"""

SORTS = """
func.func @main(%x: tensor<4x6xf32>, %i: tensor<4x6xi32>)
    -> (tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xi32>) {
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.compare EQ, %a, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %f = stablehlo.select %e, %z, %a : tensor<i1>, tensor<f32>
    %t = stablehlo.compare LT, %f, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
  %1 = "stablehlo.sort"(%i) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %t = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  }) : (tensor<4x6xi32>) -> tensor<4x6xi32>
  return %0#0, %0#1, %1 : tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xi32>
}
"""

SCATTERS = """
func.func @main(%x: tensor<7x3xf32>, %y: tensor<2x3xf32>, %w: tensor<7x2xf32>)
    -> (tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>) {
  %i = stablehlo.constant dense<[[5], [2]]> : tensor<2x1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<7x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<7x3xf32>
  %1 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<7x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<7x3xf32>
  %j = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
  %2 = "stablehlo.scatter"(%x, %j, %w) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1],
    index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.maximum %b, %a : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<7x3xf32>, tensor<2x1xi32>, tensor<7x2xf32>) -> tensor<7x3xf32>
  return %0, %1, %2 : tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>
}
"""

MODULES = {
    "elements": ELEMENTS,
    "moves": MOVES,
    "products": PRODUCTS,
    "convolutions": CONVOLUTIONS,
    "images": image_network(7),
    "sums": reduction("add", "0.0"),
    "maxima": reduction("maximum", "-0.5"),
    "minima": reduction("minimum", "0x7F800000"),
}
FLOWS = {"loop": LOOP, "sorts": SORTS, "scatters": SCATTERS}


def drawn(text: str) -> list[NDArray[Any]]:
    """Draw the arguments of a module; whole numbers may be outside of what they count."""
    draw, found = np.random.default_rng(0), list[NDArray[Any]]()
    for kind in signature(program_from(text)).arguments:
        if kind.element == "f32":
            found.append(np.asarray(draw.normal(size=kind.shape), np.float32))
        else:
            found.append(np.asarray(draw.integers(-2, 7, kind.shape), np.int32))
    return found


@pytest.mark.parametrize("name", MODULES)
def test_translations_compute_what_the_interpreter_does(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(MODULES[name])
    model, _ = read_module(path)
    arguments = drawn(MODULES[name])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    names = [each.name for each in model.graph.input]
    found = run_onnxruntime(tmp_path / "m.onnx", dict(zip(names, arguments, strict=True)))
    wanted = evaluate(ir.Module.parse(MODULES[name], context()).operation, *arguments)
    for mine, right in zip(found, wanted, strict=True):
        assert mine.dtype == right.dtype
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-5)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", FLOWS)
def test_control_flow_is_that_of_xla(tmp_path: Path, name: str) -> None:
    path, arguments = tmp_path / "m.mlir", drawn(FLOWS[name])
    path.write_text(FLOWS[name])
    found = planish.compile(path)(*arguments)
    (wanted,) = xla_answers(FLOWS[name], [arguments])
    for mine, right in zip(found, wanted, strict=True):
        assert mine.dtype == right.dtype
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)


def test_results_of_iterations_are_joined_once(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(LOOP)
    nodes = [node.op_type for node in read_module(path)[0].graph.node]
    # One for the results of all iterations, and one for each dimension of the part that is replaced.
    assert nodes.count("Concat") == 1 + 3
    assert nodes.count("Tanh") == 5


DATA_DEPENDENT = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %r = stablehlo.while(%y = %x) : tensor<f32>
    cond {
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %c = stablehlo.compare GT, %y, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %s = stablehlo.sqrt %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }
  return %r : tensor<f32>
}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DATA_DEPENDENT, "a number of iterations that depends on data"),
        (LOOP.replace("stablehlo.add %k, %one", "stablehlo.multiply %k, %one"), "more than 20,000 nodes"),
        (SORTS.replace("%f, %b, TOTALORDER", "%f, %a, TOTALORDER"), "only the order of one operand"),
        (SCATTERS.replace("stablehlo.add %a, %b", "stablehlo.add %b, %b"), "a body of stablehlo.add"),
    ],
)
def test_control_flow_that_is_not_covered(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(text)
    with pytest.raises(ProgramError, match=message):
        read_module(path)


def test_transpositions_of_images_cancel(tmp_path: Path) -> None:
    """Operators between convolutions read the convolutions' own layout."""
    path = tmp_path / "m.mlir"
    path.write_text(image_network(8))
    nodes = [node.op_type for node in read_module(path)[0].graph.node]
    first = nodes.index("Conv")
    assert "Transpose" not in nodes[first : nodes.index("MatMul") - 1]


def test_module_is_compiled(tmp_path: Path) -> None:
    path, text = tmp_path / "m.mlir", image_network(8)
    path.write_text(text)
    arguments = drawn(text)
    found = planish.compile(path)(*arguments)
    (wanted,) = evaluate(ir.Module.parse(text, context()).operation, *arguments)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


JAX = """
import sys, jax, jax.numpy as jnp, numpy as np
r = np.random.default_rng(0)
w = [jnp.asarray(r.normal(size=(16, n)) / 4, jnp.float32) for n in (16, 16, 16, 64)]
back, table = (jnp.asarray(r.normal(size=n) / 8, jnp.float32) for n in ((64, 16), (50, 16)))
def normal(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
def f(tokens):
    x = table[tokens]
    q, k, v = ((normal(x) @ each).reshape(2, 8, 4, 4) for each in w[:3])
    a = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), jnp.einsum("bqhd,bkhd->bhqk", q, k), -1e9)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(a), v).reshape(2, 8, 16)
    x = x + jax.nn.gelu(normal(x) @ w[3], approximate=False) @ back
    return x @ table.T, jnp.argmax(x, -1)
tokens = r.integers(0, 50, (2, 8)).astype(np.int32)
exported = jax.export.export(jax.jit(f))(tokens)
open(sys.argv[1] + "/m.mlirbc", "wb").write(exported.mlir_module_serialized)
np.savez(sys.argv[1] + "/m.npz", tokens=tokens, logits=f(tokens)[0], best=f(tokens)[1])
"""


@pytest.mark.slow
@needs_jax
def test_transformer_of_jax(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", JAX, str(tmp_path)], check=True)
    arrays = np.load(tmp_path / "m.npz")
    logits, best = planish.compile(tmp_path / "m.mlirbc")(tokens=arrays["tokens"])
    np.testing.assert_allclose(logits, arrays["logits"], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(best, arrays["best"])


def test_operations_that_are_not_covered_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @secret(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.atan2 %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}
""")
    with pytest.raises(ProgramError, match=r'stablehlo.atan2, stablehlo.custom_call "secret"'):
        planish.compile(path)


@pytest.mark.slow
def test_translation_that_differs_from_xla_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, "stablehlo.subtract", RULES["stablehlo.add"])
    path = tmp_path / "m.mlir"
    path.write_text(ELEMENTS)
    with pytest.raises(ProgramError, match="differs from XLA"):
        planish.compile(path)


AMPLIFYING = """
func.func @main(%x: tensor<4x999xf32>, %y: tensor<999x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<4x999xf32>, tensor<999x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.constant dense<1.0e5> : tensor<4x8xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4x8xf32>
  %3 = stablehlo.sine %2 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
"""


def test_rounding_that_a_module_amplifies_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(AMPLIFYING)
    written, text = write_translation(path, tmp_path)
    network, model = read_network(read_model(written, {}))
    feed = dict(zip(network.inputs, drawn(AMPLIFYING), strict=True))
    assert "differs from XLA" in verify_translation(text, network, model, [feed])
