"""Training language models, and going on after a kill."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
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

    return replace(TextConfig(12, 0, checkpoint, batch=200, every=4, rate=1e-2), **others)  # type: ignore[arg-type]


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
    from planish.train.text_training import first_weights_of
    from planish.train.torch_decoder import nll_sum, text_batch, turns_of

    torch.manual_seed(0)
    weights = {name: each.requires_grad_() for name, each in first_weights_of(SHAPE).items()}
    given, found = texts(30), list[tuple[float, list[object]]]()
    for batches in ([given], in_batches(given, 60), [[one] for one in given]):
        turns = turns_of(SHAPE, "cpu")
        losses = [nll_sum(SHAPE, weights, text_batch(batch), turns) for batch in batches]
        loss = torch.stack(losses).sum()
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
        config(tmp_path / "c", steps=80, every=40, batch=400),  # type: ignore[arg-type]
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


def test_prompts_are_learnt_where_that_is_asked_for() -> None:
    pytest.importorskip("torch")
    from planish.train.torch_decoder import text_batch

    given = texts(3)
    whole = [token for one in given for token in one.tokens[1:].tolist()]
    assert text_batch(given, prompts=True).targets.tolist() == whole
    answers = [token for one in given for token in one.tokens[one.begin :].tolist()]
    assert text_batch(given).targets.tolist() == answers


def test_classes_are_drawn_alike_and_all_of_them() -> None:
    pytest.importorskip("torch")
    from planish.train.text_training import balanced

    given = [replace(one, improvable=index < 5) for index, one in enumerate(texts(100))]
    random, seen = np.random.default_rng(0), set[int]()
    for _ in range(12):
        drawn = balanced(given, random)
        assert len(drawn) == 100
        assert sum(given[index].improvable for index in drawn) == 50
        assert np.bincount(drawn)[:5].tolist() == [10] * 5
        seen.update(drawn.tolist())
    assert len(seen) == 100
    assert sorted(balanced(given[5:], random).tolist()) == list(range(95)), "there is but one class"


def test_the_clock_ends_a_training_and_compiling_does_not_advance_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from planish.train.optimization import TimeLimit
    from planish.train.text_training import train_text

    now = 0.0
    monkeypatch.setattr("planish.train.optimization.time.monotonic", lambda: now)
    limit, found = TimeLimit(100, 0.2), list[tuple[float, bool]]()
    for now in (30, 32, 55, 56, 80):  # noqa: B007
        found.append(limit.after(0))
    assert [share for share, _ in found] == pytest.approx([0.2, 0.232, 0.6, 0.616, 1])
    assert [due for _, due in found] == [False, False, True, False, True]
    steps, clock = list[int](), count()
    monkeypatch.setattr(
        "planish.train.optimization.time.monotonic", lambda: next(clock)
    )  # asked twice a step
    for _ in range(2):  # the second one finds that all is done
        some = config(tmp_path / "c", minutes=0.5)
        train_text(texts(40), texts(8, 1), SHAPE, some, lambda p: steps.append(p.step))  # type: ignore[arg-type]
    assert steps == list(range(1, 16))


def test_a_compiled_step_is_one_graph_for_all_lengths() -> None:
    torch = pytest.importorskip("torch")
    from planish.train.text_training import first_weights_of
    from planish.train.torch_decoder import nll_sum, text_batch, turns_of

    torch.manual_seed(0)
    weights = {name: each.requires_grad_() for name, each in first_weights_of(SHAPE).items()}
    turns, graphs = turns_of(SHAPE, "cpu"), list[object]()

    def kept(graph: object, _: object) -> object:
        graphs.append(graph)
        return graph

    compiled = torch.compile(nll_sum, dynamic=True, fullgraph=True, backend=kept)
    for size in (3, 5, 8):
        batch = text_batch(texts(size, size))
        torch.testing.assert_close(
            compiled(SHAPE, weights, batch, turns), nll_sum(SHAPE, weights, batch, turns)
        )
    assert len(graphs) == 1


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
