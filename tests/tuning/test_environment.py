"""The environment of tensor programs: measured by a worker, and no state twice."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

from planish.core import PlanishError
from planish.store import open_store
from planish.train.environment import NAME, make_environment

PROGRAMS = [f"C[m,n] += A[m,k] * B[k,n] | m={size},n=16,k=8" for size in (16, 24)]


def test_what_was_measured_is_never_measured_again(tmp_path: Path) -> None:
    rates: list[list[float]] = []
    for _ in range(2):
        environment = gymnasium.make(NAME, programs=PROGRAMS, store=tmp_path / "s.db")
        found: list[float] = []
        for number in range(2):
            _, info = environment.reset(options={"task": number})
            found.append(info["rate"])
            downs = (environment.step(np.int64(action))[4]["rate"] for action in (1, 1, 0))  # and up
            found.extend(downs)
        environment.close()
        rates.append(found)
    assert all(rate > 0 for rate in rates[0])
    assert rates[1] == rates[0], "it was measured again"
    with open_store(tmp_path / "s.db") as store:
        assert {run.status for run in store.runs()} == {"finished"}


def test_a_program_has_one_run_however_often_it_is_visited(tmp_path: Path) -> None:
    """Only one program is held in memory, so that each visit reads the store anew."""
    path = tmp_path / "s.db"
    for action in (1, 4):  # what the second environment measures is new
        environment = make_environment(PROGRAMS, store=path, remembered=1)
        for number in (0, 1, 0, 1):
            environment.reset(options={"task": number})
            environment.step(np.int64(action))
        environment.close()
    with open_store(path) as store:
        runs = store.runs()
        assert sorted(run.trials for run in runs) == [3, 3], "the start, and where both actions lead"
        assert {run.status for run in runs} == {"finished"}


def test_a_space_without_numbered_actions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match="has no numbered actions"):
        make_environment(PROGRAMS, space="template", store=tmp_path / "s.db")


def test_a_program_of_too_many_loops_is_refused(tmp_path: Path) -> None:
    axes = "abcdefghijk"
    deep = f"y[] += A[{','.join(axes)}] | {','.join(f'{axis}=2' for axis in axes)}"
    with pytest.raises(PlanishError, match="has 11 loops, and the space of a cursor has 10 at most"):
        make_environment([deep], store=tmp_path / "s.db")
    environment = make_environment([*PROGRAMS, deep], store=tmp_path / "s.db")
    with pytest.raises(PlanishError, match="has 11 loops"):
        environment.reset(options={"task": 2})
    environment.close()
