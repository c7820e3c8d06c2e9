"""Training by RLlib, on a space whose rate is known: it needs no measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planish.core import Candidate, PlanishError
from planish.learn.policy import NetworkPolicy, load_policy
from planish.learn.rl import Ground, StepEnvironment
from planish.learn.rl.plot import draw_looks
from planish.learn.rl.training import Course, Look, read_looks, reinforce
from planish.loops.space import CursorSpace
from planish.loops.space.cursor import SplitBy
from planish.loops.workloads import matmul
from planish.search.follow_policy import followed

SPACE = CursorSpace(matmul(64, 64, 64))


def rate(candidate: Candidate) -> float:
    """More for each split by 8, up to three."""
    return 10.0 + 10 * min(3, candidate.steps.count(SplitBy(8)))


def environment() -> StepEnvironment:
    return StepEnvironment(lambda number: Ground(f"ground {number}", SPACE, rate, 40.0), 2, steps=4)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("torch")
    library = pytest.importorskip("ray")
    monkeypatch.setattr("planish.learn.rl.training.EVERY", 0.0)
    yield library
    library.shutdown()


def course(folder: Path, algorithm: str = "ppo", seconds: float = 0.0) -> Course:
    return Course("loops", "mine", algorithm, environment, environment, folder, 2, seconds)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_training_goes_on_from_its_checkpoint(algorithm: str, ray: object, tmp_path: Path) -> None:
    del ray
    first = reinforce(course(tmp_path, algorithm))
    (look,) = read_looks(tmp_path)
    assert look.steps > 0
    again = reinforce(course(tmp_path, algorithm))
    looks = read_looks(tmp_path)
    assert [one.steps for one in looks] == sorted({one.steps for one in looks})
    assert looks[1].steps > look.steps
    best = max(one.held for one in looks)
    assert again.metrics["share of the peak"] == best >= first.metrics["share of the peak"]
    assert load_policy(tmp_path / "best.safetensors").shape == again.shape
    (end,) = followed(NetworkPolicy(again), SPACE)
    assert end.steps
    assert len(list(tmp_path.glob("checkpoint-*"))) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_policy_learns_what_is_rewarded(ray: object, tmp_path: Path) -> None:
    del ray
    looks = list[Look]()
    reinforce(course(tmp_path, seconds=30.0), looks.append)
    assert max(look.held for look in looks) >= 0.75 > rate(SPACE.start()) / 40.0


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_of_another_algorithm_is_told(ray: object, tmp_path: Path) -> None:
    del ray
    reinforce(course(tmp_path, "ppo"))
    with pytest.raises(PlanishError, match="cannot go on from"):
        reinforce(course(tmp_path, "dqn"))


def test_without_rllib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(PlanishError, match="needs RLlib"):
        reinforce(course(tmp_path))


def test_looks_are_drawn_and_one_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    look = Look(1.0, 1000, 0.25, 0.5)
    text = '{"seconds": 1.0, "steps": 1000, "reward": 0.25, "held": 0.5}\n{"seconds": 2.0, "st'
    (tmp_path / "looks.jsonl").write_text(text)
    assert read_looks(tmp_path) == [look]
    draw_looks([look, replace(look, steps=2000)], tmp_path / "reward.html")
    assert "steps of the environment" in (tmp_path / "reward.html").read_text()
