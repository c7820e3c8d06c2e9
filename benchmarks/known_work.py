"""Work whose amount is known, and evaluators that time it; see `verdicts.py`."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from planish.core import Candidate, Measured, Outcome, StageClock, Step
from planish.measure import PairedTimer, Runs, SharedBaselineTime, Timing, time_call

TIMING = Timing(budget_s=0.05, block_s=1e-3, fewest=5, most=50, slow_factor=math.inf)


@dataclass(frozen=True)
class Work(Step):
    """So many rounds of PBKDF2: no memory, and no pause."""

    rounds: int = 1


@dataclass(frozen=True)
class Worker:
    """Makes what times work.

    Args:
        baseline: rounds that it is timed beside, alternately, as models and modules are; 0: each is timed
            alone, as loops and programs are.
        baseline_time: what the baseline takes.
    """

    baseline: int
    baseline_time: SharedBaselineTime

    def __call__(self) -> Worker:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Time the work that a candidate stands for."""
        (step,) = candidate.steps
        assert isinstance(step, Work)
        with clock("run"):
            if self.baseline:
                paired = PairedTimer(self.baseline_time, TIMING, patience=4)
                timed = paired.time(calls(step.rounds), calls(self.baseline))
            else:
                timed = time_call(calls(step.rounds), TIMING)
        return Measured({"time_s": timed.median}, timed.named({"time_s": float}, one_core=True))


def calls(rounds: int) -> Runs:
    """Give what does some work n times."""

    def run(count: int) -> None:
        for _ in range(count):
            hashlib.pbkdf2_hmac("sha256", b"planish", b"verdicts", rounds)

    return run


@dataclass(frozen=True)
class Layers(Step):
    """A network of so many equal layers."""

    count: int = 1


@dataclass(frozen=True)
class Networks:
    """Makes what times networks by ONNX Runtime, each in a session of its own, beside the baseline's.

    Args:
        folder: where the models are.
        baseline: layers of the baseline.
        baseline_time: what the baseline takes.
    """

    folder: Path
    baseline: int
    baseline_time: SharedBaselineTime

    def __call__(self) -> Networks:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Time the network that a candidate stands for."""
        (step,) = candidate.steps
        assert isinstance(step, Layers)
        with clock("build"):
            own, base = _Session(self._file(step.count)), _baseline(self._file(self.baseline))
        with clock("run"):
            timed = PairedTimer(self.baseline_time, TIMING, patience=4).time(own.run, base.run)
        return Measured({"time_s": timed.median}, timed.named({"time_s": float}, one_core=True))

    def _file(self, layers: int) -> Path:
        return self.folder / f"{layers}.onnx"


@dataclass
class _Session:
    """A session of ONNX Runtime on one core."""

    file: Path
    _session: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = runtime.InferenceSession(self.file, options, providers=["CPUExecutionProvider"])

    def run(self, count: int) -> None:
        """Run the model so many times."""
        import numpy as np

        feed = {"x": np.ones((4, WIDTH), np.float32)}
        for _ in range(count):
            self._session.run(None, feed)


@cache
def _baseline(file: Path) -> _Session:
    return _Session(file)


WIDTH = 128


def write_network(file: Path, layers: int) -> None:
    """Write a network of equal layers, each with weights of its own."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random, names = np.random.default_rng(0), ["x", *(f"x{n}" for n in range(1, layers + 1))]
    weights = [
        numpy_helper.from_array((random.normal(size=(WIDTH, WIDTH)) / 12).astype(np.float32), f"w{n}")
        for n in range(layers)
    ]
    nodes = [
        node
        for n in range(layers)
        for node in (
            helper.make_node("MatMul", [names[n], f"w{n}"], [f"y{n}"]),
            helper.make_node("Relu", [f"y{n}"], [names[n + 1]]),
        )
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, WIDTH]) for name in ("x", names[layers])
    ]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), file)
