"""Six modules as users of JAX write them, with their first parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from planish.levels.hlo import Program, from_jax
from planish.levels.hlo.program import with_function

Tree = dict[str, Any]
SIDE, CLASSES, BATCH, WIDTH = 12, 10, 32, 64
IMAGES = jax.ShapeDtypeStruct((BATCH, SIDE, SIDE, 1), "float32")
LABELS = jax.ShapeDtypeStruct((BATCH,), "int32")
SCORED = jax.ShapeDtypeStruct((100, SIDE, SIDE, 1), "float32")


@dataclass(frozen=True)
class Made:
    """A module with what it begins with.

    Args:
        program: the module.
        weights: first parameters by name; those of an optimizer too.
        trains: whether it is a step of training, beside what scores it.
    """

    program: Program
    weights: Mapping[str, NDArray[Any]]
    trains: bool = False


def modules() -> Mapping[str, Callable[[], Made]]:
    """Name what makes each of them."""
    return {
        "batch normalization in training": batch_normalization,
        "Adam": adam,
        "GRU by scan": gru,
        "attention": attention,
        "language model, layers by scan": language_model,
        "mixer by vmap": mixer,
    }


def batch_normalization() -> Made:
    """Make a step of training with momentum, which keeps running means."""
    params: Tree = {
        "conv1": drawn(3, 3, 1, 16),
        "gamma": ones(16),
        "beta": zeros(16),
        "conv2": drawn(3, 3, 16, 16),
        "dense": drawn(576, CLASSES),
        "bias": zeros(CLASSES),
    }
    state: Tree = {"params": params, "momentum": like(params), "stats": {"mean": zeros(16), "var": ones(16)}}

    def network(p: Tree, stats: Tree, x: jax.Array, *, train: bool) -> tuple[jax.Array, Tree]:
        x = convolved(x, p["conv1"])
        mean, var = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if train else (stats["mean"], stats["var"])
        kept = {"mean": 0.9 * stats["mean"] + 0.1 * mean, "var": 0.9 * stats["var"] + 0.1 * var}
        x = jax.nn.relu((x - mean) * lax.rsqrt(var + 1e-5) * p["gamma"] + p["beta"])
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu(convolved(x, p["conv2"])).reshape(x.shape[0], -1)
        return x @ p["dense"] + p["bias"], kept

    def step(state: Tree, images: jax.Array, labels: jax.Array) -> Tree:
        def loss(p: Tree) -> tuple[jax.Array, Tree]:
            logits, stats = network(p, state["stats"], images, train=True)
            return cross_entropy(logits, labels), stats

        gradient, stats = jax.grad(loss, has_aux=True)(state["params"])
        momentum = joined(0.9, state["momentum"], 1.0, gradient)
        params = joined(1.0, state["params"], -0.05, momentum)
        return {"params": params, "momentum": momentum, "stats": stats}

    def predict(state: Tree, images: jax.Array) -> jax.Array:
        return network(state["params"], state["stats"], images, train=False)[0]

    return training(state, step, predict)


def adam() -> Made:
    """Make a step of training a perceptron by Adam."""
    params: Tree = {
        "w1": drawn(SIDE * SIDE, 128),
        "b1": zeros(128),
        "w2": drawn(128, 64),
        "b2": zeros(64),
        "w3": drawn(64, CLASSES),
        "b3": zeros(CLASSES),
    }
    state: Tree = {"params": params, "m": like(params), "v": like(params), "t": np.zeros((), "int32")}

    def network(p: Tree, x: jax.Array) -> jax.Array:
        x = jax.nn.gelu(x.reshape(x.shape[0], -1) @ p["w1"] + p["b1"])
        return jax.nn.gelu(x @ p["w2"] + p["b2"]) @ p["w3"] + p["b3"]

    def step(state: Tree, images: jax.Array, labels: jax.Array) -> Tree:
        def loss(p: Tree) -> jax.Array:
            return cross_entropy(network(p, images), labels)

        gradient = jax.grad(loss)(state["params"])
        count = state["t"] + 1
        m = joined(0.9, state["m"], 0.1, gradient)
        v = joined(0.999, state["v"], 0.001, jax.tree.map(jnp.square, gradient))

        def updated(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            t = count.astype("float32")
            return p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)

        return {"params": jax.tree.map(updated, state["params"], m, v), "m": m, "v": v, "t": count}

    def predict(state: Tree, images: jax.Array) -> jax.Array:
        return network(state["params"], images)

    return training(state, step, predict)


def gru() -> Made:
    """Make a recurrent network whose steps are a loop."""
    params: Tree = {"wx": drawn(32, 3 * WIDTH), "wh": drawn(WIDTH, 3 * WIDTH), "out": drawn(WIDTH, CLASSES)}

    def network(p: Tree, x: jax.Array) -> jax.Array:
        def step(h: jax.Array, now: jax.Array) -> tuple[jax.Array, None]:
            (z, r, n), (hz, hr, hn) = (jnp.split(each, 3, axis=1) for each in (now @ p["wx"], h @ p["wh"]))
            z, n = jax.nn.sigmoid(z + hz), jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn)
            return (1 - z) * n + z * h, None

        last, _ = lax.scan(step, jnp.zeros((x.shape[0], WIDTH)), x.transpose(1, 0, 2))
        return last @ p["out"]

    return answering(params, network, (16, 20, 32), "float32")


def attention() -> Made:
    """Make a block of a transformer."""
    return answering(block_params(), block, (8, 48, WIDTH), "float32")


def language_model() -> Made:
    """Make a transformer over tokens, whose layers are a loop."""
    layers = [block_params() for _ in range(4)]
    stacked = {name: np.stack([layer[name] for layer in layers]) for name in layers[0]}
    params: Tree = {"emb": drawn(200, WIDTH, scale=1.0), "layers": stacked, "head": drawn(WIDTH, 200)}

    def network(p: Tree, tokens: jax.Array) -> jax.Array:
        def layer(x: jax.Array, of: Tree) -> tuple[jax.Array, None]:
            return block(of, x), None

        x, _ = lax.scan(layer, p["emb"][tokens], p["layers"])
        return x @ p["head"]

    return answering(params, network, (8, 24), "int32")


def mixer() -> Made:
    """Make a network of patches, written for one picture."""
    layer = {"t": (49, 49), "c1": (32, 64), "c2": (64, 32)}
    layers = {str(i): {name: drawn(*shape) for name, shape in layer.items()} for i in range(4)}
    params: Tree = {**layers, "patch": drawn(48, 32), "out": drawn(32, CLASSES)}

    def one(p: Tree, x: jax.Array) -> jax.Array:
        h = x.reshape(7, 4, 7, 4, 3).transpose(0, 2, 1, 3, 4).reshape(49, 48) @ p["patch"]
        for i in range(4):
            q = p[str(i)]
            h = h + q["t"] @ jnp.tanh(h)
            h = h + jax.nn.relu(h @ q["c1"]) @ q["c2"]
        return h.mean(0) @ p["out"]

    return answering(params, jax.vmap(one, in_axes=(None, 0)), (32, 28, 28, 3), "float32")


def block_params() -> Tree:
    """Draw the parameters of a block of a transformer."""
    products = {name: drawn(WIDTH, WIDTH) for name in "qkvo"}
    wide = {"f1": drawn(WIDTH, 4 * WIDTH), "f2": drawn(4 * WIDTH, WIDTH)}
    return {**products, **wide, "g1": ones(WIDTH), "g2": ones(WIDTH)}


def block(p: Tree, x: jax.Array) -> jax.Array:
    """Compute a block of a transformer: attention of four heads, then a perceptron."""
    count, length, _ = x.shape

    def heads(weights: jax.Array) -> jax.Array:
        return (normed @ weights).reshape(count, length, 4, -1).transpose(0, 2, 1, 3)

    normed = layer_norm(x, p["g1"])
    q, k, v = heads(p["q"]), heads(p["k"]), heads(p["v"])
    mixed = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / 4.0, -1) @ v
    x = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p["o"]
    return x + jax.nn.gelu(layer_norm(x, p["g2"]) @ p["f1"]) @ p["f2"]


def layer_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Normalize the last dimension."""
    off = x - x.mean(-1, keepdims=True)
    return off * lax.rsqrt(jnp.square(off).mean(-1, keepdims=True) + 1e-5) * scale


