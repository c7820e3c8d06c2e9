"""Batches of GPU kernels for AutoTVM's workloads, compiled here and measured where the GPU is.

`python benchmarks/gpu_batches.py DIR --target cuda:sm_90` writes a folder for each of the convolutions C1 to
C12 of ResNet-18 and for the product of 1024 (figure 10 of the paper); no GPU is needed. On the machine with
the GPU, `planish measure DIR/*` verifies and times them.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from planish.core import Task
from planish.levels.loops.gpu.batch import write_batch
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import RESNET18, convolution, matmul


def main() -> int:
    """Write the batches; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="cuda:sm_90")
    parser.add_argument("--trials", type=int, default=200, help="candidates of each workload")
    parser.add_argument("--only", action="append", help="workloads: C1 to C12, matmul-1024")
    options = parser.parse_args()
    programs = {name: convolution(*numbers) for name, numbers in RESNET18.items()}
    programs["matmul-1024"] = matmul(1024, 1024, 1024)
    level = LoopsLevel()
    for name, program in programs.items():
        if options.only and name not in options.only:
            continue
        program = replace(program, backend=options.target)
        target = level.target(program, 1)
        start = time.monotonic()
        task = Task(program, target, (level.objectives["time_s"],), level.version)
        found = write_batch(task, options.trials, 0, options.folder / name)
        seconds = time.monotonic() - start
        print(
            f"{name}: {found.kept} kept, {found.spilled} spill, {found.refused} refused, {seconds:.0f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
