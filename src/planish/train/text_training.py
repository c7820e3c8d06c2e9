"""Training of a network that continues text, by torch (thesis 4.3.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from planish.core import PlanishError, rng
from planish.models.decoder import DecoderShape, hidden_rows
from planish.train.optimisation import (
    WARM_UP,
    OnProgress,
    Tensors,
    Training,
    arrays_of,
    until_stopped,
)
from planish.train.samples import Sample, digest_of, in_batches


def surprise(shape: DecoderShape, weights: Tensors, batch: Sequence[Sample], device: str) -> torch.Tensor:
    """Return the surprise of what is learnt of some texts, in nats, all together.

    It does not depend on which texts are read together: padding comes last, where nothing attends to it.

    Args:
        shape: of the network.
        weights: of it, on the device.
        batch: texts, padded here to the longest one.
        device: "cpu", or "cuda", where it computes in bfloat16.
    """
    tokens = np.zeros((len(batch), max(len(one.tokens) for one in batch)), np.int64)
    learnt = np.zeros(tokens.shape, bool)
    for row, one in enumerate(batch):
        tokens[row, : len(one.tokens)] = one.tokens
        learnt[row, one.begin : len(one.tokens)] = True
    read, wanted = torch.from_numpy(tokens).to(device), torch.from_numpy(learnt[:, 1:]).to(device)
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        rows = hidden_rows(torch, shape, weights, read[:, :-1])
        # Only where something is learnt: scores of the whole vocabulary take the most memory by far.
        scores = rows[wanted] @ weights["tokens"].T
    # Sums over a vocabulary take more digits than bfloat16 has.
    return cross_entropy(scores.float(), read[:, 1:][wanted], reduction="sum")


POOL = 4096
"""Texts that are drawn together and sorted by length, so that little of a batch is padding."""
LEAST_RATE = 0.1
"""The last learning rate, as a share of the peak's."""
Arrays = dict[str, NDArray[np.float32]]
Evaluate = Callable[[Arrays], Mapping[str, float]]
"""Returns what else is found of the parameters, by name."""


@dataclass(frozen=True)
class TextConfig:
    """Configuration of a training.

    Args:
        steps: of the optimiser.
        seed: of the first weights and of the order.
        checkpoint: the training is resumed from it.
        batch: tokens of a batch at most, padding included; at least one text.
        accumulated: batches whose gradients make one step.
        rate: the peak learning rate; the thesis has 1e-5 for 7 billion parameters, small networks take more.
        every: steps between evaluations on what is held back, at each of which a checkpoint is written.
        device: "cpu", or "cuda", where it computes in bfloat16: on processors that was slower.
        first: weights to begin with, as for fine-tuning; None draws them.
    """

    steps: int
    seed: int
    checkpoint: Path
    batch: int = 8192
    accumulated: int = 1
    rate: float = 1e-3
    every: int = 250
    device: str = "cpu"
    first: Mapping[str, NDArray[np.float32]] | None = field(default=None, repr=False)


def train_text(
    samples: Sequence[Sample],
    held: Sequence[Sample],
    shape: DecoderShape,
    config: TextConfig,
    on_step: OnProgress = lambda _: None,
    evaluate: Evaluate = lambda _: {},
) -> tuple[Arrays, dict[str, float]]:
    """Learn to continue texts; what surprises least by what is held back is kept.

    Args:
        samples: what is learnt from, none longer than the context.
        held: what is not.
        shape: of the network.
        config: how.
        on_step: receives the progress after each step.
        evaluate: receives the parameters at each evaluation, as to compile greedy answers.

    Returns:
        The network's parameters, and what was found of it.

    Raises:
        StoppedError: it was stopped before its first checkpoint.
        PlanishError: there is nothing to learn from; the checkpoint is of another training.
    """
    if not samples or not held:
        what = "learnt from" if held else "held back"
        raise PlanishError(f"no text to be {what} is short enough for the context of {shape.context} tokens")
    training = _Training(samples, held, shape, config)
    with until_stopped(config.device):
        training.train(on_step, evaluate)
    return arrays_of(training.kept), {
        "step": float(training.best[0]),
        "perplexity held back": math.exp(training.best[1]),
    }


