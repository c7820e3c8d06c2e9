"""Training of a network that writes lists, by torch; it resumes where it was stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
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
    BETAS,
    DECAY,
    Checkpoint,
    arrays_of,
    batches_of,
    digest,
    first_weights,
    share_of_rate,
    until_stopped,
)
from planish.train.samples import GAIN, Lessons

RATE, DROPPED = 1.5e-3, 0.1
"""As the reader is trained."""
Progress = Callable[["Stand"], None]


@dataclass(frozen=True)
class WritingCourse:
    """How a network is trained.

    Args:
        epochs: how often all is read.
        seed: of the first weights, of the order, and of which lists are written.
        checkpoint: where it stands is kept there, and taken up from there.
        every: steps between checkpoints, each of which judges by what is held back.
        device: "cpu" or "cuda".
        telling: what the errors of the heads that tell costs weigh beside the tokens'; 0 leaves these tasks
            out, as figure 4.18 of the thesis does.
    """

    epochs: int
    seed: int
    checkpoint: Path
    every: int = 50
    device: str = "cpu"
    telling: float = 0.3


@dataclass(frozen=True)
class Stand:
    """How far the training is.

    Args:
        step: from 1.
        steps: how many there will be.
        loss: of the step's batch.
        held: what a list costs in bits on programs that are held back; None where they were not asked.
        rate: tokens, instructions read and steps written, in a second since the training began or went on.
        left: seconds.
    """

    step: int
    steps: int
    loss: float
    held: float | None
    rate: float
    left: float


@dataclass(frozen=True)
class Texts:
    """What lists are written as.

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
    lessons: Lessons,
    texts: Texts,
    shape: WriterShape,
    course: WritingCourse,
    held: NDArray[np.bool_],
    told: Progress = lambda _: None,
) -> tuple[dict[str, NDArray[np.float32]], dict[str, float]]:
    """Learn to write lists that save; what is best on what is held back is kept.

    A program's list is drawn anew each time that it is read, by what each saves beside those before it. So
    lists that save in many ways are more probable, and a program that none improves has the last one.

    Args:
        lessons: what is known.
        texts: lists, as tokens.
        shape: of the network.
        course: how.
        held: (programs,), those that tell what is best, and are not learnt from; with none, all do.
        told: is told of each step.

    Returns:
        The network's parameters, and what was found of it.

    Raises:
        StoppedError: it was stopped before its first checkpoint.
        PlanishError: the checkpoint is of another training.
    """
    training = _Training(lessons, texts, shape, course, held)
    with until_stopped(course.device):
        training.run(told)
    return arrays_of(training.kept), {"step": float(training.best[0]), "bits held back": training.best[1]}


