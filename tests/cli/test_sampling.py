"""`planish tune --searcher samples`, and what `planish show` tells of the policy."""

import json
from pathlib import Path

import pytest

from cli.conftest import Planish

PROGRAM = ("C[m,n] += A[m,k] * B[k,n]", "--size", "m=32,n=48,k=16", "--space", "steps")


def test_samples_are_measured_and_reported(planish: Planish, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store.db", "--format", "json")
    how = ("--searcher", "samples", "--set", "method=stochastic-beam", "--set", "samples=3")
    said = planish("tune", *PROGRAM, *how, "--finalists", "1", *store)
    assert said.code == 0, said.err
    run = json.loads(said.out)
    assert 1 <= run["trials"] <= 3, "two samples may be one schedule"
    shown = json.loads(planish("show", run["run"]["id"], *store).out)
    assert [each["trial"] for each in shown["policy"]] == [*range(run["trials"])]
    assert all(0 < each["probability"] < 1 and each["value"] for each in shown["policy"])
    assert "\npolicy\n------\n" in planish("show", run["run"]["id"], "--store", tmp_path / "store.db").out


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("method=nuclear", "no way of sampling is called 'nuclear'. Did you mean 'nucleus'?"),
        ("samples=0", "option 'samples' takes a whole number, at least 1, not '0'"),
        ("policy=nowhere", "cannot read a policy from nowhere"),
        ("policy=llvm", "the policy 'llvm' is for the actions of llvm/instructions"),
    ],
)
def test_bad_options_are_one_line(planish: Planish, tmp_path: Path, option: str, why: str) -> None:
    said = planish(
        "tune", *PROGRAM, "--searcher", "samples", "--set", option, "--store", tmp_path / "store.db"
    )
    assert said.code != 0
    assert said.err.startswith(f"planish: error: {why}")
    assert said.err.count("\n") == 1