def share_of_peak(done: float) -> float:
    """Return the share of the peak learning rate: it rises, and falls as a cosine to a tenth (4.3.3)."""
    if done < WARM_UP:
        # Not from 0 on, or the first step would learn nothing.
        return (done + 1e-3) / (WARM_UP + 1e-3)
    return LEAST_RATE + (1 - LEAST_RATE) * (0.5 + 0.5 * math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


def first_weights_of(shape: DecoderShape) -> Tensors:
    """Draw the weights that a training begins with; what is added to rows is smaller in deeper networks."""
    found: Tensors = {}
    for name, size in shape.parameters().items():
        if name.endswith("scale"):
            found[name] = torch.ones(size)
            continue
        spread = 0.02 if name == "tokens" else size[0] ** -0.5
        deep = (2 * shape.depth) ** -0.5 if name.endswith(("mixed", "down")) else 1.0
        found[name] = torch.randn(size) * (spread * deep)
    return found


class _Training(Training):
    """A network, its optimiser, and what it learns from."""

    def __init__(
        self, samples: Sequence[Sample], held: Sequence[Sample], shape: DecoderShape, config: TextConfig
    ) -> None:
        self._samples, self._held, self._shape, self._config = samples, held, shape, config
        torch.manual_seed(config.seed)
        drawn = first_weights_of(shape)
        if config.first is not None:
            drawn = {name: torch.from_numpy(config.first[name].copy()) for name in drawn}
        # Not the device, for a training may be resumed on another; `every` too, since the best of these
        # evaluations is kept.
        numbers = [config.steps, config.seed, config.batch, config.accumulated, config.rate, config.every]
        recipe = [asdict(shape), *numbers, digest_of(samples, held)]
        super().__init__(drawn, config.device, config.rate, config.checkpoint, recipe)

    def train(self, on_step: OnProgress, evaluate: Evaluate) -> None:
        """Go on to the end."""
        coming, together = self._coming(), self._config.accumulated
        # What was learnt before a stop is drawn again and passed over: the order is that of a training
        # without one.
        for _ in range(self.step * together):
            next(coming)

        def learn() -> tuple[float, int]:
            return self._learn([next(coming) for _ in range(together)])

        self.run(self._config.steps, self._config.every, learn, partial(self._evaluate, evaluate), on_step)

    def _coming(self) -> Iterator[list[Sample]]:
        """Yield batches for ever; which they are follows from the seed and the epoch."""
        epoch = 0
        while True:
            random = rng(self._config.seed, epoch)
            order = random.permutation(len(self._samples))
            for at in range(0, len(order), POOL):
                pool = [self._samples[index] for index in order[at : at + POOL].tolist()]
                batches = in_batches(pool, self._config.batch)
                yield from (batches[index] for index in random.permutation(len(batches)).tolist())
            epoch += 1

    def _learn(self, batches: Sequence[Sequence[Sample]]) -> tuple[float, int]:
        """Take a step; return its loss, and how many tokens were read."""
        learnt = sum(len(one.tokens) - one.begin for batch in batches for one in batch)
        # By the tokens of all batches, so that the gradient is that of one large batch.
        losses = (self._surprise(batch) / learnt for batch in batches)
        whole = self.descend(share_of_peak(self.step / self._config.steps), losses)
        return whole, sum(len(one.tokens) for batch in batches for one in batch)

    def _surprise(self, batch: Sequence[Sample]) -> torch.Tensor:
        return surprise(self._shape, self.weights, batch, self._config.device)

    def _evaluate(self, evaluate: Evaluate) -> tuple[float, Mapping[str, float]]:
        """Return the surprise of what is held back, for each token; write the checkpoint."""
        with torch.no_grad():
            whole = sum(float(self._surprise(batch)) for batch in in_batches(self._held, self._config.batch))
        held = whole / sum(len(one.tokens) - one.begin for one in self._held)
        self.evaluated(held)
        return held, evaluate({name: tensor.detach().cpu().numpy() for name, tensor in self.weights.items()})
