"""Training of a network that reads instructions and ranks lists, by torch; it resumes where it stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits

from planish.core import rng
from planish.models.networks import ReaderShape, list_scores
from planish.train.optimization import (
    ListConfig,
    ListTraining,
    OnProgress,
    TrainingProgress,
    arrays_of,
    batches_of,
    share_of_rate,
    until_stopped,
)
from planish.train.samples import GAIN, ListDataset


@dataclass(frozen=True)
class RankerConfig(ListConfig):
    """Configuration of a training of a ranker.

    Args:
        epochs, seed, checkpoint, device: see `ListConfig`.
        width: of a layer.
        depth: layers.
        auxiliary: whether it learns, beside gains, which list is the best and which ones save; a network
            that does not predicts gains alone, and is not a policy.
    """

    width: int = 64
    depth: int = 2
    auxiliary: bool = True


def train_ranker(
    dataset: ListDataset, config: RankerConfig, held: NDArray[np.bool_], on_epoch: OnProgress = lambda _: None
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
    shape = ReaderShape(
        sizes=dataset.sizes,
        rows=dataset.observed.shape[1],
        lists=len(dataset.lists),
        width=config.width,
        depth=config.depth,
    )
    training = _Training(dataset, shape, config, held)
    with until_stopped(config.device):
        while training.step < config.epochs:
            on_epoch(training.epoch())
    return shape, arrays_of(training.kept), {"epoch": float(training.best[0]), "held back": training.best[1]}


class _Training(ListTraining):
    def __init__(
        self, dataset: ListDataset, shape: ReaderShape, config: RankerConfig, held: NDArray[np.bool_]
    ) -> None:
        super().__init__(dataset, held, shape, config, [config.auxiliary])
        self._shape, self._config = shape, config
        self._gains, self._best = dataset.gains() / GAIN, dataset.shares.max(axis=1, keepdims=True)

    def epoch(self) -> TrainingProgress:
        """Read all once, evaluate what was learnt, and write the checkpoint."""
        started, read, losses, epochs = time.monotonic(), 0, list[torch.Tensor](), self._config.epochs
        random, first = rng(self._config.seed, self.step), self.step * self._batches
        for step, rows in enumerate(batches_of(self._mine, self._lengths, random), start=first):
            loss = self._loss(self._scores(self.dropped(rows, random)), rows)
            losses.append(self.descend(share_of_rate(step / (epochs * self._batches)), loss))
            read += int(self._lengths[rows].sum())
        self.step += 1
        held = self._evaluate()
        self.evaluated(held)
        seconds = time.monotonic() - started
        left = seconds * (epochs - self.step)
        loss = float(torch.stack(losses).mean())
        return TrainingProgress(self.step, epochs, loss, held, read / seconds, left)

    def _scores(self, observed: NDArray[np.int16]) -> torch.Tensor:
        return list_scores(torch, self._shape, self.weights, self.tensors(observed))

    def _loss(self, scores: torch.Tensor, rows: NDArray[np.intp]) -> torch.Tensor:
        """Add up: squared errors of gains, how improbable the best lists are, and which lists save."""
        shares, best = self._dataset.shares[rows], self._best[rows]
        gains, saves = self.tensor(self._gains[rows]), self.tensor((shares > 0).astype(np.float32))
        # Not -inf: where no list saves, the logarithm of a sum of nothing times 0 would not be a number.
        worst = self.tensor(np.where((shares == best) & (best > 0), 0, -30).astype(np.float32))
        improvable = self.tensor((best[:, 0] > 0).astype(np.float32))
        squared = ((scores[:, 0] - gains) ** 2).sum(dim=1).mean()
        if not self._config.auxiliary:
            return squared
        chosen = torch.logsumexp(torch.log_softmax(scores[:, 1], dim=1) + worst, dim=1)
        # One more, since a batch may have none that any list improves.
        choice = -(chosen * improvable).sum() / (improvable.sum() + 1)
        return squared + 0.1 * choice + binary_cross_entropy_with_logits(scores[:, 2], saves)

    @torch.no_grad()
    def _evaluate(self) -> float:
        """Compare squared errors of gains, in the objective's unit, with those of expecting nothing."""
        errors, nothing = 0.0, 1e-9
        for rows in self.evaluation_batches():
            weight = np.sqrt(self._dataset.baseline[rows, None])
            gains = self._scores(self._dataset.observed[rows])[:, 0].cpu().numpy()
            errors += float((weight * (gains - self._gains[rows]) ** 2).sum())
            nothing += float((weight * self._gains[rows] ** 2).sum())
        return errors / nothing
