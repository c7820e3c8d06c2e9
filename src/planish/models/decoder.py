"""Decoder-only transformer of Llama's shape (thesis 4.3.1) at any size, and the generation of text.

Rows are scaled to a root mean square of 1 before each half of a layer (RMSNorm), positions are encoded by
rotation, and each row passes a gated unit (SwiGLU). The embeddings of inputs and outputs share one matrix,
unlike in Llama 2: with few parameters, two would be most of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.models.ir_text import Tokenizer, question
from planish.models.networks import Array, Parameters, rms_norm

BASE = 10_000.0
"""Of the rotations' wave lengths, as in Llama 2."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class DecoderShape:
    """Hyperparameters of a network that continues text.

    Args:
        tokens: how many different ones there are.
        context: tokens of the longest text.
        width: of a layer.
        depth: layers.
        heads: of attention; the width is a multiple of twice as many.
        kind: distinguishes this shape from those of other policies.
    """

    tokens: int
    context: int
    width: int = 128
    depth: int = 4
    heads: int = 4
    kind: str = "decoder"

    @property
    def inner(self) -> int:
        """Width of the gated unit: 8 / 3 of a layer's, as in Llama, rounded up to a multiple of 16."""
        return -(-8 * self.width // 48) * 16

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Return the names of the arrays, and their shapes."""
        width, inner = self.width, self.inner
        found: dict[str, tuple[int, ...]] = {"tokens": (self.tokens, width)}
        for layer in range(self.depth):
            found |= {f"{layer} {name}": (width, width) for name in ("query", "key", "value", "mixed")}
            found |= {f"{layer} gate": (width, inner), f"{layer} up": (width, inner)}
            found |= {f"{layer} down": (inner, width)}
            found |= {f"{layer} attention scale": (width,), f"{layer} unit scale": (width,)}
        return found | {"scale": (width,)}


@dataclass(frozen=True, eq=False)
class Memory:
    """Key-value cache of the tokens so far. It is a value: texts with a common prefix share it.

    Args:
        keys: for each layer, (heads, tokens, width of a head), rotated.
        values: the same, as they are.
        scores: (tokens of the vocabulary,), of what may come next.
    """

    keys: Sequence[Floats]
    values: Sequence[Floats]
    scores: Floats

    @property
    def length(self) -> int:
        """Return how many tokens there are."""
        return self.keys[0].shape[1]


def remembered(
    shape: DecoderShape, parameters: Parameters, tokens: Sequence[int], before: Memory | None = None
) -> Memory:
    """Read tokens after others by NumPy, and score what may come next.

    Args:
        shape: of the network.
        parameters: of it.
        tokens: at least one.
        before: what was read before them; None where they are the first.
    """
    start, part = before.length if before else 0, shape.width // shape.heads
    count = start + len(tokens)
    # By their positions in the whole text: rotated as if they stood at its beginning, they would attend to
    # others.
    turns = rotations(count, part, start)
    seen = np.arange(count) <= np.arange(start, count)[:, None]
    hidden: Floats = parameters["tokens"][np.asarray(tokens)]
    keys, values = list[Floats](), list[Floats]()
    for layer in range(shape.depth):
        rows = rms_norm(np, hidden) * parameters[f"{layer} attention scale"]
        query, key, value = (
            (rows @ parameters[f"{layer} {name}"]).reshape(len(tokens), shape.heads, part).swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        query, key = rotated(np, query, turns), rotated(np, key, turns)
        if before:
            # Keys are kept rotated: a position never changes.
            key = np.concatenate([before.keys[layer], key], 1)
            value = np.concatenate([before.values[layer], value], 1)
        keys.append(key)
        values.append(value)
        close = np.where(seen, query @ key.swapaxes(1, 2) / part**0.5, -np.inf)
        weight = np.exp(close - close.max(axis=-1, keepdims=True))
        looked = (weight / weight.sum(axis=-1, keepdims=True)) @ value
        hidden = hidden + looked.swapaxes(0, 1).reshape(hidden.shape) @ parameters[f"{layer} mixed"]
        hidden = hidden + gated_unit(np, parameters, layer, hidden)
    last = rms_norm(np, hidden[-1:]) * parameters["scale"]
    # Of the last token alone: what may follow the others is known already.
    return Memory(keys, values, (last @ parameters["tokens"].T)[0])


def rotations(count: int, part: int, first: int = 0) -> tuple[Floats, Floats]:
    """Return cosines and sines of positions from `first` on: (positions, half of a head's width), twice."""
    angles = np.arange(first, count)[:, None] * BASE ** (-np.arange(0, part, 2) / part)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotated(xp: ModuleType, rows: Array, turns: Sequence[Any]) -> Array:
    """Rotate the halves of rows against each other, by the angles of their positions.

    Args:
        xp: `numpy` or `torch`.
        rows: (..., positions, width of a head).
        turns: cosines and sines, as `rotations` returns them.
    """
    half = rows.shape[-1] // 2
    left, right, (cosine, sine) = rows[..., :half], rows[..., half:], turns
    return xp.concatenate([left * cosine - right * sine, left * sine + right * cosine], -1)


def gated_unit(xp: ModuleType, parameters: Parameters, layer: int, hidden: Array) -> Array:
    """Apply a layer's gated unit (SwiGLU) to rows; `xp` is `numpy` or `torch`."""
    rows = rms_norm(xp, hidden) * parameters[f"{layer} unit scale"]
    gate = rows @ parameters[f"{layer} gate"]
    # Clipped, for the exponential of float32 overflows beyond 88, and NumPy warns of it.
    gated = gate / (1 + xp.exp(-xp.clip(gate, -60, 60))) * (rows @ parameters[f"{layer} up"])
    return gated @ parameters[f"{layer} down"]


ROOM = 96
"""Tokens of the context that are kept free for an answer, or a feedback and another answer."""


class CutTextWarning(UserWarning):
    """A program is longer than what a language model reads of it."""


def cut(shape: DecoderShape, tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """Count the programs that are longer than what a network reads."""
    return sum(len(question(tokenizer, ir)) > shape.context - ROOM for ir in texts)


def prompt_of(shape: DecoderShape, tokenizer: Tokenizer, ir: str) -> list[int]:
    """Return the tokens of a prompt; of a program that is too long, what comes first, with a warning.

    Args:
        shape: of the network.
        tokenizer: of it.
        ir: the program.
    """
    tokens, most = question(tokenizer, ir), shape.context - ROOM
    if len(tokens) > most:
        what = f"of the program's {len(tokens):,} tokens, the model reads the first {most:,}"
        warnings.warn(what, CutTextWarning, stacklevel=2)
        # The last token stays: it is what asks for the answer.
        tokens = [*tokens[: most - 1], tokens[-1]]
    return tokens


def continued(
    shape: DecoderShape, parameters: Parameters, memory: Memory, ends: Set[int], most: int | None = None
) -> tuple[list[int], Memory]:
    """Go on by the most probable tokens.

    Args:
        shape: of the network.
        parameters: of it.
        memory: of what comes before.
        ends: tokens after which it stops.
        most: tokens at most, and no more than the context holds; None for the latter alone.

    Returns:
        The new tokens, the end's among them, and what all are remembered by; without the last one, which
        nothing has followed.
    """
    left = shape.context - memory.length
    found = list[int]()
    for _ in range(left if most is None else min(most, left)):
        found.append(int(memory.scores.argmax()))
        if found[-1] in ends:
            break
        memory = remembered(shape, parameters, found[-1:], memory)
    return found, memory


def log_probabilities(
    shape: DecoderShape, parameters: Parameters, tokens: Sequence[int], memory: Memory
) -> list[float]:
    """Return the log-probability of each token after those before it, for `planish.train.text_training`.

    Args:
        shape: of the network.
        parameters: of it.
        tokens: a text.
        memory: of what comes before it.
    """
    found = list[float]()
    for token in tokens:
        scores = memory.scores.astype(np.float64)
        found.append(float(scores[token] - np.logaddexp.reduce(scores)))
        memory = remembered(shape, parameters, [token], memory)
    return found