class _Training:
    """A network, its optimiser, and what it learns from."""

    def __init__(
        self,
        lessons: Lessons,
        texts: Texts,
        shape: WriterShape,
        course: WritingCourse,
        held: NDArray[np.bool_],
    ) -> None:
        self._lessons, self._texts, self._shape, self._course = lessons, texts, shape, course
        self._mine = np.flatnonzero(~held)
        self._held = np.flatnonzero(held) if held.any() else self._mine
        self._lengths = (lessons.observed[:, :, 0] > 0).sum(axis=1)
        self._chances = _chances(lessons.gains())
        self._whole = _wholes(lessons)
        self._batches = math.ceil(len(self._mine) / BATCH)
        self._steps = course.epochs * self._batches
        torch.manual_seed(course.seed)
        drawn = first_weights(shape.parameters())
        self._weights = {name: tensor.to(course.device).requires_grad_() for name, tensor in drawn.items()}
        self._optimiser = torch.optim.AdamW(self._weights.values(), lr=RATE, betas=BETAS, weight_decay=DECAY)
        self.step, self.best = 0, (0, math.inf)
        self.kept: dict[str, torch.Tensor] = {}
        learnt = course.epochs, course.seed, course.every, course.telling, texts.steps
        mine = [asdict(shape), *learnt, digest(lessons, held)]
        self._checkpoint = Checkpoint(course.checkpoint, mine)
        if course.checkpoint.exists():
            others, about = self._checkpoint.read(self._weights, self._optimiser)
            self.kept = others.get("best", {})
            self.step, self.best = about["step"], (about["best"][0], about["best"][1])

    def run(self, told: Progress) -> None:
        """Go on to the end."""
        started, first, tokens = time.monotonic(), self.step, 0
        for rows in self._coming():
            loss, read = self._learn(rows)
            self.step, tokens = self.step + 1, tokens + read
            held = self._look() if self.step % self._course.every == 0 or self.step == self._steps else None
            seconds = time.monotonic() - started
            left = seconds / (self.step - first) * (self._steps - self.step)
            told(Stand(self.step, self._steps, loss, held, tokens / seconds, left))

    def _coming(self) -> Iterator[NDArray[np.intp]]:
        """Yield the batches that are left; which they are follows from the seed and the epoch."""
        while self.step < self._steps:
            epoch, done = divmod(self.step, self._batches)
            yield from batches_of(self._mine, self._lengths, rng(self._course.seed, epoch))[done:]

    def _learn(self, rows: NDArray[np.intp]) -> tuple[float, int]:
        """Take a step; give its loss, and how many tokens were read and written."""
        # A stream for each step, so that a resumed training draws the same; 1 tells it from those of epochs.
        random = rng(self._course.seed, self.step, 1)
        for group in self._optimiser.param_groups:
            group["lr"] = RATE * share_of_rate(self.step / self._steps)
        observed = self._lessons.observed[rows].copy()
        observed[random.random(observed.shape[:2]) < DROPPED] = 0
        chances = self._chances[rows].cumsum(axis=1)
        drawn = (chances < random.random((len(rows), 1))).sum(axis=1)
        lists = self._texts.lists[np.minimum(drawn, chances.shape[1] - 1)]  # sums are not quite 1
        bits, error = self._losses(observed, rows, lists)
        loss = bits.mean() + self._course.telling * error
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights.values(), 1.0)
        self._optimiser.step()
        return loss.item(), int(self._lengths[rows].sum() + (lists < len(self._texts.steps)).sum())

    def _losses(
        self, observed: NDArray[np.int16], rows: NDArray[np.intp], lists: NDArray[np.int64]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return how improbable each list is, and the heads' squared error."""
        one = packed(self._shape, observed)
        arrays = (one.words, one.places, one.parts, one.counts)
        words, places, parts, counts = (torch.from_numpy(a).to(self._course.device) for a in arrays)
        read = read_programs(torch, self._shape, self._weights, (words, places, parts, counts))
        end = len(self._texts.steps)
        # The end is never read: where it pads a list, any token may stand, as what follows does not count.
        tokens = torch.from_numpy(np.minimum(lists, end - 1)).to(self._course.device)
        scores = said(torch, self._shape, self._weights, read, tokens)
        wanted = torch.from_numpy(np.pad(lists, ((0, 0), (0, 1)), constant_values=end)).to(
            self._course.device
        )
        sure = torch.log_softmax(scores, dim=2).gather(2, wanted[..., None])[..., 0]
        there = torch.ones_like(sure)
        there[:, 1:] = (wanted[:, :-1] != end).float()  # the end once
        whole = torch.from_numpy(self._whole[rows]).to(self._course.device)
        return -(sure * there).sum(dim=1), ((read.told - whole) ** 2).mean()

    def _look(self) -> float:
        """Judge by what is held back, keep what is best, and where it stands."""
        with torch.no_grad():
            held = self._judge()
        if held < self.best[1]:
            self.best = self.step, held
            self.kept = {name: tensor.detach().clone() for name, tensor in self._weights.items()}
        about = {"step": self.step, "best": self.best}
        self._checkpoint.write(self._weights, self._optimiser, {"best": self.kept}, about)
        return held

    def _judge(self) -> float:
        """Return how many bits the most probable choice of each program's lists costs, in the mean."""
        order, total = self._held[np.argsort(self._lengths[self._held], kind="stable")], 0.0
        chosen = self._chances.argmax(axis=1)
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            lists = self._texts.lists[chosen[rows]]
            total += float(self._losses(self._lessons.observed[rows], rows, lists)[0].sum())
        return total / len(order) / math.log(2)


def _chances(gains: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how probable each list is to be written; the last one where none saves."""
    whole = gains.sum(axis=1, keepdims=True, dtype=np.float64)
    none = (whole <= 0).astype(np.float64)
    return np.concatenate([gains / np.where(whole > 0, whole, 1), none], axis=1)


def _wholes(lessons: Lessons) -> NDArray[np.float32]:
    """Return what the heads are to tell: as it is, after the baseline, and what the best list saves."""
    before = (lessons.observed[:, :, 0] == 1).sum(axis=1)
    best = lessons.shares.max(axis=1) / GAIN
    return np.stack([np.log1p(before) / 8, np.log1p(lessons.baseline) / 8, best], axis=1, dtype=np.float32)
