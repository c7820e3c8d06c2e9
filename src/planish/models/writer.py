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

from planish.models.networks import Array, Parameters, attended, fed, normed, packed, read, reading_parameters


@dataclass(frozen=True)
class ListGrammar:
    """Lists of one to `longest` steps, some of which come at most once, as LLVM's own pipelines do.

    A state is a number: how many steps there are, and which of the latter are among them. Where a pass may
    stand is no question for it: each is written within the managers of its own nesting.

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
        # The count stands above the bits of what came already, so that a step adds a whole range of them.
        return (state + self._masks) | int(self._bits[token])

    def legal(self, state: int) -> NDArray[np.bool_]:
        """Return which tokens may follow, the end last."""
        return self._table[state]

    def repaired(self, tokens: Iterable[int]) -> tuple[int, ...]:
        """Leave out, from the left, each step that may not stand where it does, as the thesis does (6.4)."""
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
        for place, token in enumerate(self.once):
            bits[token] = 1 << place
        return bits

    @cached_property
    def _table(self) -> NDArray[np.bool_]:
        table = np.ones((self.longest + 1, self._masks, self.tokens + 1), bool)
        table[:, :, :-1] = (np.arange(self._masks)[:, None] & self._bits) == 0
        table[-1, :, :-1] = False  # full
        table[0, :, -1] = False  # nothing is no list
        return table.reshape(-1, self.tokens + 1)


COSTS = ("before", "after", "saved")
"""What the heads predict: an eighth of the logarithm of what the program costs, as it is and after -Oz,
and the share that the best list saves beside it, in units of `planish.train.samples.GAIN`."""
_LOOKS = ("self", "cross")
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WriterShape:
    """Hyperparameters of a network that writes lists.

    Args:
        sizes: of each column that is read, how many values there are.
        rows: of an observation.
        tokens: how many different steps there are.
        longest: steps of the longest list.
        once: tokens that come at most once in a list.
        width: of a layer.
        depth: layers that read, and as many that write.
        heads: of attention; they divide the width.
        kind: distinguishes this shape from those of other policies.
    """

    sizes: tuple[int, ...]
    rows: int
    tokens: int
    longest: int
    once: tuple[int, ...] = ()
    width: int = 64
    depth: int = 2
    heads: int = 4
    kind: str = "writer"

    @property
    def grammar(self) -> ListGrammar:
        """Grammar of the legal lists."""
        return ListGrammar(self.tokens, self.longest, self.once)

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name the arrays, and give their shapes; biases are called so."""
        width, inner = self.width, 2 * self.width
        found = reading_parameters(self)
        found |= {"tokens": (self.tokens, width), "begin": (inner, width), "steps": (self.longest + 1, width)}
        for layer in range(self.depth):
            kinds = [f"{look} {name}" for look in _LOOKS for name in ("query", "key", "value", "mixed")]
            found |= {f"write {layer} {name}": (width, width) for name in kinds}
            found |= {f"write {layer} up": (width, inner), f"write {layer} down": (inner, width)}
            found |= {f"write {layer} up bias": (inner,), f"write {layer} down bias": (width,)}
        found |= {"next": (width, self.tokens + 1), "next bias": (self.tokens + 1,)}
        return found | {"costs": (inner, len(COSTS)), "costs bias": (len(COSTS),)}


