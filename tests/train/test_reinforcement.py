"""Training by RLlib, on a space whose rate is known: it needs no measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planish.core import Candidate, PlanishError
from planish.levels.loops.space.cursor import CursorSpace, SplitBy
from planish.levels.loops.workloads import matmul
from planish.models.named_policies import NetworkPolicy
from planish.models.networks import Shape
from planish.models.policy_files import load_policy
from planish.search.policies import greedy_rollout
from planish.train.environment import EpisodeTask, Observation, StepEnvironment
from planish.train.reinforcement import (
    ALGORITHMS,
    EvalRecord,
    TrainConfig,
    Tuned,
    plot_records,
    read_records,
    reinforce,
)

SPACE = CursorSpace(matmul(64, 64, 64))


def rate(candidate: Candidate) -> float:
    """More for each split by 8, up to three."""
    return 10.0 + 10 * min(3, candidate.steps.count(SplitBy(8)))


def environment() -> StepEnvironment:
    return StepEnvironment(lambda number: EpisodeTask(f"task {number}", SPACE, rate, 40.0), 2, steps=4)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Return RLlib's processes, which take long to start."""
    pytest.importorskip("torch")
    library = pytest.importorskip("ray")
    library.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield library
    library.shutdown()


def config(folder: Path, algorithm: str = "ppo", seconds: float = 0.0) -> TrainConfig:
    programs = ("one", "two")
    return TrainConfig(
        "loops", "mine", algorithm, environment, environment, folder, programs, seconds, every_s=0.0
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_training_goes_on_from_its_checkpoint(algorithm: str, ray: object, tmp_path: Path) -> None:
    del ray
    first = reinforce(config(tmp_path, algorithm))
    (record,) = read_records(tmp_path)
    assert record.steps > 0
    again = reinforce(config(tmp_path, algorithm))
    records = read_records(tmp_path)
    assert [one.steps for one in records] == sorted({one.steps for one in records})
    assert records[1].steps > record.steps
    best = max(one.held for one in records)
    assert again.metrics["share of the peak"] == best >= first.metrics["share of the peak"]
    assert load_policy(tmp_path / "best.safetensors").shape == again.shape
    (end,) = greedy_rollout(NetworkPolicy(again), SPACE)
    assert end.steps
    assert len(list(tmp_path.glob("checkpoint-*"))) == 1


class Noting(StepEnvironment):
    """Writes a line for each illegal action to a file, which runners in other processes share."""

    def __init__(self, path: Path) -> None:
        super().__init__(lambda number: EpisodeTask(f"task {number}", SPACE, rate, 40.0), 2, steps=4)
        self._path = path

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        found = super().step(action)
        with self._path.open("a") as file:
            file.write(f"{found[-1]['illegal']}\n")
        return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_illegal_action_is_tried(algorithm: str, ray: object, tmp_path: Path) -> None:
    """An agent draws at first: by chance, the cursor would be sent up from the outermost loop."""
    del ray
    path = tmp_path / "steps"
    mine = replace(config(tmp_path, algorithm), environment=partial(Noting, path))
    shape = reinforce(mine).shape
    assert load_policy(tmp_path / "best.safetensors").shape == shape
    assert set(path.read_text().split()) == {"False"}


@pytest.mark.filterwarnings("ignore")
def test_a_policy_learns_what_is_rewarded(ray: object, tmp_path: Path) -> None:
    del ray
    records = list[EvalRecord]()
    reinforce(config(tmp_path, seconds=30.0), records.append)
    assert max(record.held for record in records) >= 0.75 > rate(SPACE.start()) / 40.0


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"algorithm": "dqn"}, "began with algorithm ppo, and not dqn"),
        ({"programs": ("one", "three")}, "began with other programs"),
        ({"tuned": Tuned(rate=0.1)}, "began with rate None, and not 0.1"),
        ({"tuned": Tuned(width=16)}, "began with width 256, and not 16"),
    ],
)
def test_a_training_goes_on_with_what_it_began_with(
    other: dict[str, Any], message: str, tmp_path: Path
) -> None:
    begun = replace(config(tmp_path), build=unbuilt)
    with pytest.raises(NotImplementedError):
        reinforce(begun)
    with pytest.raises(PlanishError, match=message):
        reinforce(replace(begun, **other))
    with pytest.raises(NotImplementedError):
        reinforce(replace(begun, seconds=9.0, runners=2))


def unbuilt(*given: object) -> None:
    del given
    raise NotImplementedError


def test_what_is_swept_reaches_the_algorithm() -> None:
    tuned = Tuned(rate=0.25, discount=0.5, exploration=0.125)
    found = tuned.training("dqn")
    assert (found["lr"], found["gamma"], found["epsilon"][-1]) == (0.25, 0.5, [20_000, 0.125])
    assert tuned.training("ppo")["entropy_coeff"] == 0.125
    assert Tuned().training("ppo")["lr"] == ALGORITHMS["ppo"][1]["lr"]


@pytest.mark.filterwarnings("ignore")
def test_a_network_of_another_size_is_trained(ray: object, tmp_path: Path) -> None:
    del ray
    found = reinforce(replace(config(tmp_path), tuned=Tuned(width=16, depth=2, rate=1e-3)))
    assert isinstance(found.shape, Shape)
    assert (found.shape.width, found.shape.depth) == (16, 2)
    assert list(greedy_rollout(NetworkPolicy(found), SPACE))


@pytest.mark.filterwarnings("ignore")
def test_a_full_disk_leaves_the_last_checkpoint(ray: object, tmp_path: Path) -> None:
    from store.mounts import small_disk  # here: RLlib's processes read this file, and not that one

    del ray
    folder = tmp_path / "disk"
    mine = replace(config(folder), tuned=Tuned(width=64), seconds=60.0)

    def fill(record: EvalRecord) -> None:
        del record
        (folder / "more").write_bytes(bytes(1_500_000))

    with small_disk(folder, 2000):
        with pytest.raises(OSError, match="No space left"):
            reinforce(mine, fill)
        assert len(list(folder.glob("checkpoint-*"))) == 1
        assert not (folder / "part").exists()
        (folder / "more").unlink()
        assert reinforce(replace(mine, seconds=0.0)).programs == 2


def test_without_rllib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(PlanishError, match="needs RLlib"):
        reinforce(config(tmp_path))


def test_records_are_plotted_and_one_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    record = EvalRecord(1.0, 1000, 0.25, 0.5)
    text = '{"seconds": 1.0, "steps": 1000, "reward": 0.25, "held": 0.5}\n{"seconds": 2.0, "st'
    (tmp_path / "records.jsonl").write_text(text)
    assert read_records(tmp_path) == [record]
    plot_records([record, replace(record, steps=2000)], tmp_path / "reward.html")
    assert "steps of the environment" in (tmp_path / "reward.html").read_text()
