"""Write 2fcnet.mlir: two fully connected layers, and a whole training step of them (GEVO-ML, section 6.2).

`main` takes the parameters, a batch of images and their labels, and gives the new parameters and the loss;
the learning rate of the paper, 0.01, is inside. `predict` takes the parameters and images, and gives the
logits. The paper does not say how wide the hidden layer is; here it has 128 units.
`python examples/hlo/make_2fcnet.py`
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax

from planish.levels.hlo import Program, from_jax
from planish.levels.hlo.program import with_function

PIXELS, HIDDEN, CLASSES, BATCH, SCORED = 784, 128, 10, 32, 1000
LEARNING_RATE = 0.01

Parameters = dict[str, jax.Array]


def layers(p: Parameters, images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Give the hidden units and the logits."""
    with jax.named_scope("fc1"):
        hidden = lax.max(images @ p["fc1.weight"] + p["fc1.bias"], 0.0)
    with jax.named_scope("fc2"):
        return hidden, hidden @ p["fc2.weight"] + p["fc2.bias"]


def predict(p: Parameters, images: jax.Array) -> jax.Array:
    """Give the logits."""
    return layers(p, images)[1]


def step(p: Parameters, images: jax.Array, labels: jax.Array) -> tuple[Parameters, jax.Array]:
    """Train on one batch by gradient descent; the gradients are written out, as in figure 5."""
    hidden, logits = layers(p, images)
    with jax.named_scope("loss"):
        shifted = logits - logits.max(axis=1, keepdims=True)
        exponentials = jnp.exp(shifted)
        sums = exponentials.sum(axis=1, keepdims=True)
        wanted = lax.convert_element_type(labels[:, None] == lax.iota(labels.dtype, CLASSES), jnp.float32)
        loss = ((jnp.log(sums) - shifted) * wanted).sum() * (1 / BATCH)
    with jax.named_scope("gradient"):
        of_logits = (exponentials / sums - wanted) * (1 / BATCH)
        of_hidden = jnp.where(hidden > 0, of_logits @ p["fc2.weight"].T, 0.0)
        gradients = {
            "fc1.weight": images.T @ of_hidden,
            "fc1.bias": of_hidden.sum(axis=0),
            "fc2.weight": hidden.T @ of_logits,
            "fc2.bias": of_logits.sum(axis=0),
        }
    with jax.named_scope("update"):
        return {name: value - LEARNING_RATE * gradients[name] for name, value in p.items()}, loss


def program(hidden: int = HIDDEN, batch: int = BATCH) -> Program:
    """Make the module."""
    shapes = {
        "fc1.weight": (PIXELS, hidden),
        "fc1.bias": (hidden,),
        "fc2.weight": (hidden, CLASSES),
        "fc2.bias": (CLASSES,),
    }
    parameters = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    images, scored = (jax.ShapeDtypeStruct((n, PIXELS), jnp.float32) for n in (batch, SCORED))
    labels = jax.ShapeDtypeStruct((batch,), jnp.int32)
    return with_function(
        from_jax(step, parameters, images, labels), "predict", from_jax(predict, parameters, scored)
    )


def main() -> None:
    """Write the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("2fcnet.mlir"))
    options = parser.parse_args()
    options.out.write_text(program().text)


if __name__ == "__main__":
    main()
