"""The papers' workloads."""

import pytest

from planish.core.errors import ProgramError
from planish.levels.loops.workloads import RESNET18, THESIS, matmul, thesis_matmuls, thesis_split, workload


def test_resnet_has_the_shapes_and_operations_of_the_network() -> None:
    first, last = workload("C1"), workload("C12")
    assert first.type["O"].shape == (64, 112, 112)
    assert first.type["I"].shape == (3, 224, 224)
    assert first.flops == 2 * 64 * 112 * 112 * 3 * 7 * 7
    assert last.type["O"].shape == (512, 7, 7)
    outputs = [workload(name).type["O"].shape for name in RESNET18]
    assert [s[1] for s in outputs] == [112, 56, 56, 28, 28, 28, 14, 14, 14, 7, 7, 7]


def test_every_workload_can_be_made() -> None:
    for name in (*RESNET18, *THESIS):
        assert workload(name, "float64").types[0][1].dtype == "float64"
    assert workload("MM-64") == matmul(64, 64, 64)


def test_an_unknown_one_is_named() -> None:
    with pytest.raises(ProgramError, match=r"unknown workload 'CONV1'\. Did you mean 'CONV-1'\?"):
        workload("CONV1")


def test_the_split_of_the_thesis() -> None:
    train, test = thesis_split()
    assert (len(train), len(test)) == (1757, 440)
    assert sorted(train + test) == sorted(thesis_matmuls())
    assert thesis_split() == (train, test)
    assert {64, 256} == {min(map(min, test)), max(map(max, test))}
    assert test[:2] != thesis_matmuls()[:2]
