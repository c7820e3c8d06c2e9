"""Configurations of whole networks: each level changes what its name says, and nothing besides."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from autotvm.end_to_end import LEVELS, Row, print_table, rewritten
from network_models import resnet18
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import this_machine
from planish.network.fusion import kernels_of
from planish.network.operators.winograd import INPUT_TRANSFORM
from planish.network.reader import read_network
from planish.network.tuning import DefaultTimes


def test_levels_have_layouts_fusion_and_algorithms_one_after_the_other(tmp_path: Path) -> None:
    source, _ = read_network(read_model(resnet18(tmp_path / "m.onnx", 64, 16), {}))
    facts = list[tuple[bool, bool, int]]()
    for name, used in LEVELS.items():
        if name != "+ schedules":
            network = rewritten(source, used, DefaultTimes(this_machine(1)))
            transforms = any(node.operator == INPUT_TRANSFORM for node in network.nodes)
            count = len(kernels_of(network, fuse=used.fuses))
            facts.append((bool(network.channels_last), transforms, count))
    row_major, last, fused, algorithms = facts
    assert (row_major[:2], last[:2], fused[:2]) == ((False, False), (True, False), (True, False))
    assert algorithms[:2] == (True, True)
    assert fused[2] < last[2]


def test_table_has_a_line_for_each_side(capsys: pytest.CaptureFixture[str]) -> None:
    tuned = asdict(Row("tuned", 1.5, 2.0, 1.9, 2.1))
    print_table({"lstm": [tuned], "dqn": [tuned, asdict(Row("OpenVINO", 3.0, 1.0, 0.9, 1.1))]})
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "| tuned | 1.50 ms, 2.00 (1.90 to 2.10) | 1.50 ms, 2.00 (1.90 to 2.10) |",
        "| OpenVINO |  | 3.00 ms, 1.00 (0.90 to 1.10) |",
    ]
