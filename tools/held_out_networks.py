"""ONNX models of families that `planish compile` was not developed with, with random weights.

They show how it does on models that it has not seen: `HELD_OUT` has each at its usual size.
`python benchmarks/networks.py swin whisper` compiles and times some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from network_models import ModelWriter


def squeezenet(path: Path, size: int = 224) -> Path:
    """Write SqueezeNet 1.1."""
    w = ModelWriter()

    def fire(x: str, inner: int, narrow: int, wide: int) -> str:
        x = w.add("Relu", w.conv(x, inner, narrow, 1))
        parts = (w.add("Relu", w.conv(x, narrow, wide, window)) for window in (1, 3))
        return w.add("Concat", *parts, axis=1)

    def pool(x: str) -> str:
        return w.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)

    x = w.add("Conv", w.input("x", (1, 3, size, size)), w.weight(64, 3, 3, 3), w.weight(64), strides=[2, 2])
    x, inner = pool(w.add("Relu", x)), 64
    for index, (narrow, wide) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192),
                                            (64, 256), (64, 256))):  # fmt: skip
        x, inner = fire(x, inner, narrow, wide), 2 * wide
        x = pool(x) if index in (1, 3) else x
    x = w.add("GlobalAveragePool", w.add("Relu", w.conv(x, inner, 1000, 1)))
    return w.save(path, w.add("Flatten", x))


def shufflenet(path: Path, size: int = 224, channels: Sequence[int] = (24, 116, 232, 464, 1024)) -> Path:
    """Write ShuffleNetV2, whose channels are split, joined and shuffled."""
    w = ModelWriter()

    def shuffled(x: str, count: int, side: int) -> str:
        x = w.add("Reshape", x, w.whole(1, 2, count // 2, side, side))
        return w.add("Reshape", w.add("Transpose", x, perm=[0, 2, 1, 3, 4]), w.whole(1, count, side, side))

    def branch(x: str, inner: int, outer: int, stride: int) -> str:
        x = w.add("Relu", w.conv(x, inner, outer, 1))
        return w.add("Relu", w.conv(w.conv(x, outer, outer, 3, stride, outer), outer, outer, 1))

    x = w.add("Relu", w.conv(w.input("x", (1, 3, size, size)), 3, channels[0], 3, 2))
    x = w.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    side, inner = size // 4, channels[0]
    for outer, count in zip(channels[1:-1], (4, 8, 4), strict=True):
        half, side = outer // 2, -(-side // 2)
        kept = w.add("Relu", w.conv(w.conv(x, inner, inner, 3, 2, inner), inner, half, 1))
        x = shuffled(w.add("Concat", kept, branch(x, inner, half, 2), axis=1), outer, side)
        for _ in range(count - 1):
            kept, moved = w.add("Split", x, w.whole(half, half), axis=1, count=2)
            x = shuffled(w.add("Concat", kept, branch(moved, half, half, 1), axis=1), outer, side)
        inner = outer
    x = w.add("Relu", w.conv(x, inner, channels[-1], 1))
    x = w.add("ReduceMean", x, axes=[2, 3], keepdims=0)
    return w.save(path, w.linear(x, channels[-1], 1000))


GHOSTNET: Sequence[tuple[int, int, int, bool, int]] = (
    (3, 16, 16, False, 1), (3, 48, 24, False, 2), (3, 72, 24, False, 1), (5, 72, 40, True, 2),
    (5, 120, 40, True, 1), (3, 240, 80, False, 2), (3, 200, 80, False, 1), (3, 184, 80, False, 1),
    (3, 184, 80, False, 1), (3, 480, 112, True, 1), (3, 672, 112, True, 1), (5, 672, 160, True, 2),
    (5, 960, 160, False, 1), (5, 960, 160, True, 1), (5, 960, 160, False, 1), (5, 960, 160, True, 1),
)  # fmt: skip
"""Window, wide channels, channels, squeeze-and-excitation, stride of GhostNet."""


def ghostnet(
    path: Path, size: int = 224, blocks: Sequence[tuple[int, int, int, bool, int]] = GHOSTNET
) -> Path:
    """Write GhostNet: half of the channels are computed of the other half by depthwise convolutions."""
    w = ModelWriter()

    def ghost(x: str, inner: int, outer: int, *, acts: bool) -> str:
        half = outer // 2
        x = w.conv(x, inner, half, 1)
        x = w.add("Relu", x) if acts else x
        y = w.conv(x, half, half, 3, 1, half)
        return w.add("Concat", x, w.add("Relu", y) if acts else y, axis=1)

    x, inner = w.add("Relu", w.conv(w.input("x", (1, 3, size, size)), 3, 16, 3, 2)), 16
    for window, wide, outer, excites, stride in blocks:
        y = ghost(x, inner, wide, acts=True)
        y = w.conv(y, wide, wide, window, stride, wide) if stride > 1 else y
        if excites:
            gate = w.add("Relu", w.conv(w.add("GlobalAveragePool", y), wide, wide // 4, 1))
            y = w.add("Mul", y, w.add("HardSigmoid", w.conv(gate, wide // 4, wide, 1)))
        y = ghost(y, wide, outer, acts=False)
        if inner != outer or stride > 1:
            x = w.conv(w.conv(x, inner, inner, window, stride, inner), inner, outer, 1)
        x, inner = w.add("Add", x, y), outer
    x = w.add("GlobalAveragePool", w.add("Relu", w.conv(x, inner, 960, 1)))
    x = w.add("Flatten", w.add("Relu", w.conv(x, 960, 1280, 1)))
    return w.save(path, w.linear(x, 1280, 1000))


def _grouped(
    path: Path, size: int, stem: int, stages: Sequence[tuple[int, int, int]], group: int, *, excites: bool
) -> Path:
    """Write a residual network whose 3x3 convolutions have groups.

    Args:
        path: of the model.
        size: of the image.
        stem: channels of the first layer; of 7x7 and a pool, unless channels are excited.
        stages: blocks, channels in the blocks and after them.
        group: channels of a group; of negative numbers the count of groups.
        excites: whether blocks have squeeze-and-excitation.
    """
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (1, 3, size, size)), 3, stem, 3 if excites else 7, 2))
    x = x if excites else w.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inner = stem
    for stage, (count, narrow, outer) in enumerate(stages):
        for block in range(count):
            stride = 2 if not block and (stage or excites) else 1
            y = w.add("Relu", w.batch_norm(w.conv(x, inner, narrow, 1), narrow))
            groups = narrow // group if group > 0 else -group
            y = w.add("Relu", w.batch_norm(w.conv(y, narrow, narrow, 3, stride, groups), narrow))
            if excites:
                gate = w.conv(w.add("GlobalAveragePool", y), narrow, inner // 4, 1)
                gate = w.conv(w.add("Relu", gate), inner // 4, narrow, 1)
                y = w.add("Mul", y, w.add("Sigmoid", gate))
            y = w.batch_norm(w.conv(y, narrow, outer, 1), outer)
            x = x if block else w.batch_norm(w.conv(x, inner, outer, 1, stride), outer)
            x, inner = w.add("Relu", w.add("Add", x, y)), outer
    return w.save(path, w.linear(w.add("Flatten", w.add("GlobalAveragePool", x)), inner, 1000))


def resnext(path: Path, size: int = 224, blocks: Sequence[int] = (3, 4, 6, 3)) -> Path:
    """Write ResNeXt-50 of 32 groups."""
    stages = [(count, 128 << stage, 256 << stage) for stage, count in enumerate(blocks)]
    return _grouped(path, size, 64, stages, -32, excites=False)


def regnet(
    path: Path,
    size: int = 224,
    blocks: Sequence[int] = (1, 3, 6, 6),
    widths: Sequence[int] = (48, 104, 208, 440),
) -> Path:
    """Write RegNetY-400MF."""
    stages = [(count, width, width) for count, width in zip(blocks, widths, strict=True)]
    return _grouped(path, size, 32, stages, 8, excites=True)


def convnext(path: Path, size: int = 224, width: int = 96, blocks: Sequence[int] = (3, 3, 9, 3)) -> Path:
    """Write ConvNeXt-Tiny, which normalizes over the channels of each pixel."""
    w = ModelWriter()

    def norm(x: str, width: int) -> str:
        x = w.layer_norm(w.add("Transpose", x, perm=[0, 2, 3, 1]), width)
        return w.add("Transpose", x, perm=[0, 3, 1, 2])

    x = w.input("x", (1, 3, size, size))
    x = norm(w.add("Conv", x, w.weight(width, 3, 4, 4), w.weight(width), strides=[4, 4]), width)
    for stage, count in enumerate(blocks):
        if stage:
            weights = w.weight(2 * width, width, 2, 2), w.weight(2 * width)
            x, width = w.add("Conv", norm(x, width), *weights, strides=[2, 2]), 2 * width
        for _ in range(count):
            y = w.add("Transpose", w.conv(x, width, width, 7, 1, width), perm=[0, 2, 3, 1])
            y = w.gelu(w.dense(w.layer_norm(y, width), width, 4 * width))
            y = w.add("Mul", w.dense(y, 4 * width, width), w.positive(width))
            x = w.add("Add", x, w.add("Transpose", y, perm=[0, 3, 1, 2]))
    x = w.layer_norm(w.add("ReduceMean", x, axes=[2, 3], keepdims=0), width)
    return w.save(path, w.linear(x, width, 1000))


def swin(
    path: Path,
    size: int = 224,
    width: int = 96,
    blocks: Sequence[int] = (2, 2, 6, 2),
    heads: int = 3,
    window: int = 7,
) -> Path:
    """Write Swin-T: attention within windows, every second time of an image that is rolled by half a one."""
    w = ModelWriter()

    def rolled(x: str, axis: int, by: int) -> str:
        first, second = (
            w.add("Slice", x, w.whole(start), w.whole(end), w.whole(axis))
            for start, end in ((by, 1 << 30), (0, by))
        )
        return w.add("Concat", first, second, axis=axis)

    def windows(x: str, side: int, width: int, *, back: bool) -> str:
        """Divide an image into windows, or join these."""
        count, inside = side // window, window
        shape = (1, count, count, inside, inside, width) if back else (1, count, inside, count, inside, width)
        x = w.add("Transpose", w.add("Reshape", x, w.whole(*shape)), perm=[0, 1, 3, 2, 4, 5])
        flat = (1, side, side, width) if back else (count * count, inside * inside, width)
        return w.add("Reshape", x, w.whole(*flat))

    def attention(x: str, width: int, heads: int, mask: str) -> str:
        tokens = window * window
        qkv = w.add("Reshape", w.dense(x, width, 3 * width), w.whole(-1, tokens, 3, heads, width // heads))
        q, k, v = (
            w.add("Gather", w.add("Transpose", qkv, perm=[2, 0, 3, 1, 4]), w.constant(np.array(i)), axis=0)
            for i in range(3)
        )
        q = w.add("Mul", q, w.number((width / heads) ** -0.5))
        scores = w.add("MatMul", q, w.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = w.add("Add", scores, w.weight(1, heads, tokens, tokens))
        scores = w.add("Add", scores, mask) if mask else scores
        y = w.add("Transpose", w.add("MatMul", w.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return w.dense(w.add("Reshape", y, w.whole(-1, tokens, width)), width, width)

    x = w.input("x", (1, 3, size, size))
    x = w.add("Conv", x, w.weight(width, 3, 4, 4), w.weight(width), strides=[4, 4])
    x, side = w.layer_norm(w.add("Transpose", x, perm=[0, 2, 3, 1]), width), size // 4
    for stage, count in enumerate(blocks):
        if stage:
            corners = [
                w.add("Slice", x, w.whole(i, j), w.whole(1 << 30, 1 << 30), w.whole(1, 2), w.whole(2, 2))
                for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))
            ]
            x = w.layer_norm(w.add("Concat", *corners, axis=3), 4 * width)
            x = w.add("MatMul", x, w.weight(4 * width, 2 * width))
            side, width, heads = side // 2, 2 * width, 2 * heads
        for block in range(count):
            shift = window // 2 if block % 2 and side > window else 0
            y = w.layer_norm(x, width)
            for axis in (1, 2) if shift else ():
                y = rolled(y, axis, shift)
            mask = w.constant(_swin_mask(side, window, shift)) if shift else ""
            y = attention(windows(y, side, width, back=False), width, heads, mask)
            y = windows(y, side, width, back=True)
            for axis in (1, 2) if shift else ():
                y = rolled(y, axis, side - shift)
            x = w.add("Add", x, y)
            y = w.gelu(w.dense(w.layer_norm(x, width), width, 4 * width))
            x = w.add("Add", x, w.dense(y, 4 * width, width))
    x = w.add("ReduceMean", w.layer_norm(x, width), axes=[1, 2], keepdims=0)
    return w.save(path, w.linear(x, width, 1000))


def _swin_mask(side: int, window: int, shift: int) -> np.ndarray:
    """Return -100 for pairs of pixels in a window that were not neighbors before the image was rolled."""
    part = np.zeros(side, np.int64)
    part[side - window : side - shift], part[side - shift :] = 1, 2
    parts = 3 * part[:, None] + part[None, :]
    count = side // window
    flat = parts.reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(count * count, 1, -1)
    apart = flat[:, :, :, None] != flat[:, :, None, :]
    return np.where(apart, -100, 0).astype(np.float32)


def whisper(
    path: Path, frames: int = 1000, bands: int = 80, layers: int = 4, width: int = 384, heads: int = 6
) -> Path:
    """Write the encoder of Whisper-tiny, of a third of its frames: two convolutions, and attention."""
    w = ModelWriter()
    x = w.add(
        "Conv", w.input("x", (1, bands, frames)), w.weight(width, bands, 3), w.weight(width), pads=[1, 1]
    )
    weights = w.weight(width, width, 3), w.weight(width)
    x = w.gelu(w.add("Conv", w.gelu(x), *weights, pads=[1, 1], strides=[2]))
    x = w.add("Add", w.add("Transpose", x, perm=[0, 2, 1]), w.weight(frames // 2, width))
    for _ in range(layers):
        x = w.add("Add", x, w.attention(w.layer_norm(x, width), width, heads))
        y = w.gelu(w.dense(w.layer_norm(x, width), width, 4 * width))
        x = w.add("Add", x, w.dense(y, 4 * width, width))
    return w.save(path, w.layer_norm(x, width))


HELD_OUT: Mapping[str, Callable[[Path], Path]] = {
    "squeezenet": squeezenet,
    "shufflenet-v2": shufflenet,
    "ghostnet": ghostnet,
    "regnet": regnet,
    "resnext50": resnext,
    "convnext": convnext,
    "swin": swin,
    "whisper": whisper,
}
"""Name of a network to what writes its model at its usual size."""
