"""Write three small nets of random weights, and data for them: any module can be tuned, not only on images.

`lstm.mlir` takes token ids and a state, and gives logits of the next token and the new state.
`transformer.mlir` classifies token ids. `regression.mlir` gives two numbers for eight. Weights are constants.
`python examples/hlo/make_small_nets.py`
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from planish.levels.hlo import Program, from_jax

TOKENS, WIDTH, BATCH, LENGTH, CLASSES = 32, 8, 4, 6, 3


def weights(seed: int, *shape: int) -> jax.Array:
    """Draw a matrix, to two decimals: the text stays short."""
    drawn = np.random.default_rng(seed).normal(0, 1 / np.sqrt(shape[0]), shape)
    return jnp.asarray(np.round(drawn, 2), jnp.float32)


def lstm(tokens: jax.Array, hidden: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Read a batch of token ids; give the logits after each, and the state."""
    table, gates, out = weights(0, TOKENS, WIDTH), weights(1, 2 * WIDTH, 4 * WIDTH), weights(2, WIDTH, TOKENS)

    def step(
        state: tuple[jax.Array, jax.Array], x: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], axis=1) @ gates, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h @ out

    (hidden, cell), logits = lax.scan(step, (hidden, cell), table[tokens].transpose(1, 0, 2))
    return logits.transpose(1, 0, 2), hidden, cell


def transformer(tokens: jax.Array) -> jax.Array:
    """Classify token ids by two layers of attention, each with a residual."""
    x = weights(3, TOKENS, WIDTH)[tokens] + weights(4, LENGTH, WIDTH)
    for layer in range(2):
        with jax.named_scope(f"layer{layer}"):
            query, key, value = (x @ weights(10 * layer + n, WIDTH, WIDTH) for n in (5, 6, 7))
            shares = jax.nn.softmax(query @ key.transpose(0, 2, 1) / np.sqrt(WIDTH), axis=-1)
            x = x + shares @ value
            x = x + jax.nn.relu(x @ weights(10 * layer + 8, WIDTH, 2 * WIDTH)) @ weights(
                10 * layer + 9, 2 * WIDTH, WIDTH
            )
    return x.mean(axis=1) @ weights(30, WIDTH, CLASSES)


def regression(x: jax.Array) -> jax.Array:
    """Give two numbers for eight."""
    hidden = jnp.tanh(x @ weights(31, WIDTH, 2 * WIDTH))
    return hidden @ weights(32, 2 * WIDTH, 2)


def programs() -> dict[str, Program]:
    """Make the modules."""
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    state = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32)
    return {
        "lstm": from_jax(lstm, tokens, state, state),
        "transformer": from_jax(transformer, tokens),
        "regression": from_jax(regression, state),
    }


def data() -> dict[str, dict[str, np.ndarray]]:
    """Make inputs and targets, of 40 rows: the targets are what the nets say, some of them changed."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, TOKENS, (40, LENGTH)).astype(np.int32)
    zero, x = np.zeros((40, WIDTH), np.float32), rng.normal(size=(40, WIDTH)).astype(np.float32)
    said = np.asarray(lstm(jnp.asarray(tokens), jnp.asarray(zero), jnp.asarray(zero))[0]).argmax(axis=-1)
    classes = np.asarray(transformer(jnp.asarray(tokens))).argmax(axis=-1)
    values = np.asarray(regression(jnp.asarray(x))) + rng.normal(0, 0.1, (40, 2)).astype(np.float32)
    said[:, 0] = -1  # nothing is told of the first token
    lied = np.arange(40) % 5 == 0
    return {
        "lstm": {"tokens": tokens, "hidden": zero, "cell": zero, "targets": said.astype(np.int32)},
        "transformer": {"tokens": tokens, "targets": np.where(lied, (classes + 1) % CLASSES, classes)},
        "regression": {"x": x, "targets": values},
    }


def main() -> None:
    """Write the modules and their data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out: Path = parser.parse_args().out
    for name, program in programs().items():
        (out / f"{name}.mlir").write_text(program.text)
    for name, arrays in data().items():
        np.savez_compressed(out / f"{name}.npz", **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
