"""Schedules of GPUs in the columns of those of processors."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from planish.core import Candidate, Target, rng
from planish.levels.loops.features import SCHEMA
from planish.levels.loops.workloads import matmul

FOLDER = Path(__file__).parents[2] / "experiments" / "autotvm"


def test_a_schedule_of_a_gpu_has_the_columns_of_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    recorded, represented = (import_module(name) for name in ("recorded", "representations"))
    product, backend = matmul(48, 64, 40), recorded.OPENCL
    device = Target("", recorded.DEVICES[backend].features | {"avx2"}, 1, {"backend": backend})
    gpu = represented.GpuRepresented(replace(product, backend=backend), device).by("schedules")
    processor = represented.Represented(product, Target("", frozenset({"avx2"}), 1, {"backend": "portable"}))
    one, other = (space.features([Candidate()])[0] for space in (gpu, processor))
    assert gpu.schema == processor.schema == SCHEMA
    # Sums lie in a tensor of their own, which another nest takes to the result.
    assert {SCHEMA.names[i] for i in np.flatnonzero(one != other)} == {"other nests"}
    drawn = [gpu.sample(rng(0, number)) for number in range(8)]
    assert [gpu.candidate(gpu.choices(each)) for each in drawn] == drawn
    assert len({row.tobytes() for row in gpu.by("configuration").features(drawn)}) == len({*drawn})
