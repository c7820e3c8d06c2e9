"""Training of a network that reads instructions and ranks lists, by torch; it resumes where it stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
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

RATE = 1.5e-3
DROPPED = 0.1
"""So many instructions are left out of each reading: with few programs, it would learn them by heart."""


@dataclass(frozen=True)
class Course:
    """How a network is trained.

    Args:
        epochs: how often all is read.
        seed: of the first weights and of the order.
        width: of a layer.
        depth: layers.
        checkpoint: where it stands is kept there after each epoch, and taken up from there.
        device: "cpu" or "cuda".
        auxiliary: whether it learns, beside gains, which list is the best and which ones save; a network
            that does not can tell where to look, and is no policy.
    """

    epochs: int
    seed: int
    checkpoint: Path
    width: int = 64
    depth: int = 2
    device: str = "cpu"
    auxiliary: bool = True


@dataclass(frozen=True)
class Epoch:
    """How far the training is.

    Args:
        number: from 1.
        epochs: how many there will be.
        loss: the mean of the epoch's.
        held: the mean squared error of gains on groups that are held back, over that of gains of 0.
        rate: instructions that are read in a second.
        left: seconds.
    """

    number: int
    epochs: int
    loss: float
    held: float
    rate: float
    left: float


def train_reader(
    lessons: Lessons, course: Course, held: NDArray[np.bool_], told: Callable[[Epoch], None] = lambda _: None
) -> tuple[ReaderShape, dict[str, NDArray[np.float32]], dict[str, float]]:
    """Learn what lists save; the epoch that is best on what is held back is kept.

    Args:
        lessons: what is known.
        course: how.
        held: (programs,), those that tell when to stop, and are not learnt from; with none, all do.
        told: is told of each epoch.

    Returns:
        The network, its parameters, and what was found of it.

    Raises:
        StoppedError: it was stopped before its first epoch was over.
        PlanishError: the checkpoint is of another training.
    """
    sizes = lessons.sizes
    shape = ReaderShape(sizes, lessons.observed.shape[1], len(lessons.lists), course.width, course.depth)
    training = _Training(lessons, shape, course, held)
    with until_stopped(course.device):
        while training.number < course.epochs:
            told(training.epoch())
    return shape, arrays_of(training.kept), {"epoch": float(training.best[0]), "held back": training.best[1]}


class _Training:
    """A network, its optimiser, and what it learns from."""

    def __init__(self, lessons: Lessons, shape: ReaderShape, course: Course, held: NDArray[np.bool_]) -> None:
        self._shape, self._course, self._lessons = shape, course, lessons
        self._mine = np.flatnonzero(~held)
        self._held = np.flatnonzero(held) if held.any() else self._mine
        self._lengths = (lessons.observed[:, :, 0] > 0).sum(axis=1)
        self._gains, self._best = lessons.gains() / GAIN, lessons.shares.max(axis=1, keepdims=True)
        self._batches = math.ceil(len(self._mine) / BATCH)
        torch.manual_seed(course.seed)
        self._weights = {
            name: tensor.to(course.device) for name, tensor in first_weights(shape.parameters()).items()
        }
        for tensor in self._weights.values():
            tensor.requires_grad_()
        self._optimiser = torch.optim.AdamW(self._weights.values(), lr=RATE, betas=BETAS, weight_decay=DECAY)
        self.number, self.best = 0, (0, math.inf)
        self.kept: dict[str, torch.Tensor] = {}
        mine = [asdict(shape), course.epochs, course.seed, course.auxiliary, digest(lessons, held)]
        self._kept = Checkpoint(course.checkpoint, mine)
        if course.checkpoint.exists():
            self._resume()

    def epoch(self) -> Epoch:
        """Read all once, judge what was learnt, and keep where it stands."""
        started, read, losses = time.monotonic(), 0, list[float]()
        random = rng(self._course.seed, self.number)
        for place, rows in enumerate(batches_of(self._mine, self._lengths, random)):
            losses.append(self._step(rows, random, self.number * self._batches + place))
            read += int(self._lengths[rows].sum())
        self.number += 1
        held = self._judge()
        if held < self.best[1]:
            self.best = self.number, held
            self.kept = {name: tensor.detach().clone() for name, tensor in self._weights.items()}
        self._save()
        seconds = time.monotonic() - started
        left = seconds * (self._course.epochs - self.number)
        return Epoch(self.number, self._course.epochs, float(np.mean(losses)), held, read / seconds, left)

    def _step(self, rows: NDArray[np.intp], random: np.random.Generator, step: int) -> float:
        for group in self._optimiser.param_groups:
            group["lr"] = RATE * share_of_rate(step / (self._course.epochs * self._batches))
        observed = self._lessons.observed[rows].copy()
        observed[random.random(observed.shape[:2]) < DROPPED] = 0
        loss = self._loss(self._said(observed), rows)
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights.values(), 1.0)
        self._optimiser.step()
        return loss.item()

    def _said(self, observed: NDArray[np.int16]) -> torch.Tensor:
        one = packed(self._shape, observed)
        arrays = (one.words, one.places, one.parts, one.counts)
        words, places, parts, counts = (torch.from_numpy(a).to(self._course.device) for a in arrays)
        return outputs(torch, self._shape, self._weights, (words, places, parts, counts))

    def _loss(self, said: torch.Tensor, rows: NDArray[np.intp]) -> torch.Tensor:
        """Add up: squared errors of gains, how improbable the best lists are, and which lists save."""
        shares, best = self._lessons.shares[rows], self._best[rows]
        gains, saves = self._on(self._gains[rows]), self._on((shares > 0).astype(np.float32))
        # Not -inf: where no list saves, the logarithm of a sum of nothing times 0 would not be a number.
        worst = self._on(np.where((shares == best) & (best > 0), 0, -30).astype(np.float32))
        improvable = self._on((best[:, 0] > 0).astype(np.float32))
        squared = ((said[:, 0] - gains) ** 2).sum(dim=1).mean()
        if not self._course.auxiliary:
            return squared
        chosen = torch.logsumexp(torch.log_softmax(said[:, 1], dim=1) + worst, dim=1)
        # One more, since a batch may have none that any list improves.
        choice = -(chosen * improvable).sum() / (improvable.sum() + 1)
        return squared + 0.1 * choice + binary_cross_entropy_with_logits(said[:, 2], saves)

    def _on(self, array: NDArray[np.float32]) -> torch.Tensor:
        return torch.from_numpy(array).to(self._course.device)

    @torch.no_grad()
    def _judge(self) -> float:
        """Compare squared errors of gains, in the objective's unit, with those of expecting nothing."""
        order = self._held[np.argsort(self._lengths[self._held], kind="stable")]
        errors, nothing = 0.0, 1e-9
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            weight = np.sqrt(self._lessons.baseline[rows, None])
            said = self._said(self._lessons.observed[rows])[:, 0].cpu().numpy()
            errors += float((weight * (said - self._gains[rows]) ** 2).sum())
            nothing += float((weight * self._gains[rows] ** 2).sum())
        return errors / nothing

    def _save(self) -> None:
        about = {"number": self.number, "best": self.best}
        self._kept.write(self._weights, self._optimiser, {"best": self.kept}, about)

    def _resume(self) -> None:
        others, about = self._kept.read(self._weights, self._optimiser)
        self.kept = others.get("best", {})
        self.number, self.best = about["number"], (about["best"][0], about["best"][1])
