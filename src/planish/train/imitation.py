"""Imitation learning: a policy learns the best known continuations of a store, by torch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from planish.core import StoppedError
from planish.models.networks import Shape, scaled, scores
from planish.models.policy_files import SavedPolicy, vector_bytes_of
from planish.train.samples import SHARPNESS, STEPS, StateDataset

BATCH = 512
RATE = 2e-3
CHOICE = 0.01
"""Weight, beside the squared error, of the best actions being the probable ones."""


@dataclass(frozen=True)
class Epoch:
    """Progress of the training after an epoch.

    Args:
        number: from 1.
        loss: mean squared error, and what `CHOICE` adds.
        held_loss: the same, on programs that are held back.
        regret: by how much the chosen action is worse than the best one there, as a share of the best speed.
    """

    number: int
    loss: float
    held_loss: float
    regret: float


def imitate(
    dataset: StateDataset,
    level: str,
    name: str,
    *,
    kind: str = "attention",
    epochs: int = 20,
    seed: int = 0,
    start: SavedPolicy | None = None,
    rate: float = RATE,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
) -> SavedPolicy:
    """Learn how good what each action leads to is; the best epoch on held-back programs is kept.

    Its scores are shares of the program's best speed in units of `SHARPNESS`, so that the best known actions
    are the probable ones, and that of the end is how good the state is. A network that learnt which action
    is the best would, where several actions are as good, go to and fro.

    Args:
        dataset: what is known.
        level: of the programs.
        name: of the policy.
        kind: of the network.
        epochs: how often all is read.
        seed: of the first weights and of the order.
        start: whose weights are the first ones, and whose kind of network it is; None for random ones.
        rate: of learning, at its highest.
        on_epoch: receives the progress after each epoch.

    Raises:
        StoppedError: it was stopped before its first epoch was over.
    """
    _, rows, columns = dataset.observed.shape
    width, depth = (64, 2) if kind == "attention" else (256, 3)
    shape = Shape(kind, rows, columns, dataset.short.shape[1], width, depth)
    training = _Training(dataset, start or shape, epochs, seed, rate)
    kept, found = training.copied(), Epoch(0, np.inf, np.inf, np.inf)
    with suppress(KeyboardInterrupt):
        for number in range(1, epochs + 1):
            epoch = training.epoch(number)
            on_epoch(epoch)
            if epoch.held_loss < found.held_loss:
                kept, found = training.copied(), epoch
    if not found.number:
        raise StoppedError("the training was stopped before its first epoch was over", "Nothing was written.")
    # They may be the same programs that its first weights are from, so they are not added.
    metrics = {"epoch": float(found.number), "held back loss": found.held_loss, "regret": found.regret}
    return SavedPolicy(
        name, level, dataset.space.observed, tuple(map(str, dataset.space.actions)), STEPS, training.shape,
        kept, metrics, max(len(dataset.programs), start.programs if start else 0),
        vector_bytes=vector_bytes_of(dataset.space),
        conditions=dataset.conditions,
    )  # fmt: skip


class _Training:
    """A network, and what it learns from.

    Args:
        dataset: what is known.
        first: the network, whose weights are random; or a policy that has some.
        epochs: how often all will be read; the rate of learning rises, and falls to 0 at the end.
        seed: of the first weights and of the order.
        rate: the highest.
    """

    def __init__(
        self, dataset: StateDataset, first: Shape | SavedPolicy, epochs: int, seed: int, rate: float
    ) -> None:
        torch.manual_seed(seed)
        shape = first.shape if isinstance(first, SavedPolicy) else first
        assert isinstance(shape, Shape)
        self.shape, self._parameters = shape, _first(shape)
        if isinstance(first, SavedPolicy):
            with torch.no_grad():
                for name, tensor in self._parameters.items():
                    tensor.copy_(torch.tensor(first.parameters[name]))
        self._inputs = torch.from_numpy(scaled(dataset.observed, dataset.left))
        self._short, held = torch.from_numpy(dataset.short), torch.from_numpy(dataset.held)
        self._mine = torch.where(~held)[0]
        self._evaluation = torch.where(held)[0] if held.any() else self._mine
        self._batches = max(1, len(self._mine) // BATCH)
        self._optimizer = torch.optim.AdamW(self._parameters.values(), lr=rate, weight_decay=1e-3)
        self._rate = torch.optim.lr_scheduler.OneCycleLR(self._optimizer, rate, epochs * self._batches)

    def epoch(self, number: int) -> Epoch:
        """Read all once, and evaluate what was learnt."""
        order = self._mine[torch.randperm(len(self._mine))]
        losses = [self._step(rows) for rows in torch.tensor_split(order, self._batches)]
        return Epoch(number, float(np.mean(losses)), *self._evaluate())

    def copied(self) -> dict[str, NDArray[np.float32]]:
        """Return the weights as they are."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self._parameters.items()}

    def _step(self, rows: torch.Tensor) -> float:
        loss = self._loss(rows)
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters.values(), 1.0)
        self._optimizer.step()
        self._rate.step()
        return loss.item()

    def _loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the loss: the error of scores of known actions, and the improbability of the best ones."""
        short, found = self._short[rows], self._scores(rows)
        unknown = torch.isnan(short)
        errors = (found * SHARPNESS + short)[~unknown] ** 2
        # Soft: where several actions are as good, all of them are wanted, and the network need not choose.
        wanted = torch.softmax((-short / SHARPNESS).masked_fill(unknown, -torch.inf), dim=1)
        # A finite number, since 0 times -inf, as for an unwanted action, is not a number.
        chosen = torch.log_softmax(found.masked_fill(unknown, -1e4), dim=1)
        return errors.mean() - CHOICE * (wanted * chosen).sum(dim=1).mean()

    @torch.no_grad()
    def _evaluate(self) -> tuple[float, float]:
        """Return the loss, and the regret; an action that is unknown is not chosen, for it may be illegal."""
        short = self._short[self._evaluation]
        known = self._scores(self._evaluation).masked_fill(torch.isnan(short), -torch.inf)
        chosen = short.gather(1, known.argmax(dim=1, keepdim=True))
        best = short.nan_to_num(torch.inf).min(dim=1, keepdim=True).values
        return self._loss(self._evaluation).item(), (chosen - best).mean().item()

    def _scores(self, rows: torch.Tensor) -> torch.Tensor:
        return scores(torch, self.shape, self._parameters, self._inputs[rows])


def _first(shape: Shape) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name, size in shape.parameters().items():
        spread = 0.0 if name.endswith("bias") else size[0] ** -0.5 if name != "positions" else 0.02
        found[name] = (torch.randn(size) * spread).requires_grad_()
    return found
