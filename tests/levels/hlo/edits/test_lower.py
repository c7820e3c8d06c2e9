"""A convolution written otherwise gives what it gave; products of narrower numbers give nearly that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.hlo.modules import EXAMPLES, assert_refused, chain
from planish.core import Candidate, rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.backend import HloBackend, open_backend
from planish.levels.hlo.edits import Edit, EditableModule, Lower, Narrow, Shrink, TileBatch, finished
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.program import read_program

LAYOUTS = {"NHWC": "[b, 0, 1, f]", "NCHW": "[b, f, 0, 1]", "CHWN": "[f, 0, 1, b]"}
KERNELS = {"HWIO": "[0, 1, i, o]", "OIHW": "[o, i, 0, 1]"}


@dataclass(frozen=True)
class Layer:
    """A convolution of two images of 6 x 5 pixels."""

    kernel: tuple[int, int]
    inputs: int
    outputs: int
    groups: int
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    layouts: tuple[str, str, str]

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        sides = [
            (side + sum(pad) - (kernel - 1) * apart - 1) // by + 1
            for side, pad, kernel, apart, by in zip(
                (6, 5), self.padding, self.kernel, self.dilation, self.stride, strict=True
            )
        ]
        image = {"N": 2, "H": 6, "W": 5, "C": self.inputs}
        kernel = {
            "H": self.kernel[0],
            "W": self.kernel[1],
            "I": self.inputs // self.groups,
            "O": self.outputs,
        }
        result = {"N": 2, "H": sides[0], "W": sides[1], "C": self.outputs}
        sizes = (image, kernel, result)
        one, two, three = (
            tuple(each[axis] for axis in layout) for each, layout in zip(sizes, self.layouts, strict=True)
        )
        return one, two, three

    def program(self) -> Program:
        x, k, y = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in self.shapes())
        a, b, c = self.layouts
        low, high = self.padding
        return program_from(f"""
func.func public @main(%x: {x}, %k: {k}) -> {y} {{
  %y = stablehlo.convolution(%x, %k) dim_numbers = {LAYOUTS[a]}x{KERNELS[b]}->{LAYOUTS[c]},
    window = {{stride = {list(self.stride)}, pad = [{list(low)}, {list(high)}],
    rhs_dilate = {list(self.dilation)}}}
    {{batch_group_count = 1 : i64, feature_group_count = {self.groups} : i64}} : ({x}, {k}) -> {y}
  return %y : {y}
}}
""")


def given_to(layer: Layer) -> list[NDArray[np.float32]]:
    return [
        rng(0, index).normal(size=shape).astype(np.float32) for index, shape in enumerate(layer.shapes()[:2])
    ]


@cache
def _xla() -> HloBackend:
    return open_backend("xla", 1)


def compiled(module: EditableModule, arguments: Sequence[NDArray[np.float32]]) -> NDArray[Any]:
    """Compute by XLA: the interpreter ends the process at some convolutions."""
    backend = _xla()
    executable = backend.compile(entry_text(finished(module), module.function))
    return backend.get(executable([backend.put(argument) for argument in arguments])[0])


pairs = st.tuples(st.integers(1, 2), st.integers(1, 2))
layers = st.builds(
    Layer,
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    inputs=st.just(3),
    outputs=st.sampled_from([3, 4]),
    groups=st.just(1),
    stride=pairs,
    dilation=pairs,
    padding=st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * 2),
    layouts=st.tuples(*map(st.sampled_from, (list(LAYOUTS), list(KERNELS), list(LAYOUTS)))),
) | st.builds(
    Layer,
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    inputs=st.just(3),
    outputs=st.just(3),
    groups=st.just(3),
    stride=pairs,
    dilation=pairs,
    padding=st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * 2),
    layouts=st.tuples(*map(st.sampled_from, (list(LAYOUTS), list(KERNELS), list(LAYOUTS)))),
)


@given(layers)
@settings(max_examples=examples(20))
def test_convolutions_of_all_kinds_give_the_same_in_their_other_form(layer: Layer) -> None:
    program = layer.program()
    (edit,) = Lower.enumerate(original(program))
    assert edit.form == ("slices" if layer.groups > 1 else "product")
    module = replay(program, Candidate((edit,)))
    assert "convolution" not in module.text()
    wanted, found = (compiled(each, given_to(layer)) for each in (original(program), module))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


PLAIN = Layer((3, 3), 3, 4, 1, (1, 1), (1, 1), ((1, 1), (1, 1)), ("NHWC", "HWIO", "NHWC"))


def value(*edits: Edit) -> Any:
    return compiled(replay(PLAIN.program(), Candidate(edits)), given_to(PLAIN))


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Lower("0", "slices"), "has no form 'slices'"),
        (Lower("0", "fast"), "Known: product, slices"),
        (Lower("1", "product"), "may not be changed"),
        (Narrow((), "bf16"), "no operation is named"),
        (Narrow(("0",), "i8"), "unknown type of floats"),
        (Narrow(("0",), "f64"), "not a product of floats wider than f64"),
        (Narrow(("1",), "bf16"), "may not be changed"),
    ],
)
def test_what_cannot_be_is_refused(edit: Edit, reason: str) -> None:
    assert_refused(PLAIN.program(), reason, edit)


def test_a_convolution_of_a_gradient_is_left_alone() -> None:
    text = PLAIN.program().text.replace("window = {", "window = {reverse = [true, true], ", 1)
    assert "reverse = [true, true]" in text
    assert not Lower.enumerate(original(program_from(text)))
    assert not Lower.enumerate(original(chain()))


def test_narrower_numbers_are_rounded_as_numpy_rounds() -> None:
    """To float16, which NumPy has; the sums stay in float32."""
    image, kernel = given_to(PLAIN)
    rounded = [part.astype(np.float16).astype(np.float32) for part in (image, kernel)]
    wanted = compiled(original(PLAIN.program()), rounded)
    np.testing.assert_allclose(value(Narrow(("0",), "f16")), wanted, rtol=1e-5, atol=1e-5)
    assert not np.array_equal(value(Narrow(("0",), "bf16")), value())
    np.testing.assert_allclose(value(Narrow(("0",), "bf16")), value(), rtol=0.1, atol=0.1)


def test_an_operation_is_narrowed_once() -> None:
    module = replay(PLAIN.program(), Candidate((Narrow(("0",)),)))
    assert Narrow.match(original(PLAIN.program())) == ("0",)
    assert Narrow.match(module) == ()
    assert [str(type_) for type_ in module.infos["0"].operands] == [
        "tensor<2x6x5x3xbf16>",
        "tensor<3x3x3x4xbf16>",
    ]


def test_the_framework_s_form_of_a_network_becomes_products_and_slices() -> None:
    """All 52 of its convolutions; then it can be tiled, cropped and narrowed as the other form."""
    program = read_program(EXAMPLES / "mobilenet_original.mlir")
    every = Lower.enumerate(original(program))
    assert [edit.form for edit in every].count("slices") == 17
    assert len(every) == 52
    module = replay(program, Candidate((*every, TileBatch(10, loop=True), Shrink("arg158", 30))))
    text = entry_text(finished(module), module.function)
    assert "convolution" not in text
    assert text.count("dot_general") == 36
    assert len(Narrow.match(module)) == 36
