"""Training of networks by torch: first weights, rates, batches, and checkpoints."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from planish.core import PlanishError, StoppedError
from planish.core.files import replacing
from planish.models.networks import EncoderShape, PackedRows, ReaderShape, pack_rows
from planish.models.writer import WriterShape
from planish.train.samples import ListDataset

Tensors = dict[str, torch.Tensor]
_STATE = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingProgress:
    """Progress of a training.

    Args:
        step: steps that were taken; epochs, where progress is reported after each.
        steps: how many there will be; estimated where the clock ends the training.
        loss: of the steps since the last report, in the mean.
        held: the error on what is held back, in the training's own unit; None where it was not evaluated.
        rate: tokens or instructions in a second since the training began or was resumed.
        left: seconds.
        metrics: what else was evaluated, such as the savings of greedy answers.
    """

    step: int
    steps: int
    loss: float
    held: float | None
    rate: float
    left: float
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


OnProgress = Callable[[TrainingProgress], None]


class StepLimit:
    """Length of a training in steps.

    Args:
        steps: in all.
        every: steps between evaluations; the last step is evaluated, too.
    """

    def __init__(self, steps: int, every: int) -> None:
        self._steps, self._every = steps, every

    def after(self, step: int) -> tuple[float, bool]:
        """Return the share of the training that is done after a step, and whether to evaluate."""
        return step / self._steps, step % self._every == 0 or step >= self._steps


EVALUATIONS = 10
"""Evaluations of a training whose length is a time."""


class TimeLimit:
    """Length of a training in time; a resumed training continues with the share that its checkpoint has.

    The first step takes time, but advances nothing: in it torch compiles the network, and the learning rate
    would have reached its peak by then.

    Args:
        seconds: in all.
        done: the share of earlier processes.
    """

    def __init__(self, seconds: float, done: float) -> None:
        self._done, self._evaluated = done, done
        self._end, self._compiled = time.monotonic() + (1 - done) * seconds, math.inf

    def after(self, step: int) -> tuple[float, bool]:  # noqa: ARG002
        """Return the share of the training that is done by now, and whether to evaluate."""
        now = time.monotonic()
        self._compiled = min(self._compiled, now)
        passed = (now - self._compiled) / max(self._end - self._compiled, 1e-9) if now < self._end else 1.0
        share = self._done + (1 - self._done) * passed
        due = share >= 1 or int(share * EVALUATIONS) > int(self._evaluated * EVALUATIONS)
        self._evaluated = share if due else self._evaluated
        return share, due


UNREAD = 16
"""Steps between reports on an accelerator: to read a loss waits for all that was queued before it."""


class Training:
    """Weights in training, the best of them so far, and their checkpoint, from which they are resumed.

    A kill leaves the old checkpoint or the new one.

    Args:
        first: the first weights; without a checkpoint the training begins with them.
        device: "cpu" or "cuda".
        rate: of learning, at its peak.
        checkpoint: where it is kept after each evaluation.
        recipe: what the training is of, as JSON has it; another training is not resumed from its checkpoint.

    Attributes:
        weights: on the device.
        step: how many steps were taken.
        done: the share of the training at the last evaluation.
        best: the step whose weights are the best on what is held back, and their error there.
        kept: these weights; empty before the first evaluation.

    Raises:
        PlanishError: the checkpoint is of another training, or damaged.
    """

    def __init__(self, first: Tensors, device: str, rate: float, checkpoint: Path, recipe: object) -> None:
        self.weights: Tensors = {name: tensor.to(device).requires_grad_() for name, tensor in first.items()}
        self._rate = rate
        self._optimizer = torch.optim.AdamW(self.weights.values(), rate, BETAS, weight_decay=DECAY)
        self.step, self.done, self.best, self.kept = 0, 0.0, (0, math.inf), Tensors()
        self._unread = UNREAD if device == "cuda" else 1
        self._checkpoint, self._recipe = checkpoint, json.dumps(recipe)
        if checkpoint.exists():
            self._resume()

    def run(
        self,
        limit: StepLimit | TimeLimit,
        learn: Callable[[float], tuple[torch.Tensor, int]],
        evaluate: Callable[[], tuple[float, Mapping[str, float]]],
        on_step: OnProgress,
    ) -> None:
        """Train up to a limit.

        Args:
            limit: when to end, and when to evaluate.
            learn: takes a step at this share of the training; returns its loss, and how many tokens it read.
            evaluate: returns the error on what is held back, and what else was evaluated.
            on_step: receives the progress: after each step, on an accelerator after every `UNREAD`.
        """
        started, begun, tokens = time.monotonic(), self.done, 0
        losses, share = list[torch.Tensor](), self.done
        while share < 1:
            loss, read = learn(share)
            losses.append(loss)
            self.step, tokens = self.step + 1, tokens + read
            share, due = limit.after(self.step)
            if not due and self.step % self._unread:
                continue
            mean = float(torch.stack(losses).mean())
            losses.clear()
            if due:
                self.done = share
            held, metrics = evaluate() if due else (None, {})
            seconds = time.monotonic() - started
            left = seconds * (1 - share) / max(share - begun, 1e-9)
            steps = max(self.step, round(self.step / max(share, 1e-9)))
            on_step(TrainingProgress(self.step, steps, mean, held, tokens / seconds, left, metrics))

    def descend(self, share: float, loss: torch.Tensor) -> torch.Tensor:
        """Take a step down a loss; nothing waits for the device.

        Args:
            share: of the peak learning rate.
            loss: of a batch.

        Returns:
            The loss, on the device.
        """
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate * share
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
        self._optimizer.step()
        return loss.detach()

    def evaluated(self, error: float) -> None:
        """Keep the weights if they are the best so far, and write the checkpoint.

        Raises:
            PlanishError: it cannot be written, as on a full disk; the one before stays as it is.
        """
        if error < self.best[1]:
            self.best = self.step, error
            self.kept = {name: tensor.detach().clone() for name, tensor in self.weights.items()}
        tensors = self.weights | {f"best {name}": tensor for name, tensor in self.kept.items()}
        for name, tensor in self.weights.items():
            tensors |= {f"{key} {name}": value for key, value in self._optimizer.state[tensor].items()}
        state = {"step": self.step, "done": self.done, "best": self.best}
        about = {"training": self._recipe, "about": json.dumps(state)}
        whole = save({name: t.detach().contiguous().cpu() for name, t in tensors.items()}, about)
        try:
            with replacing(self._checkpoint) as part:
                part.write_bytes(whole)
        except OSError as error:
            what = f"cannot write the checkpoint {self._checkpoint}: {error.strerror or error}"
            then = "resumes from the last whole one" if self._checkpoint.exists() else "starts again"
            raise PlanishError(what, f"Make room there: the same command {then}.") from error

    def _resume(self) -> None:
        hint = "Remove it, or name another file: -o FILE."
        try:
            with safe_open(self._checkpoint, "pt") as held:
                metadata = held.metadata() or {}
                # With other data or another shape it would be another training.
                if metadata.get("training") != self._recipe:
                    raise PlanishError(f"{self._checkpoint} is of another training", hint)
                tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise PlanishError(f"cannot read a checkpoint from {self._checkpoint}: {error}", hint) from error
        for name, tensor in self.weights.items():
            tensor.data.copy_(tensors[name])
            state = {key: tensors[f"{key} {name}"] for key in _STATE}
            # The count of steps stays on the processor, where AdamW keeps it whatever the weights' device.
            state |= {key: state[key].to(tensor.device) for key in _STATE[1:]}
            self._optimizer.state[tensor] = state
        self.kept = {name: tensors[f"best {name}"] for name in self.weights if f"best {name}" in tensors}
        about = json.loads(metadata["about"])
        self.step, self.done, self.best = about["step"], about["done"], (about["best"][0], about["best"][1])


def digest(dataset: ListDataset, held: NDArray[np.bool_]) -> str:
    """Name what is learnt from."""
    whole = hashlib.sha256(dataset.shares.tobytes())
    whole.update(dataset.observed.tobytes())
    whole.update(held.tobytes())
    return whole.hexdigest()


BETAS, DECAY, WARM_UP = (0.9, 0.95), 0.05, 0.05
"""Of AdamW, as the thesis has them (4.3.3); the share of steps in which the rate rises."""
RATE = 1.5e-3
DROPPED = 0.1
"""So many instructions are left out of each reading: with few programs, it would learn them by heart."""
BATCH, POOL = 32, 8
"""Programs of a batch; batches that are drawn together and sorted by length, so that little is padding."""


@dataclass(frozen=True)
class ListConfig:
    """Configuration of a training on what lists save.

    Args:
        epochs: how often all is read.
        seed: of the first weights, and of all that is drawn.
        checkpoint: the training is resumed from it, and writes it after each evaluation.
        device: "cpu" or "cuda".
    """

    epochs: int
    seed: int
    checkpoint: Path
    device: str = "cpu"


class ListTraining(Training):
    """Training of a network that reads instructions, on what lists save.

    Args:
        dataset: what is known.
        held: (programs,), those held back from training; with none, all evaluate.
        shape: of the network.
        config: has the epochs, the seed, the device and the checkpoint.
        recipe: what else the training is of.
    """

    def __init__(
        self,
        dataset: ListDataset,
        held: NDArray[np.bool_],
        shape: ReaderShape | WriterShape,
        config: ListConfig,
        recipe: Sequence[object],
    ) -> None:
        self._dataset, self._device = dataset, config.device
        self._mine = np.flatnonzero(~held)
        self._lengths = (dataset.observed[:, :, 0] > 0).sum(axis=1)
        evaluation = np.flatnonzero(held) if held.any() else self._mine
        # By length, so that little is padding.
        self._evaluation = evaluation[np.argsort(self._lengths[evaluation], kind="stable")]
        self._batches = math.ceil(len(self._mine) / BATCH)
        torch.manual_seed(config.seed)
        whole = [asdict(shape), config.epochs, config.seed, *recipe, digest(dataset, held)]
        super().__init__(first_weights(shape.parameters()), config.device, RATE, config.checkpoint, whole)
        self._reads: EncoderShape = shape

    def tensors(self, observed: NDArray[np.int16]) -> PackedRows:
        """Pack observations on the device."""
        return PackedRows(*map(self.tensor, pack_rows(self._reads, observed)))

    def tensor(self, array: NDArray[Any]) -> torch.Tensor:
        """Move an array to the device."""
        return torch.from_numpy(array).to(self._device)

    def dropped(self, rows: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.int16]:
        """Observe programs without `DROPPED` of their instructions."""
        observed = self._dataset.observed[rows].copy()
        observed[random.random(observed.shape[:2]) < DROPPED] = 0
        return observed

    def evaluation_batches(self) -> Iterator[NDArray[np.intp]]:
        """Yield the programs that evaluate, those of like lengths together."""
        return (self._evaluation[at : at + BATCH] for at in range(0, len(self._evaluation), BATCH))


def device_named(name: str) -> str:
    """Return the device of PyTorch that is asked for: "cpu" or "cuda"; "auto" is the latter if it is there.

    Raises:
        PlanishError: it cannot compute there.
    """
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise PlanishError("there is no accelerator that torch can use", "Choose the device auto.")
    return name if name != "auto" else "cuda" if there else "cpu"


def share_of_rate(done: float) -> float:
    """Return the share of the learning rate: it rises, and falls as a cosine.

    Args:
        done: the share of the training that is.
    """
    rest = max(0.0, done - WARM_UP) / (1 - WARM_UP)
    # A hundredth more, so that the first step learns something.
    return min(1.0, done / WARM_UP + 0.01) * (0.5 + 0.5 * math.cos(math.pi * rest))


def first_weights(parameters: Mapping[str, tuple[int, ...]]) -> Tensors:
    """Draw the weights that a training begins with.

    Args:
        parameters: names and shapes of arrays.
    """
    found: Tensors = {}
    for name, size in parameters.items():
        embedded = name in ("words", "positions", "tokens", "steps")
        spread = 0.0 if name.endswith("bias") else 0.1 if embedded else size[0] ** -0.5
        found[name] = torch.randn(size) * (0.1 * spread if name in ("lists", "costs") else spread)
    return found


def batches_of(
    rows: NDArray[np.intp], lengths: NDArray[np.int_], random: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Draw batches of programs of like lengths, in any order.

    Args:
        rows: the programs.
        lengths: by program, of all.
        random: decides which programs share a batch.
    """
    order = random.permutation(rows)
    pools = [order[at : at + POOL * BATCH] for at in range(0, len(order), POOL * BATCH)]
    whole = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
    found = [pool[at : at + BATCH] for pool in whole for at in range(0, len(pool), BATCH)]
    return [found[index] for index in random.permutation(len(found))]


@contextmanager
def until_stopped(device: str) -> Generator[None]:
    """Train within the block, which Ctrl-C ends; a resumed training is the same on a processor.

    For that, threads add up gradients in one order.
    """
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(before or device == "cpu")
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        torch.use_deterministic_algorithms(before)


def arrays_of(kept: Tensors) -> dict[str, NDArray[np.float32]]:
    """Return the best weights of a training.

    Raises:
        StoppedError: it was stopped before any were kept.
    """
    if not kept:
        raise StoppedError("the training was stopped before its first checkpoint", "Nothing was written.")
    return {name: tensor.cpu().numpy().copy() for name, tensor in kept.items()}
