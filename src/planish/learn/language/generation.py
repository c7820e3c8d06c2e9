"""Letting a network continue a text, by NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence, Set

import numpy as np

from planish.learn.language.decoder import DecoderShape, Memory, remembered
from planish.learn.language.prompts import question
from planish.learn.language.tokenizer import Tokenizer
from planish.learn.layers import Parameters

ROOM = 96
"""Tokens of the context that are kept free for an answer, or a feedback and another answer."""


class CutTextWarning(UserWarning):
    """A program is longer than what a language model reads of it."""


def cut(shape: DecoderShape, tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """Count the programs of which a network reads the beginning alone."""
    return sum(len(question(tokenizer, ir)) > shape.context - ROOM for ir in texts)


def read_question(
    shape: DecoderShape, parameters: Parameters, tokenizer: Tokenizer, ir: str
) -> tuple[list[int], Memory]:
    """Read a program, up to where the answer begins; of one that is too long, what comes first.

    Args:
        shape: of the network.
        parameters: of it.
        tokenizer: of it.
        ir: the program.

    Returns:
        The prompt's tokens, and what they are remembered by.
    """
    tokens, most = question(tokenizer, ir), shape.context - ROOM
    if len(tokens) > most:
        what = f"of the program's {len(tokens):,} tokens, the model reads the first {most:,}"
        warnings.warn(what, CutTextWarning, stacklevel=2)
        # The last token stays: it is what asks for the answer.
        tokens = [*tokens[: most - 1], tokens[-1]]
    return tokens, remembered(shape, parameters, tokens)


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
    """Tell how probable each token is after those before it, for `planish.learn.language.perplexity`.

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
