"""A batch in tiles gives what the whole batch gives; where examples meet there are no tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.hlo.modules import EXAMPLES, chain, evaluate
from planish.core import Candidate, ScheduleError, rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.backend import open_backend
from planish.levels.hlo.edits import DeleteOp, TileBatch, batch_size, finished
from planish.levels.hlo.edits.tile_batch import TILES_MOST, sizes
from planish.levels.hlo.ir.mlir import functions, tensor_type
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.program import read_program
from planish.levels.hlo.space import PatchSpace

NETWORK = """
func.func public @main(%x: tensor<6x5x5x2xf32>, %k: tensor<3x3x2x4xf32>, %w: tensor<4x3xf32>,
                       %each: tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<3x4xf32>, tensor<3x6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<6x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<6x5x5x4xf32>
  %floor = stablehlo.constant dense<0.0> : tensor<6x5x5x4xf32>
  %r = stablehlo.maximum %c, %floor : tensor<6x5x5x4xf32>
  %p = stablehlo.pad %r, %zero, low = [0, 1, 0, 0], high = [0, 0, 1, 0], interior = [0, 0, 0, 0]
    : (tensor<6x5x5x4xf32>, tensor<f32>) -> tensor<6x6x6x4xf32>
  %s = stablehlo.slice %p [0:6, 0:6:2, 1:6, 0:4] : (tensor<6x6x6x4xf32>) -> tensor<6x3x5x4xf32>
  %flat = stablehlo.reshape %s : (tensor<6x3x5x4xf32>) -> tensor<6x15x4xf32>
  %m = stablehlo.reduce(%flat init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<6x15x4xf32>, tensor<f32>) -> tensor<6x4xf32>
  %scale = stablehlo.broadcast_in_dim %w, dims = [1, 2] : (tensor<4x3xf32>) -> tensor<6x4x3xf32>
  %d = stablehlo.dot_general %m, %scale, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<6x4xf32>, tensor<6x4x3xf32>) -> tensor<6x3xf32>
  %y = stablehlo.add %d, %each : tensor<6x3xf32>
  %t = stablehlo.transpose %y, dims = [1, 0] : (tensor<6x3xf32>) -> tensor<3x6xf32>
  %wt = stablehlo.transpose %w, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  return %y, %wt, %t : tensor<6x3xf32>, tensor<3x4xf32>, tensor<3x6xf32>
}
"""


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3


def results(program: Program, *edits: TileBatch | DeleteOp) -> list[Any]:
    module = replay(program, Candidate(edits))
    body = dict(functions(module.root))[module.function].regions[0].blocks[0]
    types = [tensor_type(argument.type) for argument in body.arguments]
    return evaluate(finished(module), *(numbers(*type_.shape) for type_ in types if type_))


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("examples", [1, 2, 3, 4, 5])
def test_tiles_of_every_size_give_the_same_answers(examples: int, *, loop: bool) -> None:
    """Also where tiles are left over; one result is not of the batch."""
    program = program_from(NETWORK)
    module = replay(program, Candidate((TileBatch(examples, loop),)))
    text = entry_text(finished(module), module.function)
    written_out = 1 + bool(6 % examples) if loop else -(-6 // examples)
    assert text.count("stablehlo.convolution") == written_out
    assert text.count("stablehlo.while") == loop
    layers = [line for line in text.splitlines() if "stablehlo.constant" not in line]
    assert not any("tensor<6x5x5x4" in line for line in layers), "of the whole batch nothing is made"
    assert same(results(program, TileBatch(examples, loop)), results(program))


@pytest.mark.parametrize("loop", [False, True])
def test_what_is_the_same_for_all_examples_is_not_made_for_the_whole_batch(*, loop: bool) -> None:
    """As the taps of a depthwise convolution: a loop would keep them all in memory, and cut them."""
    program = program_from(
        "func.func public @main(%x: tensor<6x4xf32>, %row: tensor<1x4xf32>) -> tensor<6x4xf32> {\n"
        "%wide = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<6x4xf32>\n"
        "%y = stablehlo.multiply %x, %wide : tensor<6x4xf32>\nreturn %y : tensor<6x4xf32>\n}"
    )
    module = replay(program, Candidate((TileBatch(2, loop),)))
    text = entry_text(finished(module), module.function)
    wide = [line for line in text.splitlines() if "broadcast_in_dim" in line and "-> tensor<2x4xf32>" in line]
    assert len(wide) == (1 if loop else 3)
    assert same(results(program, TileBatch(2, loop)), results(program))


@pytest.mark.parametrize(
    ("element", "named"),
    [
        ("i1", "compare LT, %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>)"),
        ("i8", "convert %x : (tensor<4x4xf32>)"),
    ],
)
def test_a_loop_gives_other_types_than_floats(element: str, named: str) -> None:
    program = program_from(
        f"func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4x{element}> {{\n"
        f"%y = stablehlo.{named} -> tensor<4x4x{element}>\nreturn %y : tensor<4x4x{element}>\n}}"
    )
    assert same(results(program, TileBatch(2, loop=True)), results(program))


def test_what_no_loop_can_write_is_refused() -> None:
    program = program_from(
        "func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xcomplex<f32>> {\n"
        "%y = stablehlo.complex %x, %x : tensor<4x4xcomplex<f32>>\nreturn %y : tensor<4x4xcomplex<f32>>\n}"
    )
    with pytest.raises(ScheduleError, match="not written by a loop"):
        replay(program, Candidate((TileBatch(2, loop=True),)))


@pytest.mark.parametrize(
    "body",
    [
        "%y = stablehlo.reverse %x, dims = [0] : tensor<4x4xf32>",
        (
            "%y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]"
            " : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"
        ),
        (
            "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
            "%y = stablehlo.add %x, %t : tensor<4x4xf32>"
        ),
        (
            "%s = stablehlo.slice %x [1:2, 0:4] : (tensor<4x4xf32>) -> tensor<1x4xf32>\n"
            "%y = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>"
        ),
        (
            "%r = stablehlo.reshape %x : (tensor<4x4xf32>) -> tensor<16xf32>\n"
            "%y = stablehlo.reshape %r : (tensor<16xf32>) -> tensor<4x4xf32>"
        ),
        "%y = stablehlo.constant dense<1.0> : tensor<4x4xf32>",
        (  # as the moments of an optimizer beside the gradient
            "%w = stablehlo.constant dense<2.0> : tensor<4x4xf32>\n"
            "%g = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0]"
            " : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
            "%y = stablehlo.add %x, %g : tensor<4x4xf32>"
        ),
        (
            '%y = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
            "%c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "stablehlo.return %c : tensor<i1>\n}) : (tensor<4x4xf32>) -> tensor<4x4xf32>"
        ),
    ],
)
def test_where_examples_meet_there_are_no_tiles(body: str) -> None:
    begin = "func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {"
    program = program_from(f"{begin}\n{body}\nreturn %y : tensor<4x4xf32>\n}}")
    with pytest.raises(ScheduleError):
        replay(program, Candidate((TileBatch(2),)))
    with pytest.raises(ScheduleError, match="no valid edit"):
        PatchSpace(program, ("TileBatch",)).sample(rng(0))


@pytest.mark.parametrize("examples", [0, -1, 6, 7])
def test_a_tile_has_fewer_examples_than_the_batch(examples: int) -> None:
    with pytest.raises(ScheduleError, match=r"has no (tiles|-?\d examples)"):
        replay(program_from(NETWORK), Candidate((TileBatch(examples),)))


def test_the_position_of_the_edit_in_a_patch_does_not_matter() -> None:
    cut = DeleteOp("1", (("arg0", ()),))
    tiles = TileBatch(1)
    first, last = results(chain(), tiles, cut), results(chain(), cut, tiles)
    assert same(first, last)
    assert same(first, results(chain(), cut))
    assert not same(first, results(chain()))
    space = PatchSpace(chain())
    assert space.state_key(Candidate((tiles, cut))) == space.state_key(Candidate((cut, tiles)))
    assert space.state_key(Candidate((cut, tiles))) != space.state_key(Candidate((cut,)))


def test_a_new_size_replaces_the_old_one() -> None:
    space, candidate = PatchSpace(program_from(NETWORK), ("TileBatch",)), Candidate()
    seen: set[tuple[int, bool]] = set()
    for index in range(40):
        candidate = space.mutate(candidate, rng(1, index))
        (edit,) = candidate.steps
        assert isinstance(edit, TileBatch)
        seen.add((edit.examples, edit.loop))
    every = {(size, loop) for size in (1, 2, 3) for loop in (False, True)}
    assert seen == every, "so many tiles that compiling takes long are not drawn, nor sizes of as many"


def test_sizes_give_few_tiles() -> None:
    assert sizes(100)[:2] == [4, 5]
    assert all(2 <= -(-100 // size) <= TILES_MOST for size in sizes(100))
    assert sizes(2) == [1]
    assert sizes(3) == [1, 2]


def test_a_network_of_many_layers_has_its_images_as_batch() -> None:
    module = original(read_program(EXAMPLES / "mobilenet.mlir"))
    assert batch_size(module) == 100
    with pytest.raises(ScheduleError):
        batch_size(original(read_program(EXAMPLES / "2fcnet.mlir")))


LAYERS = (
    (
        '%{b} = "stablehlo.reduce_window"(%{a}, %low) <{{window_dimensions = array<i64: 1, 2>, '
        "padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}}> ({{\n"
        "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%m = stablehlo.maximum %p, %q : tensor<f32>\n"
        "stablehlo.return %m : tensor<f32>\n}}) : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>"
    ),
    "%{b} = stablehlo.add %{a}, %bias : tensor<6x4xf32>",
    "%{b} = stablehlo.multiply %x, %{a} : tensor<6x4xf32>",
    (
        "%{b} = stablehlo.dot_general %{a}, %w, contracting_dims = [1] x [0]"
        " : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>"
    ),
    (
        "%t{b} = stablehlo.transpose %{a}, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>\n"
        "%u{b} = stablehlo.dot_general %w, %t{b}, contracting_dims = [1] x [0]"
        " : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>\n"
        "%{b} = stablehlo.transpose %u{b}, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>"
    ),
    (
        "%t{b} = stablehlo.reshape %{a} : (tensor<6x4xf32>) -> tensor<6x2x2xf32>\n"
        "%u{b} = stablehlo.reverse %t{b}, dims = [1] : tensor<6x2x2xf32>\n"
        "%{b} = stablehlo.reshape %u{b} : (tensor<6x2x2xf32>) -> tensor<6x4xf32>"
    ),
    (
        "%t{b} = stablehlo.slice %{a} [0:6, 1:3] : (tensor<6x4xf32>) -> tensor<6x2xf32>\n"
        "%{b} = stablehlo.concatenate %t{b}, %t{b}, dim = 1"
        " : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x4xf32>"
    ),
    (
        "%{b} = stablehlo.clamp %low, %{a}, %high"
        " : (tensor<f32>, tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>"
    ),
)


@given(st.lists(st.integers(0, len(LAYERS) - 1), min_size=1, max_size=6), st.integers(1, 5), st.booleans())
@settings(max_examples=examples(40))
def test_any_layers_one_after_the_other_give_the_same_in_tiles(
    layers: list[int], examples: int, loop: bool
) -> None:
    lines = [LAYERS[layer].format(a=f"v{i}", b=f"v{i + 1}") for i, layer in enumerate(layers)]
    program = program_from(
        "func.func public @main(%x: tensor<6x4xf32>, %w: tensor<4x4xf32>, %row: tensor<4xf32>)"
        " -> tensor<6x4xf32> {\n"
        "%low = stablehlo.constant dense<-9.0> : tensor<f32>\n"
        "%high = stablehlo.constant dense<9.0> : tensor<f32>\n"
        "%bias = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<4xf32>) -> tensor<6x4xf32>\n"
        "%v0 = stablehlo.add %x, %x : tensor<6x4xf32>\n"
        + "\n".join(lines)
        + f"\nreturn %v{len(layers)} : tensor<6x4xf32>\n}}"
    )
    assert same(results(program, TileBatch(examples, loop)), results(program))


@pytest.mark.parametrize("name", ["square", "erfc", "lgamma"])
def test_what_jax_writes_in_chlo_is_tiled(name: str) -> None:
    """As `jnp.square` and the exact GELU; the interpreter knows none of them, XLA all."""
    program = program_from(
        "func.func public @main(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {\n"
        f"%0 = chlo.{name} %x : tensor<6x4xf32> -> tensor<6x4xf32>\nreturn %0 : tensor<6x4xf32>\n}}"
    )
    backend = open_backend("xla")

    def by_xla(*edits: TileBatch) -> NDArray[np.float32]:
        module = replay(program, Candidate(edits))
        code = backend.compile(entry_text(finished(module), module.function))
        return backend.get(code([backend.put(numbers(6, 4) + 4)])[0])

    assert np.array_equal(by_xla(TileBatch(2)), by_xla())
