"""Training language models, and going on after a kill."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planish.core import PlanishError
from planish.models.decoder import DecoderShape, remembered
from planish.train.samples import Sample, in_batches

SHAPE = DecoderShape(tokens=12, context=32, width=16, depth=1, heads=2)
TRAINING = """
import json, sys, time
from pathlib import Path
from train.test_text_training import SHAPE, config, texts
from planish.train.text_training import train_text
def told(p):
    print(json.dumps([p.step, p.loss, p.held]), flush=True)
    time.sleep(float(sys.argv[2]))
train_text(texts(40), texts(8, 1), SHAPE, config(Path(sys.argv[1])), told)
"""


def texts(count: int, seed: int = 0) -> list[Sample]:
    """A prompt of some tokens; the answer is what comes after its last one, some times."""
    random, found = np.random.default_rng(seed), list[Sample]()
    for _ in range(count):
        asked = random.integers(1, 10, size=int(random.integers(2, 6)))
        found.append(
            Sample(np.array([0, *asked, 11, *[asked[-1] + 1] * len(asked)], np.int32), len(asked) + 2)
        )
    return found


def config(checkpoint: Path, **others: object) -> object:
    from planish.train.text_training import TextConfig

    return replace(
        TextConfig(12, 0, checkpoint, batch=100, accumulation_steps=2, every=4, rate=1e-2), **others
    )  # type: ignore[arg-type]


def test_batches_have_all_texts_once_and_are_full() -> None:
    given = texts(50)
    batches = in_batches(given, 60)
    assert sorted(map(id, (one for batch in batches for one in batch))) == sorted(map(id, given))
    padded = [len(batch) * max(len(one.tokens) for one in batch) for batch in batches]
    assert max(padded) <= 60
    assert np.mean(padded) > 40
    assert len(in_batches(given, 1)) == 50


def test_little_of_a_batch_is_padding() -> None:
    lengths = np.random.default_rng(0).lognormal(5.5, 0.8, 4096).clip(20, 1024).astype(int)
    given = [Sample(np.zeros(length, np.int32), 1) for length in lengths]
    batches = in_batches(given, 8192)
    read = sum(len(batch) * max(len(one.tokens) for one in batch) for batch in batches)
    assert 1 - lengths.sum() / read < 0.03, "in the order of drawing it is more than half"


def test_the_loss_of_texts_is_the_same_in_any_batch() -> None:
    torch = pytest.importorskip("torch")
    from planish.train.text_training import first_weights_of, nll_sum

    torch.manual_seed(0)
    weights = {name: each.requires_grad_() for name, each in first_weights_of(SHAPE).items()}
    given, found = texts(30), list[tuple[float, list[object]]]()
    for batches in ([given], in_batches(given, 60), [[one] for one in given]):
        loss = torch.stack([nll_sum(SHAPE, weights, batch, "cpu") for batch in batches]).sum()
        found.append((loss.item(), list(torch.autograd.grad(loss, [*weights.values()]))))
    for loss, gradients in found[1:]:
        assert loss == pytest.approx(found[0][0], rel=1e-5)
        torch.testing.assert_close(gradients, found[0][1], rtol=1e-3, atol=1e-4)


def test_the_rate_rises_and_falls_to_a_tenth() -> None:
    pytest.importorskip("torch")
    from planish.train.text_training import share_of_peak

    rates = [share_of_peak(done / 1000) for done in range(1001)]
    peak = int(np.argmax(rates))
    assert 0 < rates[0] < 0.1
    assert rates[peak] == pytest.approx(1, abs=1e-3)
    assert np.all(np.diff(rates[: peak + 1]) > 0)
    assert np.all(np.diff(rates[peak:]) <= 0)
    assert rates[-1] == pytest.approx(0.1)


def test_it_learns_to_answer_and_nothing_of_prompts(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.text_training import train_text

    shown = list[set[str]]()
    parameters, found = train_text(
        texts(120),
        texts(20, 1),
        SHAPE,
        config(tmp_path / "c", steps=80, every=40, batch=400, accumulation_steps=1),  # type: ignore[arg-type]
        evaluate=lambda arrays: shown.append(set(arrays)) or {},
    )
    assert shown == [set(SHAPE.parameters())] * 2
    assert found["perplexity held back"] < 2, "chance has 10"
    sample = texts(1, 2)[0]
    memory = remembered(SHAPE, parameters, sample.tokens[: sample.begin].tolist())
    assert memory.scores.argmax() == sample.tokens[sample.begin]
    # How probable prompts are was never asked: their first token is hardly better than chance.
    start = remembered(SHAPE, parameters, [0]).scores
    assert math.exp(start[1:10].max() - np.logaddexp.reduce(start)) < 0.9


def test_gradients_that_are_accumulation_steps_are_those_of_one_batch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.text_training import train_text

    given, losses = texts(10), dict[int, list[float]]()
    for parts, batch in ((1, 10_000), (2, 5 * 12)):
        losses[parts] = []
        some = config(tmp_path / f"{parts}", steps=3, every=3, batch=batch, accumulation_steps=parts)
        equal = [Sample(np.resize(one.tokens, 12), 6) for one in given]
        train_text(equal, equal, SHAPE, some, lambda p, to=losses[parts]: to.append(p.loss))  # type: ignore[arg-type, misc]
    assert losses[1] == pytest.approx(losses[2], rel=1e-3)


def test_a_training_that_is_killed_goes_on_to_the_same_losses(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    # In a process of its own, too: sums differ in their last bits with what torch's threads did before.
    whole = trained(tmp_path / "a")
    begun, rest = trained(tmp_path / "b", 0.05, lines=6), trained(tmp_path / "b")
    assert sorted(whole) == list(range(1, 13))
    assert min(rest) == max(step for step in begun if step % 4 == 0) + 1
    assert begun | rest == whole


def trained(checkpoint: Path, wait: float = 0.0, lines: int = 0) -> dict[int, list[float | None]]:
    """Train in a process of its own; after so many lines it is killed. Give what it told of each step."""
    folders = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    command = [sys.executable, "-c", TRAINING, str(checkpoint), str(wait)]
    environment = {**os.environ, "PYTHONPATH": folders}
    found: dict[int, list[float | None]] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        for line in process.stdout:
            step, *told = json.loads(line)
            found[step] = told
            if len(found) == lines:
                process.send_signal(signal.SIGKILL)
    assert process.returncode == (-signal.SIGKILL if lines else 0)
    return found


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.text_training import train_text

    path = tmp_path / "c"
    train_text(texts(9), texts(2), SHAPE, config(path, steps=1))  # type: ignore[arg-type]
    for other, shape in (
        (config(path, steps=2), SHAPE),
        (config(path, steps=1), replace(SHAPE, depth=2)),
    ):
        with pytest.raises(PlanishError, match="is of another training"):
            train_text(texts(9), texts(2), shape, other)  # type: ignore[arg-type]
    with pytest.raises(PlanishError, match="no text to be learnt from is short enough for the context of 32"):
        train_text([], texts(2), SHAPE, config(path))  # type: ignore[arg-type]
