"""Training of a small language model by steps, resumed by the same command, with records of evaluations."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planish.models.decoder import DecoderShape
from planish.train.optimization import TrainingProgress
from planish.train.samples import Sample
from planish.train.text_training import Arrays, Evaluate, TextConfig, train_text

BATCH, RATE = 2048, 2e-3
"""Tokens of a step, and the peak learning rate."""
HELD = "held back"
Record = Mapping[str, Any]


def train_small_model(
    samples: Sequence[Sample],
    held: Sequence[Sample],
    shape: DecoderShape,
    config: TextConfig,
    *,
    evaluate: Evaluate = lambda _: {},
    minutes: float = math.inf,
) -> tuple[Arrays, Mapping[str, float]]:
    """Train a network, or resume its training.

    Each evaluation is printed, and is a line of the records: the step, the tokens read, the validation loss
    in nats a token (`HELD`), and what `evaluate` computes.

    Args:
        samples: texts of the training set.
        held: texts of the validation set.
        shape: of the network.
        config: of the training; its records are beside its checkpoint.
        evaluate: computes further metrics at each evaluation.
        minutes: after which the training stops at its next evaluation.

    Returns:
        The weights of the lowest validation loss, and metrics by name.

    Raises:
        SystemExit: it was stopped before its last step.
    """
    parameters = sum(math.prod(size) for size in shape.parameters().values())
    tokens, end = sum(len(one.tokens) for one in samples), time.monotonic() + 60 * minutes
    name, last = config.checkpoint.stem, 0
    print(f"{name}: {parameters:,} parameters; {len(samples):,} texts, ", end="")
    print(f"{tokens:,} tokens; {len(held):,} held back; {config.steps:,} steps", flush=True)

    def record(progress: TrainingProgress) -> None:
        nonlocal last
        last = progress.step
        if progress.held is None:
            return
        row = {"step": last, "tokens": last * config.batch, HELD: progress.held, **progress.metrics}
        with records_path(config).open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
        print(f"{name}: step {last:,}: loss {progress.loss:.3f}, held back {progress.held:.3f}, ", end="")
        print(f"{progress.rate:,.0f} tokens/s, {progress.left / 60:.0f} minutes left", flush=True)
        if last < config.steps and time.monotonic() > end:
            raise KeyboardInterrupt

    found = train_text(samples, held, shape, config, record, evaluate)
    if 0 < last < config.steps:
        raise SystemExit("stopped; the same command goes on")
    return found


def records_path(config: TextConfig) -> Path:
    """Return the file of a training's records."""
    return config.checkpoint.with_suffix(".jsonl")


def read_records(config: TextConfig) -> list[Record]:
    """Read what each evaluation of a training found."""
    return [json.loads(line) for line in records_path(config).read_text(encoding="utf-8").splitlines()]
