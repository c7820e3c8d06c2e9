"""Networks of JAX with random shapes, from which a table of edits' gains is made.

They are of ten families, each with the first parameters that it would be trained from; `modules.py` has six
others, which no table has learnt from.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
from jax import lax
from modules import (
    CLASSES,
    SIDE,
    Made,
    Tree,
    answering,
    block,
    convolved,
    cross_entropy,
    drawn,
    layer_norm,
    ones,
    training,
    zeros,
)
from numpy.random import Generator

from planish.core import rng

SEED = 4711
Family = Callable[[Generator], Made]


def networks(count: int) -> Iterator[tuple[str, Callable[[], Made]]]:
    """Yield so many networks by name, one family after the other."""
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        yield f"{family.__name__}-{number}", lambda number=number, family=family: family(rng(SEED, number))


def _one_of(generator: Generator, values: Sequence[int]) -> int:
    return values[int(generator.integers(len(values)))]


def perceptron(generator: Generator) -> Made:
    """Make fully connected layers."""
    sizes = [_one_of(generator, (64, 96, 128, 256)) for _ in range(int(generator.integers(3, 6)))]
    act = (jax.nn.relu, jnp.tanh, jax.nn.gelu)[int(generator.integers(3))]
    params: Tree = {
        str(i): {"w": drawn(a, b), "b": zeros(b)}
        for i, (a, b) in enumerate(zip(sizes, [*sizes[1:], CLASSES], strict=True))
    }

    def network(p: Tree, x: jax.Array) -> jax.Array:
        for i in range(len(p)):
            x = x @ p[str(i)]["w"] + p[str(i)]["b"]
            x = act(x) if i + 1 < len(p) else x
        return x

    return answering(params, network, (_one_of(generator, (16, 64, 128)), sizes[0]), "float32")


def convolutional(generator: Generator) -> Made:
    """Make convolutions with pooling between them, then a product."""
    side, depth = _one_of(generator, (12, 16, 24)), int(generator.integers(2, 4))
    widths = [3, *(_one_of(generator, (8, 16, 24, 32)) for _ in range(depth))]
    params: Tree = {str(i): drawn(3, 3, a, b) for i, (a, b) in enumerate(itertools.pairwise(widths))}
    params["out"] = drawn(widths[-1], CLASSES)

    def network(p: Tree, x: jax.Array) -> jax.Array:
        for i in range(depth):
            x = jax.nn.relu(convolved(x, p[str(i)]))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.mean((1, 2)) @ p["out"]

    return answering(params, network, (_one_of(generator, (8, 16)), side, side, 3), "float32")


def residual(generator: Generator) -> Made:
    """Make residual blocks of two convolutions each."""
    side, width = _one_of(generator, (8, 12, 16)), _one_of(generator, (8, 16, 24))
    blocks = int(generator.integers(2, 5))
    params: Tree = {"in": drawn(3, 3, 3, width), "out": drawn(width, CLASSES)}
    params |= {
        str(i): {"a": drawn(3, 3, width, width), "b": drawn(3, 3, width, width), "s": ones(width)}
        for i in range(blocks)
    }

    def network(p: Tree, x: jax.Array) -> jax.Array:
        x = convolved(x, p["in"])
        for i in range(blocks):
            q = p[str(i)]
            x = jax.nn.relu(x + convolved(jax.nn.relu(convolved(x, q["a"]) * q["s"]), q["b"]))
        return x.mean((1, 2)) @ p["out"]

    return answering(params, network, (_one_of(generator, (4, 8)), side, side, 3), "float32")


def separable(generator: Generator) -> Made:
    """Make inverted blocks: a wide product, a depthwise convolution, a narrow product, and a sum."""
    side, width, wide = (
        _one_of(generator, (8, 12, 16)),
        _one_of(generator, (8, 16)),
        _one_of(generator, (2, 4)),
    )
    blocks = int(generator.integers(1, 4))
    params: Tree = {"in": drawn(3, 3, 3, width), "out": drawn(width, CLASSES)}
    params |= {
        str(i): {
            "up": drawn(1, 1, width, wide * width),
            "depth": drawn(3, 3, 1, wide * width),
            "down": drawn(1, 1, wide * width, width),
        }
        for i in range(blocks)
    }

    def network(p: Tree, x: jax.Array) -> jax.Array:
        x = convolved(x, p["in"])
        for i in range(blocks):
            q = p[str(i)]
            h = jnp.clip(convolved(x, q["up"]), 0, 6)
            h = lax.conv_general_dilated(
                h, q["depth"], (1, 1), "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=h.shape[-1],
            )  # fmt: skip
            x = x + convolved(jnp.clip(h, 0, 6), q["down"])
        return x.mean((1, 2)) @ p["out"]

    return answering(params, network, (_one_of(generator, (4, 8)), side, side, 3), "float32")


def encoder(generator: Generator) -> Made:
    """Make blocks of a transformer, one after the other."""
    width, length = 64, _one_of(generator, (12, 24, 48))
    layers = int(generator.integers(1, 4))

    def params_of() -> Tree:
        products = {name: drawn(width, width) for name in "qkvo"}
        wide = {"f1": drawn(width, 4 * width), "f2": drawn(4 * width, width)}
        return {**products, **wide, "g1": ones(width), "g2": ones(width)}

    params: Tree = {str(i): params_of() for i in range(layers)}
    params["out"] = drawn(width, CLASSES)

    def network(p: Tree, x: jax.Array) -> jax.Array:
        for i in range(layers):
            x = block(p[str(i)], x)
        return x.mean(1) @ p["out"]

    return answering(params, network, (_one_of(generator, (4, 8)), length, width), "float32")


def recurrent(generator: Generator) -> Made:
    """Make a recurrent network whose steps are a loop: plain, or with a gate."""
    width, length = _one_of(generator, (32, 64, 96)), _one_of(generator, (10, 20, 30))
    gated = bool(generator.integers(2))
    params: Tree = {"wx": drawn(32, width), "wh": drawn(width, width), "wz": drawn(32, width)}
    params["out"] = drawn(width, CLASSES)

    def network(p: Tree, x: jax.Array) -> jax.Array:
        def step(h: jax.Array, now: jax.Array) -> tuple[jax.Array, None]:
            new = jnp.tanh(now @ p["wx"] + h @ p["wh"])
            z = jax.nn.sigmoid(now @ p["wz"])
            return (z * h + (1 - z) * new if gated else new), None

        last, _ = lax.scan(step, jnp.zeros((x.shape[0], width)), x.transpose(1, 0, 2))
        return last @ p["out"]

    return answering(params, network, (_one_of(generator, (8, 16, 32)), length, 32), "float32")


def patches(generator: Generator) -> Made:
    """Make a mixer of patches: products over positions, then over channels."""
    positions, width = _one_of(generator, (16, 36, 49)), _one_of(generator, (24, 32, 48))
    layers = int(generator.integers(2, 5))
    layer = {"t": (positions, positions), "c1": (width, 2 * width), "c2": (2 * width, width)}
    params: Tree = {str(i): {name: drawn(*shape) for name, shape in layer.items()} for i in range(layers)}
    params |= {"in": drawn(48, width), "out": drawn(width, CLASSES), "g": ones(width)}

    def network(p: Tree, x: jax.Array) -> jax.Array:
        h = x @ p["in"]
        for i in range(layers):
            q = p[str(i)]
            h = h + jnp.einsum("pq,bqc->bpc", q["t"], layer_norm(h, p["g"]))
            h = h + jax.nn.gelu(h @ q["c1"]) @ q["c2"]
        return h.mean(1) @ p["out"]

    return answering(params, network, (_one_of(generator, (8, 16, 32)), positions, 48), "float32")


def autoencoder(generator: Generator) -> Made:
    """Make layers that become narrow, and wide again."""
    wide, narrow = _one_of(generator, (128, 192, 256)), _one_of(generator, (16, 32, 64))
    sizes = [wide, wide // 2, narrow, wide // 2, wide]
    params: Tree = {str(i): drawn(a, b) for i, (a, b) in enumerate(itertools.pairwise(sizes))}

    def network(p: Tree, x: jax.Array) -> jax.Array:
        for i in range(4):
            x = x @ p[str(i)]
            x = jax.nn.relu(x) if i < 3 else jax.nn.sigmoid(x)
        return x

    return answering(params, network, (_one_of(generator, (32, 64, 128)), wide), "float32")


def perceptron_step(generator: Generator) -> Made:
    """Make a step of training fully connected layers, plain or with momentum."""
    width, rate = _one_of(generator, (32, 64, 128)), float(generator.choice((0.01, 0.03, 0.1)))
    params: Tree = {
        "w1": drawn(SIDE * SIDE, width),
        "b1": zeros(width),
        "w2": drawn(width, CLASSES),
        "b2": zeros(CLASSES),
    }

    def predicted(p: Tree, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x.reshape(x.shape[0], -1) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    return _trained(params, predicted, rate)


def convolutional_step(generator: Generator) -> Made:
    """Make a step of training a convolution and a product."""
    width, rate = _one_of(generator, (4, 8, 12)), float(generator.choice((0.01, 0.03, 0.1)))
    params: Tree = {"k": drawn(3, 3, 1, width), "w": drawn(SIDE * SIDE * width // 4, CLASSES)}

    def predicted(p: Tree, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(convolved(x, p["k"]))
        x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return x.reshape(x.shape[0], -1) @ p["w"]

    return _trained(params, predicted, rate)


def _trained(params: Tree, predicted: Callable[[Tree, jax.Array], jax.Array], rate: float) -> Made:
    """Make a step of gradient descent for a network."""

    def step(state: Tree, images: jax.Array, labels: jax.Array) -> Tree:
        def loss(p: Tree) -> jax.Array:
            return cross_entropy(predicted(p, images), labels)

        def less(p: jax.Array, g: jax.Array) -> jax.Array:
            return p - rate * g

        params = state["params"]
        return {"params": jax.tree.map(less, params, jax.grad(loss)(params))}

    def predict(state: Tree, images: jax.Array) -> jax.Array:
        return predicted(state["params"], images)

    return training({"params": params}, step, predict)


FAMILIES: Sequence[Family] = (
    perceptron,
    convolutional,
    encoder,
    residual,
    recurrent,
    separable,
    patches,
    perceptron_step,
    autoencoder,
    convolutional_step,
)