@dataclass(frozen=True)
class Read:
    """Programs, as the decoder looks at them.

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


def read_programs(
    xp: ModuleType, shape: WriterShape, parameters: Parameters, given: tuple[Array, Array, Array, Array]
) -> Read:
    """Read programs once, for all lists that are written for them.

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `WriterShape.parameters` has them.
        given: what `PackedRows` holds, in its order.
    """
    rows, whole = read(xp, shape, parameters, given)
    names = [f"write {layer} cross" for layer in range(shape.depth)]
    keys, values = ([rows @ parameters[f"{name} {kind}"] for name in names] for kind in ("key", "value"))
    there = xp.swapaxes(given[2].sum(axis=-1, keepdims=True), 1, 2)
    costs = whole @ parameters["costs"] + parameters["costs bias"]
    return Read(keys, values, there, whole @ parameters["begin"], costs)


def said(xp: ModuleType, shape: WriterShape, parameters: Parameters, programs: Read, tokens: Array) -> Array:
    """Score the next token after each beginning of a list, all at once: (programs, tokens of it + 1, scores).

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: of it.
        programs: what was read.
        tokens: (programs, tokens of a list), padded by any.
    """
    length = tokens.shape[1] + 1
    begin = programs.begin[:, None]
    hidden = xp.concatenate([begin, parameters["tokens"][tokens]], 1) + parameters["steps"][:length]
    # Only for its shape: both libraries make ones like it, of its type and on its device.
    square = hidden[:1] @ xp.swapaxes(hidden[:1], 1, 2)
    before = xp.tril(xp.ones_like(square))
    for layer in range(shape.depth):
        name, rows = f"write {layer}", normed(xp, hidden)
        key, value = (rows @ parameters[f"{name} self {kind}"] for kind in ("key", "value"))
        hidden = hidden + _looked(xp, shape, parameters, f"{name} self", rows, (key, value, before))
        other = programs.keys[layer], programs.values[layer], programs.there
        hidden = hidden + _looked(xp, shape, parameters, f"{name} cross", normed(xp, hidden), other)
        hidden = hidden + fed(xp, parameters, name, hidden)
    return normed(xp, hidden) @ parameters["next"] + parameters["next bias"]


def advance(
    shape: WriterShape,
    parameters: Parameters,
    program: Read,
    past: Floats,
    lengths: NDArray[np.integer],
    tokens: NDArray[np.integer] | None,
) -> tuple[Floats, Floats]:
    """Write one token more to each of some beginnings of lists for one program, by NumPy.

    Args:
        shape: of the network.
        parameters: of it.
        program: what was read, of one program.
        past: (lists, most steps so far, layers, 2, width): what the steps are remembered by, padded by any.
        lengths: (lists,), how many steps each has so far.
        tokens: (lists,), the last step of each; None for the start.

    Returns:
        (lists, scores), and (lists, layers, 2, width): what the last steps are remembered by.
    """
    hidden = program.begin[:1] if tokens is None else parameters["tokens"][tokens]
    hidden = (hidden + parameters["steps"][lengths])[None]  # lists as rows: each matrix is read once for all
    fresh = np.empty((len(lengths), shape.depth, 2, shape.width), np.float32)
    seen = np.arange(past.shape[1] + 1) < lengths[:, None, None]
    # The new step comes last, behind all padding, and sees itself.
    seen[:, :, -1] = True
    for layer in range(shape.depth):
        name, rows = f"write {layer}", normed(np, hidden)
        for at, kind in enumerate(("key", "value")):
            fresh[:, layer, at] = (rows @ parameters[f"{name} self {kind}"])[0]
        mine = np.concatenate([past[:, :, layer], fresh[:, None, layer]], 1)
        query = np.swapaxes(rows @ parameters[f"{name} self query"], 0, 1)
        own = attended(np, shape.heads, query, mine[:, :, 0], mine[:, :, 1], seen)
        hidden = hidden + np.swapaxes(own, 0, 1) @ parameters[f"{name} self mixed"]
        other = program.keys[layer], program.values[layer], program.there
        hidden = hidden + _looked(np, shape, parameters, f"{name} cross", normed(np, hidden), other)
        hidden = hidden + fed(np, parameters, name, hidden)
    return (normed(np, hidden) @ parameters["next"] + parameters["next bias"])[0], fresh


def read_one(shape: WriterShape, parameters: Parameters, observed: NDArray[np.integer]) -> Read:
    """Read programs by NumPy.

    Args:
        shape: of the network.
        parameters: of it.
        observed: (programs, rows, columns).
    """
    one = packed(shape, observed)
    return read_programs(np, shape, parameters, (one.words, one.places, one.parts, one.counts))


def _looked(
    xp: ModuleType,
    shape: WriterShape,
    parameters: Parameters,
    name: str,
    rows: Array,
    other: tuple[Array, Array, Array],
) -> Array:
    query = rows @ parameters[f"{name} query"]
    return attended(xp, shape.heads, query, *other) @ parameters[f"{name} mixed"]
