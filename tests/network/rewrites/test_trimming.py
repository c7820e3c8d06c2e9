"""Windows of convolutions on images that are smaller than they."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amounts import examples
from network.compiled import assert_same, compiled
from network_models import ModelWriter


@settings(max_examples=examples(6))
@given(
    size=st.tuples(*[st.integers(1, 4)] * 2),
    window=st.tuples(*[st.integers(1, 5)] * 2),
    strides=st.tuples(*[st.integers(1, 3)] * 2),
    dilations=st.tuples(*[st.integers(1, 2)] * 2),
    pads=st.tuples(*[st.integers(0, 4)] * 4),
)
@example(size=(1, 1), window=(1, 1), strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 1))
def test_small_images(
    tmp_path_factory: pytest.TempPathFactory,
    size: tuple[int, int],
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    needed = [max(0, dilations[d] * (window[d] - 1) + 1 - size[d] - pads[d] - pads[d + 2]) for d in range(2)]
    padded = [pads[0] + needed[0], pads[1] + needed[1], pads[2], pads[3]]
    w = ModelWriter()
    x = w.add(
        "Conv", w.input("x", (2, 3, *size)), w.weight(5, 3, *window), w.weight(5),
        strides=strides, dilations=dilations, pads=padded,
    )  # fmt: skip
    path = w.save(tmp_path_factory.mktemp("net") / "m.onnx", w.add("Relu", x))
    assert_same(compiled(path).network, path)


def test_taps_that_read_padding_alone_are_not_computed(tmp_path_factory: pytest.TempPathFactory) -> None:
    w = ModelWriter()
    path = w.save(tmp_path_factory.mktemp("net") / "m.onnx", w.conv(w.input("x", (1, 6, 1, 9)), 6, 8, 5))
    found = compiled(path)
    (layer,) = found.network.manifest["layers"]
    assert layer["flops"] <= 2 * 9 * 6 * 8 * 5 + 2 * 9 * 8
    assert_same(found.network, path)
