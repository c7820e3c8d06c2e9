"""Training of a decoder-only language model with PyTorch (thesis 4.3.3)."""

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
from planish.train.optimization import WARM_UP, OnProgress, Tensors, Training, arrays_of, until_stopped
from planish.train.samples import Sample, digest_of, in_batches


def nll_sum(shape: DecoderShape, weights: Tensors, batch: Sequence[Sample], device: str) -> torch.Tensor:
    """Return the cross-entropy of a batch, in nats, summed over the tokens that are learnt.

    It does not depend on how texts are batched: padding comes last, and nothing attends to it.

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
"""Texts of a bucket: drawn at random and sorted by length, so that little of a batch is padding."""
LEAST_RATE = 0.1
"""The last learning rate, as a share of the peak's."""
Arrays = dict[str, NDArray[np.float32]]
Evaluate = Callable[[Arrays], Mapping[str, float]]
"""Computes further metrics of the parameters, by name."""


@dataclass(frozen=True)
class TextConfig:
    """Configuration of a training.

    Args:
        steps: of the optimizer.
        seed: of the first weights and of the order.
        checkpoint: file from which the training is resumed.
        batch: tokens of a batch at most, padding included; at least one text.
        accumulation_steps: batches whose gradients are summed for one step of the optimizer.
        rate: the peak learning rate; the thesis has 1e-5 for 7 billion parameters, small networks take more.
        every: steps between evaluations on the validation set, at each of which a checkpoint is written.
        device: "cpu", or "cuda", which computes in bfloat16; on processors bfloat16 was slower.
        first: initial weights, for fine-tuning; None draws them.
    """

    steps: int
    seed: int
    checkpoint: Path
    batch: int = 8192
    accumulation_steps: int = 1
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
    """Train on texts; return the weights of the lowest validation loss.

    Args:
        samples: texts of the training set, none longer than the context.
        held: texts of the validation set.
        shape: of the network.
        config: of the training.
        on_step: receives the progress after each step.
        evaluate: computes further metrics from the parameters at each evaluation, such as the share of greedy
            answers that compile.

    Returns:
        The network's parameters, and metrics by name.

    Raises:
        StoppedError: the training was stopped before its first checkpoint.
        PlanishError: the training or the validation set is empty, or the checkpoint is of another training.
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
    """Return the share of the peak learning rate: linear warm-up, then a cosine down to a tenth (4.3.3)."""
    if done < WARM_UP:
        # Not from 0, or the first step would change nothing.
        return (done + 1e-3) / (WARM_UP + 1e-3)
    return LEAST_RATE + (1 - LEAST_RATE) * (0.5 + 0.5 * math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


def first_weights_of(shape: DecoderShape) -> Tensors:
    """Draw the initial weights; those of residual branches are smaller in deeper networks."""
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
    """Training of one network: its optimizer and its data."""

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
        numbers = [
            config.steps,
            config.seed,
            config.batch,
            config.accumulation_steps,
            config.rate,
            config.every,
        ]
        recipe = [asdict(shape), *numbers, digest_of(samples, held)]
        super().__init__(drawn, config.device, config.rate, config.checkpoint, recipe)

    def train(self, on_step: OnProgress, evaluate: Evaluate) -> None:
        """Train up to the last step."""
        batches, together = self._batches(), self._config.accumulation_steps
        # The batches before a resumed step are drawn again and skipped, so that the order is the same as in
        # a training without interruption.
        for _ in range(self.step * together):
            next(batches)

        def learn() -> tuple[float, int]:
            return self._learn([next(batches) for _ in range(together)])

        self.run(self._config.steps, self._config.every, learn, partial(self._evaluate, evaluate), on_step)

    def _batches(self) -> Iterator[list[Sample]]:
        """Yield batches without end; they depend on the seed and the epoch alone."""
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
        # Divided by the tokens of all batches, so that the gradient is that of one large batch.
        losses = (self._nll_sum(batch) / learnt for batch in batches)
        whole = self.descend(share_of_peak(self.step / self._config.steps), losses)
        return whole, sum(len(one.tokens) for batch in batches for one in batch)

    def _nll_sum(self, batch: Sequence[Sample]) -> torch.Tensor:
        return nll_sum(self._shape, self.weights, batch, self._config.device)

    def _evaluate(self, evaluate: Evaluate) -> tuple[float, Mapping[str, float]]:
        """Return the validation loss, in nats for each token, and further metrics; write the checkpoint."""
        with torch.no_grad():
            whole = sum(float(self._nll_sum(batch)) for batch in in_batches(self._held, self._config.batch))
        held = whole / sum(len(one.tokens) - one.begin for one in self._held)
        self.evaluated(held)
        return held, evaluate({name: tensor.detach().cpu().numpy() for name, tensor in self.weights.items()})
