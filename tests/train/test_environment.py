"""A space as an environment of Gymnasium: what its steps do, and Gymnasium's own checks."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from planish.core import Candidate
from planish.levels.loops.space.cursor import CursorSpace, CursorStep, Down, SplitBy, Up
from planish.levels.loops.workloads import matmul
from planish.train.environment import EpisodeTask, StepEnvironment

SPACE = CursorSpace(matmul(30, 20, 12))


def rate(candidate: Candidate) -> float:
    """More for each split."""
    return 10.0 + 4 * sum(isinstance(step, SplitBy) for step in candidate.steps)


def made(steps: int = 10) -> StepEnvironment:
    return StepEnvironment(lambda number: EpisodeTask(f"task {number}", SPACE, rate, 100.0), 3, steps)


def number(action: CursorStep) -> np.int64:
    return np.int64(list(SPACE.actions).index(action))


def test_gymnasium_finds_nothing_wrong() -> None:
    check_env(made(), skip_render_check=True)


def test_a_reward_is_what_the_rate_gains() -> None:
    environment = made()
    environment.reset(seed=0)
    seen, reward, *_, info = environment.step(number(SplitBy(4)))
    assert reward == pytest.approx(0.04)
    assert info["rate"] == 14.0
    assert np.array_equal(seen, SPACE.observe(Candidate((SplitBy(4),))))
    assert environment.step(number(Down()))[1] == 0


def test_an_illegal_action_changes_nothing() -> None:
    environment = made()
    before, info = environment.reset(seed=0)
    assert info["action_mask"][number(Up())] == 0
    seen, reward, *_, info = environment.step(number(Up()))
    assert (reward, info["illegal"]) == (0.0, True)
    assert np.array_equal(seen, before)
    assert environment.candidate == SPACE.start()


def test_an_episode_is_over_after_its_steps() -> None:
    environment = made(steps=2)
    environment.reset(seed=0)
    assert [environment.step(number(Down()))[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_programs_are_drawn_by_the_seed_or_named() -> None:
    environment = made()
    drawn = [environment.reset(seed=seed)[1]["task"] for seed in range(20)]
    assert set(drawn) == {"task 0", "task 1", "task 2"}
    assert drawn == [environment.reset(seed=seed)[1]["task"] for seed in range(20)]
    assert environment.reset(options={"task": 2})[1]["task"] == "task 2"


def test_it_is_registered() -> None:
    name = "planish.train.environment:planish/LoopTune-v0"
    with pytest.raises(Exception, match="needs programs"):
        gymnasium.make(name, programs=[])
