"""Training of a network that writes lists, by torch; it resumes where it was stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from planish.core import rng
from planish.models.networks import packed
from planish.models.writer import WriterShape, read_programs, said
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

RATE, DROPPED = 1.5e-3, 0.1
"""As the reader is trained."""


@dataclass(frozen=True)
class WriterConfig:
    """Configuration of a training.

    Args:
        epochs: how often all is read.
        seed: of the first weights, of the order, and of which lists are written.
        checkpoint: where it stands is kept there, and taken up from there.
        every: steps between checkpoints, each of which judges by what is held back.
        device: "cpu" or "cuda".
        auxiliary: the weight of the errors of the heads that predict costs, beside the tokens'; 0 leaves
            these tasks out, as figure 4.18 of the thesis does.
    """

    epochs: int
    seed: int
    checkpoint: Path
    every: int = 50
    device: str = "cpu"
    auxiliary: float = 0.3


@dataclass(frozen=True)
class Texts:
    """Vocabulary in which lists are written.

    Args:
        steps: texts of the steps, in the order of their tokens.
        lists: (lists, longest), padded by the end; the last is the one for programs that no list improves.
    """

    steps: tuple[str, ...]
    lists: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Sequence[tuple[str, ...]], otherwise: tuple[str, ...]) -> Texts:
        """Number the steps of lists.

        Args:
            lists: of steps.
            otherwise: the list for programs that none of them improves.
        """
        every = (*lists, otherwise)
        steps = tuple(dict.fromkeys(step for each in every for step in each))
        rows = np.full((len(every), max(map(len, every))), len(steps))
        for place, each in enumerate(every):
            rows[place, : len(each)] = [steps.index(step) for step in each]
        return cls(steps, rows)


def train_writer(
    dataset: ListDataset,
    texts: Texts,
    shape: WriterShape,
    config: WriterConfig,
    held: NDArray[np.bool_],
    on_step: OnProgress = lambda _: None,
) -> tuple[dict[str, NDArray[np.float32]], dict[str, float]]:
    """Learn to write lists that save; what is best on what is held back is kept.

    A program's list is drawn anew each time that it is read, by what each saves beside those before it. So
    lists that save in many ways are more probable, and a program that none improves has the last one.

    Args:
        dataset: what is known.
        texts: lists, as tokens.
        shape: of the network.
        config: how.
        held: (programs,), those held back from training, which choose the best network; with none, all do.
        on_step: receives the progress after each step.

    Returns:
        The network's parameters, and what was found of it.

    Raises:
        StoppedError: it was stopped before its first checkpoint.
        PlanishError: the checkpoint is of another training.
    """
    training = _Training(dataset, texts, shape, config, held)
    with until_stopped(config.device):
        training.run(on_step)
    return arrays_of(training.kept), {"step": float(training.best[0]), "bits held back": training.best[1]}


class _Training(Training):
    """A network, its optimiser, and what it learns from."""

    def __init__(
        self,
        dataset: ListDataset,
        texts: Texts,
        shape: WriterShape,
        config: WriterConfig,
        held: NDArray[np.bool_],
    ) -> None:
        self._dataset, self._texts, self._shape, self._config = dataset, texts, shape, config
        self._mine = np.flatnonzero(~held)
        self._held = np.flatnonzero(held) if held.any() else self._mine
        self._lengths = (dataset.observed[:, :, 0] > 0).sum(axis=1)
        self._chances = _chances(dataset.gains())
        self._whole = _wholes(dataset)
        self._batches = math.ceil(len(self._mine) / BATCH)
        self._steps = config.epochs * self._batches
        torch.manual_seed(config.seed)
        recipe = [asdict(shape), config.epochs, config.seed, config.every, config.auxiliary, texts.steps]
        super().__init__(
            first_weights(shape.parameters()),
            config.device,
            RATE,
            config.checkpoint,
            [*recipe, digest(dataset, held)],
        )

    def run(self, on_step: OnProgress) -> None:
        """Go on to the end."""
        started, first, tokens = time.monotonic(), self.step, 0
        for rows in self._coming():
            loss, read = self._learn(rows)
            self.step, tokens = self.step + 1, tokens + read
            held = (
                self._evaluate() if self.step % self._config.every == 0 or self.step == self._steps else None
            )
            seconds = time.monotonic() - started
            left = seconds / (self.step - first) * (self._steps - self.step)
            on_step(TrainingProgress(self.step, self._steps, loss, held, tokens / seconds, left))

    def _coming(self) -> Iterator[NDArray[np.intp]]:
        """Yield the batches that are left; which they are follows from the seed and the epoch."""
        while self.step < self._steps:
            epoch, done = divmod(self.step, self._batches)
            yield from batches_of(self._mine, self._lengths, rng(self._config.seed, epoch))[done:]

    def _learn(self, rows: NDArray[np.intp]) -> tuple[float, int]:
        """Take a step; give its loss, and how many tokens were read and written."""
        # A stream for each step, so that a resumed training draws the same;
        # 1 distinguishes it from those of epochs.
        random = rng(self._config.seed, self.step, 1)
        observed = self._dataset.observed[rows].copy()
        observed[random.random(observed.shape[:2]) < DROPPED] = 0
        chances = self._chances[rows].cumsum(axis=1)
        drawn = (chances < random.random((len(rows), 1))).sum(axis=1)
        lists = self._texts.lists[np.minimum(drawn, chances.shape[1] - 1)]  # sums are not quite 1
        bits, error = self._losses(observed, rows, lists)
        loss = bits.mean() + self._config.auxiliary * error
        taken = self.descend(share_of_rate(self.step / self._steps), [loss])
        return taken, int(self._lengths[rows].sum() + (lists < len(self._texts.steps)).sum())

    def _losses(
        self, observed: NDArray[np.int16], rows: NDArray[np.intp], lists: NDArray[np.int64]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return how improbable each list is, and the heads' squared error."""
        one = packed(self._shape, observed)
        arrays = (one.words, one.places, one.parts, one.counts)
        words, places, parts, counts = (torch.from_numpy(a).to(self._config.device) for a in arrays)
        read = read_programs(torch, self._shape, self.weights, (words, places, parts, counts))
        end = len(self._texts.steps)
        # The end is never read: where it pads a list, any token may stand, as what follows does not count.
        tokens = torch.from_numpy(np.minimum(lists, end - 1)).to(self._config.device)
        scores = said(torch, self._shape, self.weights, read, tokens)
        wanted = torch.from_numpy(np.pad(lists, ((0, 0), (0, 1)), constant_values=end)).to(
            self._config.device
        )
        sure = torch.log_softmax(scores, dim=2).gather(2, wanted[..., None])[..., 0]
        there = torch.ones_like(sure)
        there[:, 1:] = (wanted[:, :-1] != end).float()  # the end once
        whole = torch.from_numpy(self._whole[rows]).to(self._config.device)
        return -(sure * there).sum(dim=1), ((read.costs - whole) ** 2).mean()

    def _evaluate(self) -> float:
        """Judge by what is held back, keep what is best, and where it stands."""
        with torch.no_grad():
            held = self._judge()
        self.evaluated(held)
        return held

    def _judge(self) -> float:
        """Return how many bits the most probable choice of each program's lists costs, in the mean."""
        order, total = self._held[np.argsort(self._lengths[self._held], kind="stable")], 0.0
        chosen = self._chances.argmax(axis=1)
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            lists = self._texts.lists[chosen[rows]]
            total += float(self._losses(self._dataset.observed[rows], rows, lists)[0].sum())
        return total / len(order) / math.log(2)


def _chances(gains: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how probable each list is to be written; the last one where none saves."""
    whole = gains.sum(axis=1, keepdims=True, dtype=np.float64)
    none = (whole <= 0).astype(np.float64)
    return np.concatenate([gains / np.where(whole > 0, whole, 1), none], axis=1)


def _wholes(dataset: ListDataset) -> NDArray[np.float32]:
    """Return what the heads are to predict: as it is, after the baseline, and what the best list saves."""
    before = (dataset.observed[:, :, 0] == 1).sum(axis=1)
    best = dataset.shares.max(axis=1) / GAIN
    return np.stack([np.log1p(before) / 8, np.log1p(dataset.baseline) / 8, best], axis=1, dtype=np.float32)
