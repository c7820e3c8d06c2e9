"""Where a training stands: weights and the optimiser's state in one file, from which it goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from planish.core import PlanishError
from planish.core.replacing import replacing
from planish.learn.language.lessons import Lessons

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
