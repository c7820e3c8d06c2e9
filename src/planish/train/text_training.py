"""Training of a decoder-only language model with PyTorch (thesis 4.3.3)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from planish.core import PlanishError, rng
from planish.models.decoder import DecoderShape
from planish.train.optimization import (
    WARM_UP,
    OnProgress,
    StepLimit,
    Tensors,
    TimeLimit,
    Training,
    arrays_of,
    until_stopped,
)
from planish.train.samples import Sample, digest_of, in_batches
from planish.train.torch_decoder import TextBatch, nll_sum, text_batch, turns_of

POOL = 4096
"""Texts of a bucket: drawn at random and sorted by length, so that little of a batch is padding."""
AHEAD = 4
"""Batches that a thread prepares while others are learnt from."""
LEAST_RATE = 0.1
"""The last learning rate, as a share of the peak's."""
Arrays = dict[str, NDArray[np.float32]]
Evaluate = Callable[[Arrays], Mapping[str, float]]
"""Computes further metrics of the parameters, by name."""


@dataclass(frozen=True)
class TextConfig:
    """Configuration of a training.

    Args:
        steps: of the optimizer; not read where `minutes` are given.
        seed: of the first weights and of the order.
        checkpoint: file from which the training is resumed.
        batch: tokens of a batch at most, padding included; at least one text.
        rate: the peak learning rate; the thesis has 1e-5 for 7 billion parameters, small networks take more.
        every: steps between evaluations on the validation set, at each of which a checkpoint is written; with
            `minutes` there are ten.
        device: "cpu", or "cuda", which computes in bfloat16; on processors bfloat16 was slower.
        first: initial weights, for fine-tuning; None draws them.
        minutes: how long to train; None for `steps`.
        prompts: whether prompts are learnt, too; the validation loss is always that of answers.
        balance: whether improvable texts are drawn as often as the others, see `Sample.improvable`.
    """

    steps: int
    seed: int
    checkpoint: Path
    batch: int = 8192
    rate: float = 1e-3
    every: int = 250
    device: str = "cpu"
    first: Mapping[str, NDArray[np.float32]] | None = field(default=None, repr=False)
    minutes: float | None = None
    prompts: bool = False
    balance: bool = False


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
        on_step: receives the progress after each step; on a GPU after every 16.
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


def balanced(samples: Sequence[Sample], random: np.random.Generator) -> NDArray[np.intp]:
    """Draw as many improvable texts as others: indices, as many as there are texts.

    Most functions have no list that is better than -Oz's, so a model that is trained on functions as they are
    learns to answer -Oz. The thesis's data are not balanced.
    """
    improvable = np.array([one.improvable for one in samples])
    classes = [np.flatnonzero(improvable == side) for side in (False, True)]
    half = len(samples) // 2
    # Repeated where a class has fewer; of a larger one, others are drawn in the next epoch.
    drawn = [np.resize(random.permutation(one), half) for one in classes if len(one)]
    return random.permutation(np.concatenate(drawn)) if len(drawn) == 2 else random.permutation(len(samples))


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
        length = [config.steps, config.every] if config.minutes is None else [config.minutes]
        numbers = [config.seed, config.batch, config.rate, config.prompts, config.balance]
        recipe = [asdict(shape), length, numbers, digest_of(samples, held)]
        super().__init__(drawn, config.device, config.rate, config.checkpoint, recipe)
        self._turns = turns_of(shape, config.device)
        # Dynamic: batches have texts of any length. On a processor it saves less than compiling takes.
        compiled = config.device == "cuda"
        self._nll_sum = torch.compile(nll_sum, dynamic=True) if compiled else nll_sum

    def train(self, on_step: OnProgress, evaluate: Evaluate) -> None:
        """Train up to the end."""
        config = self._config
        limit = (
            StepLimit(config.steps, config.every)
            if config.minutes is None
            else TimeLimit(60 * config.minutes, self.done)
        )
        drawn = self._drawn()
        # The batches before a resumed step are drawn again and skipped, so that the order is the same as in
        # a training without interruption.
        for _ in range(self.step):
            next(drawn)
        batches = prefetched(map(self._prepared, drawn))

        def learn(share: float) -> tuple[torch.Tensor, int]:
            batch, read = next(batches)
            batch = batch.to(config.device)
            loss = self._nll_sum(self._shape, self.weights, batch, self._turns) / len(batch.wanted)
            return self.descend(share_of_peak(share), loss), read

        try:
            self.run(limit, learn, partial(self._evaluate, evaluate), on_step)
        finally:
            batches.close()

    def _drawn(self) -> Iterator[list[Sample]]:
        """Yield batches without end; they depend on the seed and the epoch alone."""
        epoch = 0
        while True:
            random = rng(self._config.seed, epoch)
            order = (
                balanced(self._samples, random)
                if self._config.balance
                else random.permutation(len(self._samples))
            )
            for at in range(0, len(order), POOL):
                pool = [self._samples[index] for index in order[at : at + POOL].tolist()]
                batches = in_batches(pool, self._config.batch)
                yield from (batches[index] for index in random.permutation(len(batches)).tolist())
            epoch += 1

    def _prepared(self, samples: Sequence[Sample]) -> tuple[TextBatch, int]:
        """Return a batch, and how many tokens are read."""
        batch = text_batch(samples, prompts=self._config.prompts, gpu=self._config.device == "cuda")
        return batch, sum(len(one.tokens) for one in samples)

    def _evaluate(self, evaluate: Evaluate) -> tuple[float, Mapping[str, float]]:
        """Return the validation loss, in nats for each token, and further metrics; write the checkpoint."""
        losses, learnt = list[torch.Tensor](), 0
        with torch.no_grad():
            for samples in in_batches(self._held, self._config.batch):
                batch = text_batch(samples, gpu=self._config.device == "cuda").to(self._config.device)
                losses.append(self._nll_sum(self._shape, self.weights, batch, self._turns))
                learnt += len(batch.wanted)
        held = float(torch.stack(losses).sum()) / learnt
        self.evaluated(held)
        return held, evaluate({name: tensor.detach().cpu().numpy() for name, tensor in self.weights.items()})


def prefetched(batches: Iterator[tuple[TextBatch, int]]) -> Generator[tuple[TextBatch, int]]:
    """Have a thread prepare batches, without end, before they are asked for."""
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, batches) for _ in range(AHEAD))
        while True:
            waiting.append(thread.submit(next, batches))
            yield waiting.popleft().result()
