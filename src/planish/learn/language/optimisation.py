"""How networks are trained by torch, whatever they learn: first weights, rate, batches, and the end."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

import numpy as np
import torch
from numpy.typing import NDArray

from planish.core import PlanishError, StoppedError
from planish.learn.language.checkpoints import Tensors

BETAS, DECAY, WARM_UP = (0.9, 0.95), 0.05, 0.05
"""Of AdamW, as the thesis has them (4.3.3); the share of steps in which the rate rises."""
BATCH, POOL = 32, 8
"""Programs of a batch; batches that are drawn together and sorted by length, so that little is padding."""


def require_device(device: str) -> None:
    """Make sure that torch can compute there.

    Raises:
        PlanishError: it cannot.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise PlanishError("there is no accelerator that torch can use", "Leave --device cuda out.")


def share_of_rate(done: float) -> float:
    """Give the share of the learning rate: it rises, and falls as a cosine.

    Args:
        done: the share of the training that is.
    """
    rest = max(0.0, done - WARM_UP) / (1 - WARM_UP)
    # A hundredth more, so that the first step learns something.
    return min(1.0, done / WARM_UP + 0.01) * (0.5 + 0.5 * math.cos(math.pi * rest))


def first_weights(parameters: Mapping[str, tuple[int, ...]]) -> Tensors:
    """Draw the weights that a training begins with.

    Args:
        parameters: names and shapes of arrays.
    """
    found: Tensors = {}
    for name, size in parameters.items():
        embedded = name in ("words", "places", "tokens", "steps")
        spread = 0.0 if name.endswith("bias") else 0.1 if embedded else size[0] ** -0.5
        found[name] = torch.randn(size) * (0.1 * spread if name in ("lists", "told") else spread)
    return found


def batches_of(
    rows: NDArray[np.intp], lengths: NDArray[np.int_], random: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Draw batches of programs of like lengths, in any order.

    Args:
        rows: the programs.
        lengths: by program, of all.
        random: decides who meets whom.
    """
    order = random.permutation(rows)
    pools = [order[at : at + POOL * BATCH] for at in range(0, len(order), POOL * BATCH)]
    whole = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
    found = [pool[at : at + BATCH] for pool in whole for at in range(0, len(pool), BATCH)]
    return [found[place] for place in random.permutation(len(found))]


@contextmanager
def until_stopped(device: str) -> Generator[None]:
    """Train within the block, which Ctrl-C ends; a resumed training is the same on a processor.

    For that, threads add up gradients in one order.
    """
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(before or device == "cpu")
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        torch.use_deterministic_algorithms(before)


def arrays_of(kept: Tensors) -> dict[str, NDArray[np.float32]]:
    """Give the best weights of a training.

    Raises:
        StoppedError: it was stopped before any were kept.
    """
    if not kept:
        raise StoppedError("the training was stopped before its first checkpoint", "Nothing was written.")
    return {name: tensor.cpu().numpy().copy() for name, tensor in kept.items()}