def convolved(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolve pictures, which keep their size."""
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Give the mean loss of some examples."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def training(state: Tree, step: Callable[..., Tree], predict: Callable[..., jax.Array]) -> Made:
    """Put a step and what scores it into one module."""
    scorer = from_jax(predict, state, SCORED)
    return Made(
        with_function(from_jax(step, state, IMAGES, LABELS), "predict", scorer), flat(state), trains=True
    )


def answering(params: Tree, network: Callable[..., jax.Array], shape: tuple[int, ...], dtype: str) -> Made:
    """Make a module that answers to one input."""
    return Made(from_jax(network, params, jax.ShapeDtypeStruct(shape, dtype)), flat(params))


def flat(tree: Tree, before: str = "") -> dict[str, NDArray[Any]]:
    """Name the leaves of a tree as planish names the arguments."""
    found: dict[str, NDArray[Any]] = {}
    for name, value in tree.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, dict) else {f"{before}{name}": value}
    return found


_RNG = np.random.default_rng(0)


def drawn(*shape: int, scale: float = 0.0) -> NDArray[np.float32]:
    """Draw weights; without a scale of a variance that keeps that of what they multiply."""
    return _RNG.normal(0, scale or np.prod(shape[:-1]) ** -0.5, shape).astype("float32")


def zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, "float32")


def ones(*shape: int) -> NDArray[np.float32]:
    return np.ones(shape, "float32")


def joined(share: float, one: Tree, other_share: float, other: Tree) -> Tree:
    """Add two trees, each times its share."""

    def added(a: jax.Array, b: jax.Array) -> jax.Array:
        return share * a + other_share * b

    return jax.tree.map(added, one, other)


def like(tree: Tree) -> Tree:
    """Give zeros of a tree's shapes."""
    return {name: np.zeros_like(value) for name, value in tree.items()}
