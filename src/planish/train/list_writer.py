"""Training of a network that writes lists, by torch; it resumes where it was stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from planish.core import rng
from planish.models.writer import WriterShape, encode_programs, token_scores
from planish.train.optimization import (
    ListConfig,
    ListTraining,
    OnProgress,
    StepLimit,
    arrays_of,
    batches_of,
    share_of_rate,
    until_stopped,
)
from planish.train.samples import GAIN, ListDataset


@dataclass(frozen=True)
class WriterConfig(ListConfig):
    """Configuration of a training of a writer.

    Args:
        epochs, seed, checkpoint, device: see `ListConfig`.
        every: steps between evaluations.
        auxiliary: the weight of the errors of the heads that predict costs, beside the tokens'; 0 leaves
            these tasks out, as figure 4.18 of the thesis does.
    """

    every: int = 50
    auxiliary: float = 0.3


@dataclass(frozen=True)
class ListVocabulary:
    """Vocabulary in which lists are written.

    Args:
        steps: texts of the steps, in the order of their tokens.
        lists: (lists, longest), padded by the end; the last is the one for programs that no list improves.
    """

    steps: tuple[str, ...]
    lists: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Sequence[tuple[str, ...]], otherwise: tuple[str, ...]) -> ListVocabulary:
        """Number the steps of lists.

        Args:
            lists: of steps.
            otherwise: the list for programs that none of them improves.
        """
        every = (*lists, otherwise)
        steps = tuple(dict.fromkeys(step for each in every for step in each))
        rows = np.full((len(every), max(map(len, every))), len(steps))
        for index, each in enumerate(every):
            rows[index, : len(each)] = [steps.index(step) for step in each]
        return cls(steps, rows)


def train_writer(
    dataset: ListDataset,
    vocabulary: ListVocabulary,
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
        vocabulary: lists, as tokens.
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
    training = _Training(dataset, vocabulary, shape, config, held)
    with until_stopped(config.device):
        training.train(on_step)
    return arrays_of(training.kept), {"step": float(training.best[0]), "bits held back": training.best[1]}


class _Training(ListTraining):
    def __init__(
        self,
        dataset: ListDataset,
        vocabulary: ListVocabulary,
        shape: WriterShape,
        config: WriterConfig,
        held: NDArray[np.bool_],
    ) -> None:
        super().__init__(dataset, held, shape, config, [config.every, config.auxiliary, vocabulary.steps])
        self._vocabulary, self._shape, self._config = vocabulary, shape, config
        self._chances, self._costs = _chances(dataset.gains()), _costs(dataset)
        self._steps = config.epochs * self._batches

    def train(self, on_step: OnProgress) -> None:
        """Train up to the last step."""
        batches = self._remaining_batches()
        limit = StepLimit(self._steps, self._config.every)
        self.run(limit, lambda share: self._learn(share, next(batches)), self._evaluate, on_step)

    def _remaining_batches(self) -> Iterator[NDArray[np.intp]]:
        """Yield the remaining batches; they depend on the seed and the epoch alone."""
        while self.step < self._steps:
            epoch, done = divmod(self.step, self._batches)
            yield from batches_of(self._mine, self._lengths, rng(self._config.seed, epoch))[done:]

    def _learn(self, share: float, rows: NDArray[np.intp]) -> tuple[torch.Tensor, int]:
        """Take a step; return its loss, and how many tokens were read and written."""
        # A stream for each step, so that a resumed training draws the same;
        # 1 distinguishes it from those of epochs.
        random = rng(self._config.seed, self.step, 1)
        observed, chances = self.dropped(rows, random), self._chances[rows].cumsum(axis=1)
        drawn = (chances < random.random((len(rows), 1))).sum(axis=1)
        lists = self._vocabulary.lists[np.minimum(drawn, chances.shape[1] - 1)]  # sums are not quite 1
        bits, error = self._losses(observed, rows, lists)
        loss = bits.mean() + self._config.auxiliary * error
        taken = self.descend(share_of_rate(share), loss)
        return taken, int(self._lengths[rows].sum() + (lists < len(self._vocabulary.steps)).sum())

    def _losses(
        self, observed: NDArray[np.int16], rows: NDArray[np.intp], lists: NDArray[np.int64]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return how improbable each list is, and the heads' squared error."""
        encoded = encode_programs(torch, self._shape, self.weights, self.tensors(observed))
        end = len(self._vocabulary.steps)
        # The end is never read: where it pads a list, any token will do, as what follows does not count.
        tokens = self.tensor(np.minimum(lists, end - 1))
        scores = token_scores(torch, self._shape, self.weights, encoded, tokens)
        wanted = self.tensor(np.pad(lists, ((0, 0), (0, 1)), constant_values=end))
        log_probs = torch.log_softmax(scores, dim=2).gather(2, wanted[..., None])[..., 0]
        there = torch.ones_like(log_probs)
        there[:, 1:] = (wanted[:, :-1] != end).float()  # the end once
        error = ((encoded.costs - self.tensor(self._costs[rows])) ** 2).mean()
        return -(log_probs * there).sum(dim=1), error

    def _evaluate(self) -> tuple[float, Mapping[str, float]]:
        """Return how many bits the most probable list of each held-back program costs, in the mean.

        The weights that are best by that are kept, and the checkpoint is written.
        """
        total, chosen = 0.0, self._chances.argmax(axis=1)
        with torch.no_grad():
            for rows in self.evaluation_batches():
                lists = self._vocabulary.lists[chosen[rows]]
                total += float(self._losses(self._dataset.observed[rows], rows, lists)[0].sum())
        held = total / len(self._evaluation) / math.log(2)
        self.evaluated(held)
        return held, {}


def _chances(gains: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how probable each list is to be written; the last one where none saves."""
    whole = gains.sum(axis=1, keepdims=True, dtype=np.float64)
    none = (whole <= 0).astype(np.float64)
    return np.concatenate([gains / np.where(whole > 0, whole, 1), none], axis=1)


def _costs(dataset: ListDataset) -> NDArray[np.float32]:
    """Return the targets of the heads: as it is, after the baseline, and the savings of the best list."""
    before = (dataset.observed[:, :, 0] == 1).sum(axis=1)
    best = dataset.shares.max(axis=1) / GAIN
    return np.stack([np.log1p(before) / 8, np.log1p(dataset.baseline) / 8, best], axis=1, dtype=np.float32)
