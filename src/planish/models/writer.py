"""Network that reads a program as instructions and writes a list of steps, a token at a time.

A decoder, a small transformer, attends to the rows of the encoder (`planish.models.networks`): each token
sees those before it, and all of the program. Beside the tokens, heads predict what the thesis's model writes
as text: the costs before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from planish.models.networks import (
    Array,
    EncoderShape,
    PackedRows,
    Parameters,
    attention,
    encode,
    feed_forward,
    layer_parameters,
    pack_rows,
    rms_norm,
)


@dataclass(frozen=True)
class ListGrammar:
    """Lists of one to `longest` steps, some of which come at most once, as LLVM's own pipelines do.

    A state is a number: how many steps there are, and which of the latter are among them. The nesting of
    passes is not part of it: each is written within the managers of its own.

    Args:
        tokens: how many different steps there are; the end is the token after them.
        longest: steps of the longest list.
        once: tokens that come at most once.
    """

    tokens: int
    longest: int
    once: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        """The token of the end."""
        return self.tokens

    def after(self, state: int, token: int) -> int:
        """Return the state after a step; the first state is 0."""
        # The count is above the bits of what came already, so that a step adds a whole range of them.
        return (state + self._masks) | int(self._bits[token])

    def legal(self, state: int) -> NDArray[np.bool_]:
        """Return which tokens may follow, the end last."""
        return self._table[state]

    def repaired(self, tokens: Iterable[int]) -> tuple[int, ...]:
        """Leave out, from the left, each step that is illegal after those before it (thesis 6.4)."""
        state, kept = 0, list[int]()
        for token in tokens:
            if self.legal(state)[token]:
                state = self.after(state, token)
                kept.append(token)
        return tuple(kept)

    @property
    def _masks(self) -> int:
        return 1 << len(self.once)

    @cached_property
    def _bits(self) -> NDArray[np.int64]:
        bits = np.zeros(self.tokens, np.int64)
        for bit, token in enumerate(self.once):
            bits[token] = 1 << bit
        return bits

    @cached_property
    def _table(self) -> NDArray[np.bool_]:
        table = np.ones((self.longest + 1, self._masks, self.tokens + 1), bool)
        table[:, :, :-1] = (np.arange(self._masks)[:, None] & self._bits) == 0
        table[-1, :, :-1] = False  # full
        table[0, :, -1] = False  # nothing is not a list
        return table.reshape(-1, self.tokens + 1)


COSTS = ("before", "after", "saved")
"""Targets of the heads: an eighth of the logarithm of what the program costs, as it is and after -Oz,
and the share that the best list saves beside it, in units of `planish.train.samples.GAIN`."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class WriterShape(EncoderShape):
    """Hyperparameters of a network that writes lists.

    Args:
        sizes, rows, width, depth, heads: see `EncoderShape`; there are as many layers that write.
        tokens: how many different steps there are.
        longest: steps of the longest list.
        once: tokens that come at most once in a list.
        kind: distinguishes this shape from those of other policies.
    """

    tokens: int
    longest: int
    once: tuple[int, ...] = ()
    kind: str = "writer"

    @property
    def grammar(self) -> ListGrammar:
        """Grammar of the legal lists."""
        return ListGrammar(self.tokens, self.longest, self.once)

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Return the names of the arrays, and their shapes; biases are called so."""
        width, inner = self.width, 2 * self.width
        found = self.encoder_parameters()
        found |= {"tokens": (self.tokens, width), "begin": (inner, width), "steps": (self.longest + 1, width)}
        for layer in range(self.depth):
            found |= layer_parameters(f"write {layer}", width, ("self ", "cross "))
        found |= {"next": (width, self.tokens + 1), "next bias": (self.tokens + 1,)}
        return found | {"costs": (inner, len(COSTS)), "costs bias": (len(COSTS),)}


@dataclass(frozen=True)
class EncodedPrograms:
    """Programs, as the decoder attends to them.

    Args:
        keys: for each layer, (programs, longest, width).
        values: the same.
        there: (programs, 1, longest), which rows there are.
        begin: (programs, width), what lists begin with.
        costs: (programs, `COSTS`).
    """

    keys: Sequence[Array]
    values: Sequence[Array]
    there: Array
    begin: Array
    costs: Array


def encode_programs(
    xp: ModuleType, shape: WriterShape, parameters: Parameters, packed: PackedRows
) -> EncodedPrograms:
    """Encode programs once, for all lists that are written for them.

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `WriterShape.parameters` has them.
        packed: the programs.
    """
    rows, whole = encode(xp, shape, parameters, packed)
    names = [f"write {layer} cross" for layer in range(shape.depth)]
    keys, values = ([rows @ parameters[f"{name} {kind}"] for name in names] for kind in ("key", "value"))
    there = xp.swapaxes(packed.segments.sum(axis=-1, keepdims=True), 1, 2)
    costs = whole @ parameters["costs"] + parameters["costs bias"]
    return EncodedPrograms(keys, values, there, whole @ parameters["begin"], costs)


def token_scores(
    xp: ModuleType, shape: WriterShape, parameters: Parameters, programs: EncodedPrograms, tokens: Array
) -> Array:
    """Score the next token after each prefix of a list, all at once: (programs, tokens of it + 1, scores).

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: of it.
        programs: as `encode_programs` returns them.
        tokens: (programs, tokens of a list), padded by any.
    """
    length = tokens.shape[1] + 1
    begin = programs.begin[:, None]
    hidden = xp.concatenate([begin, parameters["tokens"][tokens]], 1) + parameters["steps"][:length]
    # Only for its shape: both libraries make ones like it, of its type and on its device.
    square = hidden[:1] @ xp.swapaxes(hidden[:1], 1, 2)
    before = xp.tril(xp.ones_like(square))
    for layer in range(shape.depth):
        name, rows = f"write {layer}", rms_norm(xp, hidden)
        key, value = (rows @ parameters[f"{name} self {kind}"] for kind in ("key", "value"))
        hidden = hidden + _attended(xp, shape, parameters, f"{name} self", rows, (key, value, before))
        other = programs.keys[layer], programs.values[layer], programs.there
        hidden = hidden + _attended(xp, shape, parameters, f"{name} cross", rms_norm(xp, hidden), other)
        hidden = hidden + feed_forward(xp, parameters, name, hidden)
    return rms_norm(xp, hidden) @ parameters["next"] + parameters["next bias"]


def next_scores(
    shape: WriterShape,
    parameters: Parameters,
    program: EncodedPrograms,
    past: Floats,
    lengths: NDArray[np.integer],
    tokens: NDArray[np.integer] | None,
) -> tuple[Floats, Floats]:
    """Score the next token after each of some prefixes of lists for one program, by NumPy.

    Args:
        shape: of the network.
        parameters: of it.
        program: one that was encoded.
        past: (lists, most steps so far, layers, 2, width): keys and values of the steps, padded by any.
        lengths: (lists,), how many steps each has so far.
        tokens: (lists,), the last step of each; None for the start.

    Returns:
        (lists, scores), and (lists, layers, 2, width): keys and values of the last steps.
    """
    hidden = program.begin[:1] if tokens is None else parameters["tokens"][tokens]
    hidden = (hidden + parameters["steps"][lengths])[None]  # lists as rows: each matrix is read once for all
    fresh = np.empty((len(lengths), shape.depth, 2, shape.width), np.float32)
    seen = np.arange(past.shape[1] + 1) < lengths[:, None, None]
    # The new step comes last, after all padding, and sees itself.
    seen[:, :, -1] = True
    for layer in range(shape.depth):
        name, rows = f"write {layer}", rms_norm(np, hidden)
        for at, kind in enumerate(("key", "value")):
            fresh[:, layer, at] = (rows @ parameters[f"{name} self {kind}"])[0]
        mine = np.concatenate([past[:, :, layer], fresh[:, None, layer]], 1)
        query = np.swapaxes(rows @ parameters[f"{name} self query"], 0, 1)
        own = attention(np, shape.heads, query, mine[:, :, 0], mine[:, :, 1], seen)
        hidden = hidden + np.swapaxes(own, 0, 1) @ parameters[f"{name} self mixed"]
        other = program.keys[layer], program.values[layer], program.there
        hidden = hidden + _attended(np, shape, parameters, f"{name} cross", rms_norm(np, hidden), other)
        hidden = hidden + feed_forward(np, parameters, name, hidden)
    return (rms_norm(np, hidden) @ parameters["next"] + parameters["next bias"])[0], fresh


def encode_observed(
    shape: WriterShape, parameters: Parameters, observed: NDArray[np.integer]
) -> EncodedPrograms:
    """Encode programs by NumPy.

    Args:
        shape: of the network.
        parameters: of it.
        observed: (programs, rows, columns).
    """
    return encode_programs(np, shape, parameters, pack_rows(shape, observed))


def _attended(
    xp: ModuleType,
    shape: WriterShape,
    parameters: Parameters,
    name: str,
    rows: Array,
    other: tuple[Array, Array, Array],
) -> Array:
    query = rows @ parameters[f"{name} query"]
    return attention(xp, shape.heads, query, *other) @ parameters[f"{name} mixed"]
