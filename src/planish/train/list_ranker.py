"""Training of a network that reads instructions and ranks lists, by torch; it resumes where it stopped."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits

from planish.core import rng
from planish.models.networks import ReaderShape, outputs, packed
from planish.train.optimisation import (
    BATCH,
    OnProgress,
    Training,
    TrainingProgress,
    arrays_of,
    batches_of,
    digest,
    first_weights,
    share_of_rate,
    until_stopped,
)
from planish.train.samples import GAIN, ListDataset

RATE = 1.5e-3
DROPPED = 0.1
"""So many instructions are left out of each reading: with few programs, it would learn them by heart."""


@dataclass(frozen=True)
class RankerConfig:
    """Configuration of a training.

    Args:
        epochs: how often all is read.
        seed: of the first weights and of the order.
        width: of a layer.
        depth: layers.
        checkpoint: where it stands is kept there after each epoch, and taken up from there.
        device: "cpu" or "cuda".
        auxiliary: whether it learns, beside gains, which list is the best and which ones save; a network
            that does not predicts gains alone, and is no policy.
    """

    epochs: int
    seed: int
    checkpoint: Path
    width: int = 64
    depth: int = 2
    device: str = "cpu"
    auxiliary: bool = True


def train_reader(
    dataset: ListDataset,
    config: RankerConfig,
    held: NDArray[np.bool_],
    on_epoch: OnProgress = lambda _: None,
) -> tuple[ReaderShape, dict[str, NDArray[np.float32]], dict[str, float]]:
    """Learn what lists save; the epoch that is best on what is held back is kept.

    Args:
        dataset: what is known.
        config: how.
        held: (programs,), those held back from training, which decide when to stop; with none, all do.
        on_epoch: receives the progress after each epoch.

    Returns:
        The network, its parameters, and what was found of it.

    Raises:
        StoppedError: it was stopped before its first epoch was over.
        PlanishError: the checkpoint is of another training.
    """
    sizes = dataset.sizes
    shape = ReaderShape(sizes, dataset.observed.shape[1], len(dataset.lists), config.width, config.depth)
    training = _Training(dataset, shape, config, held)
    with until_stopped(config.device):
        while training.step < config.epochs:
            on_epoch(training.epoch())
    return shape, arrays_of(training.kept), {"epoch": float(training.best[0]), "held back": training.best[1]}


class _Training(Training):
    """A network, its optimiser, and what it learns from."""

    def __init__(
        self, dataset: ListDataset, shape: ReaderShape, config: RankerConfig, held: NDArray[np.bool_]
    ) -> None:
        self._shape, self._config, self._dataset = shape, config, dataset
        self._mine = np.flatnonzero(~held)
        self._held = np.flatnonzero(held) if held.any() else self._mine
        self._lengths = (dataset.observed[:, :, 0] > 0).sum(axis=1)
        self._gains, self._best = dataset.gains() / GAIN, dataset.shares.max(axis=1, keepdims=True)
        self._batches = math.ceil(len(self._mine) / BATCH)
        torch.manual_seed(config.seed)
        recipe = [asdict(shape), config.epochs, config.seed, config.auxiliary, digest(dataset, held)]
        super().__init__(first_weights(shape.parameters()), config.device, RATE, config.checkpoint, recipe)

    def epoch(self) -> TrainingProgress:
        """Read all once, judge what was learnt, and keep where it stands."""
        started, read, losses = time.monotonic(), 0, list[float]()
        random = rng(self._config.seed, self.step)
        for place, rows in enumerate(batches_of(self._mine, self._lengths, random)):
            losses.append(self._learn(rows, random, self.step * self._batches + place))
            read += int(self._lengths[rows].sum())
        self.step += 1
        held = self._judge()
        self.evaluated(held)
        seconds = time.monotonic() - started
        left = seconds * (self._config.epochs - self.step)
        return TrainingProgress(
            self.step, self._config.epochs, float(np.mean(losses)), held, read / seconds, left
        )

    def _learn(self, rows: NDArray[np.intp], random: np.random.Generator, step: int) -> float:
        observed = self._dataset.observed[rows].copy()
        observed[random.random(observed.shape[:2]) < DROPPED] = 0
        loss = self._loss(self._said(observed), rows)
        share = share_of_rate(step / (self._config.epochs * self._batches))
        return self.descend(share, [loss])

    def _said(self, observed: NDArray[np.int16]) -> torch.Tensor:
        one = packed(self._shape, observed)
        arrays = (one.words, one.places, one.parts, one.counts)
        words, places, parts, counts = (torch.from_numpy(a).to(self._config.device) for a in arrays)
        return outputs(torch, self._shape, self.weights, (words, places, parts, counts))

    def _loss(self, said: torch.Tensor, rows: NDArray[np.intp]) -> torch.Tensor:
        """Add up: squared errors of gains, how improbable the best lists are, and which lists save."""
        shares, best = self._dataset.shares[rows], self._best[rows]
        gains, saves = self._on(self._gains[rows]), self._on((shares > 0).astype(np.float32))
        # Not -inf: where no list saves, the logarithm of a sum of nothing times 0 would not be a number.
        worst = self._on(np.where((shares == best) & (best > 0), 0, -30).astype(np.float32))
        improvable = self._on((best[:, 0] > 0).astype(np.float32))
        squared = ((said[:, 0] - gains) ** 2).sum(dim=1).mean()
        if not self._config.auxiliary:
            return squared
        chosen = torch.logsumexp(torch.log_softmax(said[:, 1], dim=1) + worst, dim=1)
        # One more, since a batch may have none that any list improves.
        choice = -(chosen * improvable).sum() / (improvable.sum() + 1)
        return squared + 0.1 * choice + binary_cross_entropy_with_logits(said[:, 2], saves)

    def _on(self, array: NDArray[np.float32]) -> torch.Tensor:
        return torch.from_numpy(array).to(self._config.device)

    @torch.no_grad()
    def _judge(self) -> float:
        """Compare squared errors of gains, in the objective's unit, with those of expecting nothing."""
        order = self._held[np.argsort(self._lengths[self._held], kind="stable")]
        errors, nothing = 0.0, 1e-9
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            weight = np.sqrt(self._dataset.baseline[rows, None])
            said = self._said(self._dataset.observed[rows])[:, 0].cpu().numpy()
            errors += float((weight * (said - self._gains[rows]) ** 2).sum())
            nothing += float((weight * self._gains[rows] ** 2).sum())
        return errors / nothing
