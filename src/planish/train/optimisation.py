"""Training of networks by torch: first weights, rates, batches, and checkpoints."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from planish.core import PlanishError, StoppedError
from planish.core.files import replacing
from planish.train.samples import Lessons

Tensors = dict[str, torch.Tensor]
_STATE = ("step", "exp_avg", "exp_avg_sq")


class Checkpoint:
    """A file of safetensors; a kill leaves the old one or the new one.

    Args:
        path: of it.
        training: what it is of, as JSON has it; another training does not go on from it.
    """

    def __init__(self, path: Path, training: object) -> None:
        self._path, self._training = path, json.dumps(training)

    def write(
        self,
        weights: Tensors,
        optimiser: torch.optim.Optimizer,
        others: Mapping[str, Tensors],
        about: Mapping[str, Any],
    ) -> None:
        """Keep all.

        Args:
            weights: that are trained.
            optimiser: of them.
            others: more tensors, by what they are.
            about: more, as JSON has it.

        Raises:
            PlanishError: it cannot be written, as on a full disk; the one before stays as it is.
        """
        tensors = dict(weights)
        tensors |= {
            f"{kind} {name}": tensor for kind, some in others.items() for name, tensor in some.items()
        }
        for name, tensor in weights.items():
            tensors |= {f"{key} {name}": value for key, value in optimiser.state[tensor].items()}
        told = {"training": self._training, "about": json.dumps(about)}
        whole = save({name: t.detach().contiguous().cpu() for name, t in tensors.items()}, told)
        try:
            with replacing(self._path) as part:
                part.write_bytes(whole)
        except OSError as error:
            what = f"cannot write the checkpoint {self._path}: {error.strerror or error}"
            then = "goes on from the last whole one" if self._path.exists() else "begins anew"
            raise PlanishError(what, f"Make room there: the same command {then}.") from error

    def read(
        self, weights: Tensors, optimiser: torch.optim.Optimizer
    ) -> tuple[Mapping[str, Tensors], dict[str, Any]]:
        """Take up weights and the optimiser's state.

        Returns:
            The other tensors, by what they are, and what else was kept.

        Raises:
            PlanishError: it is of another training, or damaged.
        """
        hint = "Remove it, or name another file: -o FILE."
        try:
            with safe_open(self._path, "pt") as held:
                told = held.metadata() or {}
                # To go on with other data or another shape would be a training that nobody asked for.
                if told.get("training") != self._training:
                    raise PlanishError(f"{self._path} is of another training", hint)
                tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise PlanishError(f"cannot read a checkpoint from {self._path}: {error}", hint) from error
        for name, tensor in weights.items():
            tensor.data.copy_(tensors.pop(name))
            state = {key: tensors.pop(f"{key} {name}") for key in _STATE}
            # The count of steps stays on the processor, where AdamW keeps it whatever the weights' device.
            state |= {key: state[key].to(tensor.device) for key in _STATE[1:]}
            optimiser.state[tensor] = state
        others: dict[str, Tensors] = {}
        for name, tensor in tensors.items():
            # The first space ends the kind: names of weights have spaces of their own.
            kind, _, whose = name.partition(" ")
            others.setdefault(kind, {})[whose] = tensor
        return others, json.loads(told["about"])


def digest(lessons: Lessons, held: NDArray[np.bool_]) -> str:
    """Name what is learnt from."""
    whole = hashlib.sha256(lessons.shares.tobytes())
    whole.update(lessons.observed.tobytes())
    whole.update(held.tobytes())
    return whole.hexdigest()


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
    """Return the share of the learning rate: it rises, and falls as a cosine.

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
    """Return the best weights of a training.

    Raises:
        StoppedError: it was stopped before any were kept.
    """
    if not kept:
        raise StoppedError("the training was stopped before its first checkpoint", "Nothing was written.")
    return {name: tensor.cpu().numpy().copy() for name, tensor in kept.items()}
