"""Random networks of images: blocks of convolutions, whose kernels share memory and are computed in strips.

`fuzz_networks.py` draws operators of small tensors one by one. What is rewritten in groups of operators, and
only for images of many rows, is seldom among them: strips, gates, Concat and Slice without copies, Winograd's
algorithm. Here whole blocks are drawn, and the second-level cache is taken to be small.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
from numpy.typing import NDArray

from network_models import ModelWriter
from planish.core import Cache, Target
from planish.levels.loops.backends import this_machine

CACHES = (1 << 11, 1 << 13, 1 << 15)
"""Bytes of the second-level cache: of the images, a few rows to all."""
_CHANNELS = (1, 3, 4, 8, 16, 17, 24, 40)
_ACTIVATIONS = ("Relu", "HardSwish", "Sigmoid", "Tanh", "swish", "")


@contextmanager
def small_cache(size: int) -> Generator[None]:
    """Compile networks for this machine, but for the size of its second-level cache."""

    def machine(cores: int) -> Target:
        target = this_machine(cores)
        assert target.machine is not None
        return replace(target, machine=replace(target.machine, caches=(Cache(2, size, 64),)))

    with patch("planish.network.compiler.this_machine", machine):
        yield


@dataclass
class Drawing:
    """A network of images in the making.

    Args:
        random: makes all choices.
        writer: of the nodes.
        x: the image that the next block reads.
        shape: its channels, height and width.
        older: images of before, with their shapes.
    """

    random: np.random.Generator
    writer: ModelWriter
    x: str
    shape: tuple[int, int, int]
    older: list[tuple[str, tuple[int, int, int]]]

    def choose(self, options: Sequence[Any]) -> Any:
        """Return one of several options."""
        return options[int(self.random.integers(len(options)))]

    def happens(self, share: float) -> bool:
        """Return whether something of that probability is done."""
        return bool(self.random.random() < share)

    def act(self, x: str) -> str:
        """Add an activation, or none."""
        name = self.choose(_ACTIVATIONS)
        return self.writer.swish(x) if name == "swish" else self.writer.add(name, x) if name else x

    def conv(self, x: str, outer: int, window: int, stride: int = 1, *, depthwise: bool = False) -> str:
        """Add a convolution of an image that has the channels of the present one."""
        inner = self.shape[0]
        found = self.act(self.writer.conv(x, inner, outer, window, stride, inner if depthwise else 1))
        _, height, width = self.shape
        self.shape = outer, -(-height // stride), -(-width // stride)
        return found

    @property
    def stride(self) -> int:
        """Draw a stride, 1 for small images."""
        return 2 if min(self.shape[1:]) > 7 and self.happens(0.25) else 1

    def gate(self, x: str) -> str:
        """Add squeeze-and-excitation."""
        w, channels = self.writer, self.shape[0]
        y = w.add("Relu", w.conv(w.add("GlobalAveragePool", x), channels, 4, 1))
        return w.add("Mul", x, w.add("Sigmoid", w.conv(y, 4, channels, 1)))


def _convolution(d: Drawing) -> str:
    return d.conv(d.x, d.choose(_CHANNELS), d.choose((1, 1, 3, 3, 5, 7)), d.stride)


def _residual(d: Drawing) -> str:
    """Draw an inverted residual block, or a part of one."""
    x, before = d.x, d.shape
    if d.happens(0.8):
        x = d.conv(x, d.choose((2, 3, 6)) * d.shape[0], 1)
    x = d.conv(x, d.shape[0], d.choose((3, 5)), d.stride, depthwise=True)
    x = d.gate(x) if d.happens(0.4) else x
    x = d.conv(x, before[0] if d.happens(0.7) else d.choose(_CHANNELS), 1)
    return d.writer.add("Add", d.x, x) if d.shape == before else x


def _dense(d: Drawing) -> str:
    """Draw Concat of an image and what is computed of it, a few times."""
    for _ in range(int(d.random.integers(1, 4))):
        before, y = d.shape, d.conv(d.x, d.choose(_CHANNELS), d.choose((1, 3)))
        parts = [(d.x, before[0]), (y, d.shape[0])]
        skips = [(name, s[0]) for name, s in d.older if s[1:] == before[1:] and name != d.x]
        parts += [d.choose(skips)] if skips and d.happens(0.4) else []
        order = [parts[i] for i in d.random.permutation(len(parts))]
        d.x = d.writer.add("Concat", *(name for name, _ in order), axis=1)
        d.shape = (sum(count for _, count in order), *before[1:])
    return d.x


def _split(d: Drawing) -> str:
    """Draw a convolution of some channels, which are joined with the others again."""
    (channels, height, width), w = d.shape, d.writer
    if channels < 2:
        return d.x
    first = int(d.random.integers(1, channels))
    a, b = w.add("Split", d.x, w.whole(first, channels - first), axis=1, count=2)
    d.shape = channels - first, height, width
    y = d.conv(b, d.choose(_CHANNELS), d.choose((1, 3)))
    parts = [(a, first), (y, d.shape[0]), *([(b, channels - first)] if d.happens(0.4) else [])]
    d.shape = sum(count for _, count in parts), height, width
    return w.add("Concat", *(name for name, _ in parts), axis=1)


def _pool(d: Drawing) -> str:
    if min(d.shape[1:]) < 4:
        return d.x
    c, height, width = d.shape
    d.shape = (c, (height - 1) // 2 + 1, (width - 1) // 2 + 1)
    operator = d.choose(("MaxPool", "AveragePool"))
    return d.writer.add(operator, d.x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])


def _enlarge(d: Drawing) -> str:
    c, height, width = d.shape
    if height > 12:
        return d.x
    outer = d.choose(_CHANNELS)
    d.shape = (outer, 2 * height, 2 * width)
    weights = d.writer.weight(c, outer, 2, 2), d.writer.weight(outer)
    return d.act(d.writer.add("ConvTranspose", d.x, *weights, strides=[2, 2]))


BLOCKS: Sequence[Callable[[Drawing], str]] = (
    _convolution, _convolution, _residual, _residual, _residual, _dense, _dense, _split, _pool, _enlarge,
)  # fmt: skip


def draw_images(seed: int) -> tuple[onnx.ModelProto, Mapping[str, NDArray[Any]]]:
    """Draw a network, and inputs of it."""
    random, writer = np.random.default_rng([seed, 2]), ModelWriter(seed)
    batch = 1 if random.random() < 0.85 else 2
    channels, height, width = (int(random.choice(each)) for each in (_CHANNELS, range(5, 33), range(5, 33)))
    x = writer.input("x", (batch, channels, height, width))
    d = Drawing(random, writer, x, (channels, height, width), [])
    outputs = list[str]()
    for _ in range(int(random.integers(2, 7))):
        d.x = d.choose(BLOCKS)(d)
        d.older.append((d.x, d.shape))
        if d.happens(0.2):
            outputs.append(d.x)
    outputs.append(d.x if d.happens(0.5) else writer.add("GlobalAveragePool", d.x))
    outputs = [writer.add("Identity", name) if name == "x" else name for name in outputs]
    feed = {"x": random.standard_normal((batch, channels, height, width)).astype(np.float32)}
    return writer.model(*dict.fromkeys(outputs)), feed
