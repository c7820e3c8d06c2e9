"""Decoder-only language model on tensors: its loss in training, and answers to many prompts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from planish.models.decoder import DecoderShape, gated_unit, rotated, rotations
from planish.models.networks import rms_norm
from planish.train.samples import Sample

Tensors = Mapping[str, torch.Tensor]
Turns = Sequence[torch.Tensor]
Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Attention of a layer: its index, queries, keys and values, (texts, heads, tokens, width of a head)."""
CACHED = 16_384
"""Tokens of the texts that are answered together: their keys and values are kept."""


def turns_of(shape: DecoderShape, device: str) -> Turns:
    """Return cosines and sines of all positions, on the device: it would wait for a copy in each step."""
    pair = rotations(shape.context, shape.width // shape.heads)
    return [torch.from_numpy(each).to(device) for each in pair]


def hidden_rows(shape: DecoderShape, weights: Tensors, tokens: torch.Tensor, turns: Turns) -> torch.Tensor:
    """Read whole texts: (texts, tokens, width), a row for each token, which depends on those before it.

    Args:
        shape: of the network.
        weights: of it.
        tokens: (texts, tokens), padded at their ends, which no other token attends to.
        turns: as `turns_of` returns them.
    """
    count = tokens.shape[1]
    return _layers(shape, weights, tokens, [turn[:count] for turn in turns], _causal)


def _layers(
    shape: DecoderShape, weights: Tensors, tokens: torch.Tensor, turns: Turns, attend: Attend
) -> torch.Tensor:
    hidden, part = weights["tokens"][tokens], shape.width // shape.heads
    for layer in range(shape.depth):
        rows = rms_norm(torch, hidden) * weights[f"{layer} attention scale"]
        query, key, value = (
            (rows @ weights[f"{layer} {name}"]).unflatten(2, (shape.heads, part)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        query, key = rotated(torch, query, turns), rotated(torch, key, turns)
        looked = attend(layer, query, key, value)
        hidden = hidden + looked.transpose(1, 2).flatten(2) @ weights[f"{layer} mixed"]
        hidden = hidden + gated_unit(torch, weights, layer, hidden)
    return rms_norm(torch, hidden) * weights["scale"]


def _causal(_layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    # Rotations are of float32, and so are queries and keys where all else is of bfloat16.
    return scaled_dot_product_attention(query.to(value.dtype), key.to(value.dtype), value, is_causal=True)


class TextBatch(NamedTuple):
    """Texts as tensors.

    Args:
        tokens: (texts, tokens), what is read; padded at their ends.
        wanted: (learnt tokens,), indices of the flattened tokens after which they come.
        targets: (learnt tokens,).
    """

    tokens: torch.Tensor
    wanted: torch.Tensor
    targets: torch.Tensor

    def to(self, device: str) -> TextBatch:
        """Copy it to a device, without waiting for the copy where its memory is pinned."""
        return TextBatch(*(each.to(device, non_blocking=True) for each in self))


def text_batch(samples: Sequence[Sample], *, prompts: bool = False, gpu: bool = False) -> TextBatch:
    """Pad texts to the longest one.

    Args:
        samples: texts.
        prompts: whether prompts are learnt, too.
        gpu: whether the memory is pinned, from which a GPU copies while it computes; and a single text has an
            empty one beside it, since torch would compile the network anew for one row.
    """
    rows = max(len(samples), 2 if gpu else 1)
    tokens = np.zeros((rows, max(len(one.tokens) for one in samples)), np.int64)
    learnt = np.zeros(tokens.shape, bool)
    for row, one in enumerate(samples):
        tokens[row, : len(one.tokens)] = one.tokens
        learnt[row, 1 if prompts else one.begin : len(one.tokens)] = True
    # On this side: a GPU that counts them would have to be waited for.
    wanted = np.flatnonzero(learnt[:, 1:])
    arrays: list[NDArray[np.int64]] = [tokens[:, :-1], wanted, tokens[:, 1:].reshape(-1)[wanted]]
    tensors = [torch.from_numpy(np.ascontiguousarray(each)) for each in arrays]
    return TextBatch(*(each.pin_memory() if gpu else each for each in tensors))


def nll_sum(shape: DecoderShape, weights: Tensors, batch: TextBatch, turns: Turns) -> torch.Tensor:
    """Return the cross-entropy of a batch, in nats, summed over the tokens that are learnt.

    It does not depend on how texts are batched: padding comes last, and nothing attends to it.

    Args:
        shape: of the network.
        weights: of it, on the device; on a GPU products are of bfloat16.
        batch: on the same device.
        turns: as `turns_of` returns them.
    """
    device = batch.tokens.device.type
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        rows = hidden_rows(shape, weights, batch.tokens, turns)
        # Only where something is learnt: scores of the whole vocabulary take the most memory by far.
        scores = rows.flatten(0, 1)[batch.wanted] @ weights["tokens"].T
    # Sums over a vocabulary take more digits than bfloat16 has.
    return cross_entropy(scores.float(), batch.targets, reduction="sum")


@torch.no_grad()
def greedy_tokens(
    shape: DecoderShape,
    parameters: Mapping[str, NDArray[np.float32]],
    prompts: Sequence[Sequence[int]],
    ends: Set[int],
    most: int | None = None,
    device: str = "cpu",
) -> list[list[int]]:
    """Continue prompts by their most probable tokens, many at once.

    Args:
        shape: of the network.
        parameters: of it.
        prompts: tokens of each, at least one and at most the context.
        ends: tokens after which an answer stops.
        most: tokens of an answer at most, and no more than the context holds; None for the latter alone.
        device: "cpu" or "cuda".

    Returns:
        The new tokens of each prompt, the end's among them.
    """
    # Copied, for arrays of a policy that was loaded cannot be written.
    weights = {name: torch.tensor(array, device=device) for name, array in parameters.items()}
    turns, found = turns_of(shape, device), [list[int]() for _ in prompts]
    room = shape.context if most is None else most
    left = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    while left:
        # The longest first, and others that are about as long.
        count = max(1, CACHED // min(len(prompts[left[-1]]) + room, shape.context))
        some, left = left[-count:], left[:-count]
        written = _Answers(shape, weights, turns, [prompts[index] for index in some], room).write(ends)
        for index, tokens in zip(some, written, strict=True):
            found[index] = tokens
    return found


class _Answers:
    """Answers to some prompts, with the keys and values of all tokens so far."""

    def __init__(
        self, shape: DecoderShape, weights: Tensors, turns: Turns, prompts: Sequence[Sequence[int]], room: int
    ) -> None:
        self._shape, self._weights, self._turns = shape, weights, turns
        lengths = np.array([len(prompt) for prompt in prompts])
        self._most = np.minimum(room, shape.context - lengths).tolist()
        tokens = np.zeros((len(prompts), lengths.max()), np.int64)
        for row, prompt in enumerate(prompts):
            tokens[row, : len(prompt)] = prompt
        device, self._longest = weights["tokens"].device, int(lengths.max())
        held = min(self._longest + room, shape.context)
        size = shape.depth, len(prompts), shape.heads, held, shape.width // shape.heads
        self._keys, self._values = (torch.zeros(size, device=device) for _ in range(2))
        self._lengths = torch.from_numpy(lengths).to(device)
        first = [turn[: self._longest] for turn in turns]
        rows = _layers(shape, weights, torch.from_numpy(tokens).to(device), first, self._attend_first)
        self._last = rows[torch.arange(len(prompts)), self._lengths - 1]

    def write(self, ends: Set[int]) -> list[list[int]]:
        """Write all answers to their ends."""
        found = [list[int]() for _ in self._most]
        rows = list(range(len(found)))  # the texts in the cache
        going = {row for row in rows if self._most[row]}
        while going:
            chosen = (self._last @ self._weights["tokens"].T).argmax(-1)
            for row, token in zip(rows, chosen.tolist(), strict=True):
                if row in going:
                    found[row].append(token)
                    if token in ends or len(found[row]) == self._most[row]:
                        going.remove(row)
            if 2 * len(going) <= len(rows):  # to copy the cache for each that ends would take longer
                kept = [index for index, row in enumerate(rows) if row in going]
                rows, chosen = [rows[index] for index in kept], chosen[kept]
                self._keys, self._values = self._keys[:, kept], self._values[:, kept]
                self._lengths = self._lengths[kept]
            if going:
                self._read(chosen)
        return found

    def _read(self, tokens: torch.Tensor) -> None:
        """Read the next token of each text."""
        # Texts that have ended stay where they are until they are left out.
        self._at = self._lengths.clamp(max=self._keys.shape[3] - 1)
        self._longest = min(self._longest + 1, self._keys.shape[3])
        turns = [turn[self._at][:, None, None] for turn in self._turns]
        self._last = _layers(self._shape, self._weights, tokens[:, None], turns, self._attend_next)[:, 0]
        self._lengths = self._lengths + 1

    def _attend_first(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> torch.Tensor:
        # What pads a text is overwritten by its answer.
        self._keys[layer, :, :, : self._longest] = key
        self._values[layer, :, :, : self._longest] = value
        return _causal(layer, query, key, value)

    def _attend_next(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> torch.Tensor:
        texts = torch.arange(len(self._at), device=self._at.device)
        self._keys[layer, texts, :, self._at] = key[:, :, 0]
        self._values[layer, texts, :, self._at] = value[:, :, 0]
        keys, values = (each[layer, :, :, : self._longest] for each in (self._keys, self._values))
        seen = torch.arange(self._longest, device=self._at.device) <= self._at[:, None]
        return scaled_dot_product_attention(query, keys, values, attn_mask=seen[:, None, None])
