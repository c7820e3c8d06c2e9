"""ResNet-18's twelve convolutions (AutoTVM's table 1) beside oneDNN through torch, on one core.

Each is tuned, then timed interleaved with `torch.nn.functional.conv2d`: with the same layout (NCHW), with
channels last, and with weights reordered ahead as ours are. Prints GFLOPS, ratios and geometric means:
`python benchmarks/resnet18.py --seconds 10`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from planish.levels.loops.backends import kernel_of, tree_of
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.workloads import RESNET18, workload
from planish.store import Store, open_store
from planish.tuning.api import tune
from planish.tuning.settings import Budget, Settings
from side_by_side import geomean, interleaved, use_one_core

Call = Callable[[], object]


def ours(program: Program, store: Store, seconds: float) -> Call:
    """Tune a convolution, and give its kernel on arrays of its own."""
    result = tune(program, budget=Budget(seconds=seconds), settings=Settings(), store=store)
    tree = tree_of(program, result.exported)
    outputs = {n: aligned(program.type[n]) for n in program.outputs}
    return kernel_of(program, result.exported, result.task.target, tree).bind(make_inputs(program), outputs)


def theirs(name: str) -> dict[str, Call]:
    """Give torch's ways to compute a convolution; empty where torch is not installed."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return {}
    torch.set_num_threads(1)
    size, inputs, outputs, kernel, stride = RESNET18[name]
    x, w = torch.randn(1, inputs, size, size), torch.randn(outputs, inputs, kernel, kernel)
    conv: Any = partial(torch.nn.functional.conv2d, stride=stride, padding=kernel // 2)
    last = {"memory_format": torch.channels_last}
    calls: dict[str, Call] = {"NCHW": partial(conv, x, w), "NHWC": partial(conv, x.to(**last), w.to(**last))}
    pads, strides, ones = [kernel // 2] * 2, [stride] * 2, [1, 1]
    ops: Any = torch.ops.mkldnn
    ready = ops._reorder_convolution_weight(w, pads, strides, ones, 1, list(x.shape))
    calls["reordered"] = partial(
        ops._convolution_pointwise, x, ready, None, pads, strides, ones, 1, "none", [], ""
    )
    return {k: _without_gradients(c) for k, c in calls.items()}


def _without_gradients(call: Call) -> Call:
    torch: Any = import_module("torch")
    return torch.inference_mode()(call)


def main() -> None:
    """Tune, time and print."""
    use_one_core()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="search budget of each convolution")
    seconds = parser.parse_args().seconds
    ratios: dict[str, list[float]] = {}
    print(f"{'':<5}{'planish':>8}  oneDNN in GFLOPS, and how many times faster planish is")
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "bench.db") as store:
        for name in RESNET18:
            program = workload(name)
            calls = {"planish": ours(program, store, seconds), **theirs(name)}
            rate = {n: program.flops / s / 1e9 for n, s in interleaved(calls, 0.5).items()}
            row = f"{name:<5}{rate['planish']:>8.0f}"
            for other in list(rate)[1:]:
                ratios.setdefault(other, []).append(rate["planish"] / rate[other])
                row += f"  {other} {rate[other]:>4.0f} ({ratios[other][-1]:.2f})"
            print(row, flush=True)
    for other, values in ratios.items():
        print(
            f"against oneDNN {other}: {geomean(values):.2f} times (geometric mean), worst {min(values):.2f}"
        )


if __name__ == "__main__":
    main()
