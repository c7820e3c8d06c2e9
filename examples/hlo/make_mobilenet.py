"""Write mobilenet.mlir and mobilenet_original.mlir: MobileNetV2 for CIFAR-10, on 100 images (GEVO-ML, 6.1).

The weights are arguments. Each batch normalization is a scale, `gamma / sqrt(variance + epsilon)`, and a
shift, `beta - mean * scale`. The two modules compute the same and take the same arguments:

- `mobilenet_original.mlir` has convolutions alone, as frameworks export it;
- `mobilenet.mlir` is the honest best form for CPUs, where XLA's depthwise convolution is so slow that to
  delete it would be a gain: depthwise convolutions are sums of nine slices, 1x1 ones are matrix products.

`python examples/hlo/make_mobilenet.py`
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax

from planish.levels.hlo import Program, from_jax

CLASSES, BATCH, SIDE, WIDTH = 10, 100, 32, 0.75
STEM, LAST = 32, 1280
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 1),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks and stride of each stage; the strides are smaller than for large images."""

Weights = Mapping[str, jax.Array]
Convolution = Callable[[jax.Array, jax.Array, int], jax.Array]


@dataclass(frozen=True)
class Block:
    """An inverted residual block: a 1x1 convolution, a depthwise one of 3x3, and a 1x1 one."""

    name: str
    channels: int
    expanded: int
    out: int
    stride: int


def scaled(channels: int, width: float) -> int:
    """Scale a number of channels, in steps of 8."""
    return max(8, int(channels * width + 4) // 8 * 8)


def blocks(width: float = WIDTH) -> Iterator[Block]:
    """List the 17 blocks."""
    channels, number = scaled(STEM, width), 0
    for expansion, out, repeats, stride in STAGES:
        for repeat in range(repeats):
            number += 1
            wide = scaled(out, width)
            yield Block(f"block{number:02}", channels, channels * expansion, wide, 1 if repeat else stride)
            channels = wide


def shapes(width: float = WIDTH) -> dict[str, tuple[int, ...]]:
    """Give the arguments: name to shape. Kernels are height x width x inputs x outputs."""
    found: dict[str, tuple[int, ...]] = {}

    def convolution(name: str, kernel: tuple[int, int, int, int]) -> None:
        found[f"{name}.kernel"] = kernel
        found[f"{name}.scale"] = found[f"{name}.shift"] = kernel[3:]

    convolution("stem", (3, 3, 3, scaled(STEM, width)))
    out = 0
    for block in blocks(width):
        if block.expanded != block.channels:
            convolution(f"{block.name}.expand", (1, 1, block.channels, block.expanded))
        convolution(f"{block.name}.depthwise", (3, 3, 1, block.expanded))
        convolution(f"{block.name}.project", (1, 1, block.expanded, block.out))
        out = block.out
    convolution("last", (1, 1, out, LAST))
    return {**found, "classifier.weight": (LAST, CLASSES), "classifier.bias": (CLASSES,)}


def convolution(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    """Convolve with padding; depthwise where the kernel has one input."""
    pad = kernel.shape[0] // 2
    layout = ("NHWC", "HWIO", "NHWC")
    groups = x.shape[3] if kernel.shape[2] == 1 else 1
    strides, padding = (stride, stride), ((pad, pad), (pad, pad))
    return lax.conv_general_dilated(
        x, kernel, strides, padding, dimension_numbers=layout, feature_group_count=groups
    )


def convolution_for_cpus(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    """Convolve as a matrix product, or as a sum of nine slices, where XLA is faster so."""
    if kernel.shape[:2] == (1, 1):
        return lax.dot_general(x, kernel.reshape(kernel.shape[2:]), (((3,), (0,)), ((), ())))
    if kernel.shape[2] > 1:
        return convolution(x, kernel, stride)
    n, height, width, channels = x.shape
    x = lax.pad(x, jnp.float32(0), ((0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 0)))
    total = None
    for i in range(3):
        for j in range(3):
            ends = (n, i + height - (height - 1) % stride, j + width - (width - 1) % stride, channels)
            window = lax.slice(x, (0, i, j, 0), ends, (1, stride, stride, 1))
            tap = lax.slice(kernel, (i, j, 0, 0), (i + 1, j + 1, 1, channels))
            term = window * lax.broadcast_in_dim(tap, window.shape, (0, 1, 2, 3))
            total = term if total is None else total + term
    assert total is not None
    return total


def mobilenet(convolve: Convolution, width: float, w: Weights, images: jax.Array) -> jax.Array:
    """Give the logits of images, which are N x 32 x 32 x 3."""

    def layer(name: str, x: jax.Array, stride: int = 1, *, cut: bool = True) -> jax.Array:
        part = name.rpartition(".")[2]
        with jax.named_scope(part):
            x = convolve(x, w[f"{name}.kernel"], stride)
            scale, shift = (lax.broadcast_in_dim(w[f"{name}.{k}"], x.shape, (3,)) for k in ("scale", "shift"))
            x = x * scale + shift
            return lax.clamp(0.0, x, 6.0) if cut else x

    x = layer("stem", images)
    for block in blocks(width):
        with jax.named_scope(block.name):
            y = layer(f"{block.name}.expand", x) if block.expanded != block.channels else x
            y = layer(f"{block.name}.depthwise", y, block.stride)
            y = layer(f"{block.name}.project", y, cut=False)
            x = x + y if block.stride == 1 and block.channels == block.out else y
    x = layer("last", x)
    with jax.named_scope("classifier"):
        return x.mean(axis=(1, 2)) @ w["classifier.weight"] + w["classifier.bias"]


def program(*, original: bool, width: float = WIDTH, batch: int = BATCH) -> Program:
    """Make a module: the original form, or the one for CPUs."""
    convolve = convolution if original else convolution_for_cpus

    def network(w: Weights, images: jax.Array) -> jax.Array:
        return mobilenet(convolve, width, w, images)

    weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes(width).items()}
    return from_jax(network, weights, jax.ShapeDtypeStruct((batch, SIDE, SIDE, 3), jnp.float32))


def main() -> None:
    """Write the modules, and tell how large the weights are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=float, default=WIDTH, help="scales the numbers of channels")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    for name, original in (("mobilenet", False), ("mobilenet_original", True)):
        made = program(original=original, width=options.width)
        (options.folder / f"{name}.mlir").write_text(made.text)
    elements = sum(jnp.zeros(shape).size for shape in shapes(options.width).values())
    print(f"weights: {elements:,} numbers, {elements * 4 / 1e6:.1f} MB as float32")


if __name__ == "__main__":
    main()
