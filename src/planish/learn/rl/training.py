"""Training a policy by reinforcement: RLlib's algorithms, checked on programs that they do not train on."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from planish.core import CanObserve, PlanishError, StoppedError
from planish.learn.policy.network import Shape
from planish.learn.policy.network_policy import NetworkPolicy
from planish.learn.policy.policy_folder import vector_bytes_of
from planish.learn.policy.saved import SavedPolicy, load_policy, write_policy
from planish.learn.rl.algorithms import USUAL, Tuned, built, parameters
from planish.learn.rl.course_file import require_same
from planish.learn.rl.environment import Ground, StepEnvironment
from planish.learn.rl.scaled import ScaledObservation

PATIENCE = 30
"""It ends when so many looks at the held-back programs found nothing better."""
EVERY = 20.0
"""Seconds from one look, and checkpoint, to the next, at least."""


_CHECKPOINT = "checkpoint-"


@dataclass(frozen=True)
class Look:
    """How far a training is.

    Args:
        seconds: of training, those before it was interrupted included.
        steps: of the environment.
        reward: of the last episodes, in the mean: what was gained, as a share of the peak.
        held: how fast the policy's ends are on held-back programs, as a share of the peak, in the mean.
    """

    seconds: float
    steps: int
    reward: float
    held: float


@dataclass(frozen=True)
class Course:
    """What is trained, and on what.

    Args:
        level: of the programs.
        name: of the policy.
        algorithm: one of `planish.learn.rl.algorithms.ALGORITHMS`.
        environment: makes one of the programs to learn from.
        held: makes one of the programs that are held back.
        folder: keeps checkpoints, the best policy, and a line of JSON for each look.
        programs: texts of those to learn from.
        seconds: of training in all.
        runners: processes that collect; 0: this one does.
        seed: of the first weights, and of what is explored.
        tuned: the network, and how it learns.
    """

    level: str
    name: str
    algorithm: str
    environment: Callable[[], StepEnvironment]
    held: Callable[[], StepEnvironment]
    folder: Path
    programs: Sequence[str]
    seconds: float
    runners: int = 0
    seed: int = 0
    tuned: Tuned = USUAL


def reinforce(course: Course, told: Callable[[Look], None] = lambda _: None) -> SavedPolicy:
    """Train a policy, from the last checkpoint on where there is one; give the best on held-back programs.

    Ctrl-C ends it as time does.

    Args:
        course: what is trained, and on what.
        told: is told of each look.

    Raises:
        StoppedError: it was stopped before its first look.
        PlanishError: RLlib is not installed, or the folder has another training.
    """
    looks = read_looks(course.folder)
    begun = time.monotonic() - (looks[-1].seconds if looks else 0.0)
    with closing(course.held()) as environment:
        require_same(course.folder, _told(course, environment.ground.space))
        algorithm = built(
            course.algorithm,
            lambda: ScaledObservation(course.environment()),
            course.runners,
            course.seed,
            course.tuned,
        )
        try:
            _restore(algorithm, course)
            with suppress(KeyboardInterrupt):
                for reward, steps in _rounds(algorithm):
                    policy = _exported(algorithm, course, environment)
                    held = float(np.mean([_share(policy, ground) for ground in _grounds(environment)]))
                    looks.append(Look(time.monotonic() - begun, steps, reward, held))
                    policy = replace(policy, metrics={"steps": float(steps), "share of the peak": held})
                    _keep(algorithm, course, policy, looks)
                    told(looks[-1])
                    if looks[-1].seconds > course.seconds or _is_stuck(looks):
                        break
        finally:
            algorithm.stop()
    best = course.folder / "best.safetensors"
    if not best.exists():
        raise StoppedError(
            "the training was stopped before there was anything to keep", "Nothing was written."
        )
    return load_policy(best)


def read_looks(folder: Path) -> list[Look]:
    """Read what a training has told so far; a line that was cut off is left out."""
    path, found = folder / "looks.jsonl", list[Look]()
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError):
            found.append(Look(**json.loads(line)))
    return found


def _rounds(algorithm: Any) -> Iterator[tuple[float, int]]:
    """Train for some seconds at a time; give the mean reward, and the steps so far."""
    while True:
        end = time.monotonic() + EVERY
        result: dict[str, Any] = {}
        while not result or time.monotonic() < end:
            result = algorithm.train()
        runners = result["env_runners"]
        steps = runners.get("num_env_steps_sampled_lifetime") or result["num_env_steps_sampled_lifetime"]
        yield float(runners.get("episode_return_mean", np.nan)), int(steps)


def _grounds(environment: StepEnvironment) -> Iterator[Ground]:
    for number in range(environment.grounds):
        environment.reset(options={"ground": number})
        yield environment.ground


def _share(policy: SavedPolicy, ground: Ground) -> float:
    """Follow a policy without its end, and give the rate where it leads as a share of the peak."""
    walker = NetworkPolicy(policy)
    state = walker.begin(ground.space)
    # Without its end, as it was trained: what is judged is where all its steps lead.
    while len(steps := dict(walker.log_probabilities([state])[0])) > 1:
        state = walker.extend(state, max((s for s in steps if s is not None), key=lambda s: steps[s]))
    return ground.rate(state.candidate) / ground.peak


def _told(course: Course, space: CanObserve) -> dict[str, Any]:
    """Tell what must not change where a training goes on."""
    programs = hashlib.sha256("\n".join(course.programs).encode()).hexdigest()
    return {
        "level": course.level,
        "algorithm": course.algorithm,
        "observations": f"{space.observed.name} {space.observed.version}",
        "actions": list(map(str, space.actions)),
        "programs": f"{len(course.programs)} {programs[:16]}",
        **asdict(course.tuned),
    }


def _exported(algorithm: Any, course: Course, environment: StepEnvironment) -> SavedPolicy:
    space = environment.ground.space
    rows, columns = space.observe(space.start()).shape
    tuned = course.tuned
    shape = Shape("mlp", rows, columns, len(space.actions) + 1, tuned.width, tuned.depth)
    return SavedPolicy(
        course.name,
        course.level,
        space.observed,
        tuple(map(str, space.actions)),
        environment.steps,
        shape,
        parameters(algorithm, tuned.depth),
        {},
        len(course.programs),
        vector_bytes=vector_bytes_of(space),
    )


def _is_stuck(looks: Sequence[Look]) -> bool:
    """Whether nothing better was found for long."""
    return len(looks) > PATIENCE and max(look.held for look in looks[-PATIENCE:]) < max(
        look.held for look in looks
    )


def _keep(algorithm: Any, course: Course, policy: SavedPolicy, looks: Sequence[Look]) -> None:
    """Write the policy if it is the best so far, a line, and a checkpoint; a kill leaves the last one."""
    # By held-back programs: the reward is of what it trains on, and rises when it only remembers.
    if looks[-1].held >= max(look.held for look in looks):
        write_policy(policy, course.folder / "best.safetensors")
    with (course.folder / "looks.jsonl").open("a") as file:
        file.write(json.dumps(asdict(looks[-1])) + "\n")
    before = _checkpoints(course)
    part = course.folder / "part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        algorithm.save_to_path(str(part.absolute()))
    except BaseException:  # the disk is full, or it is stopped: half a checkpoint would only take room
        shutil.rmtree(part, ignore_errors=True)
        raise
    # On a busy machine a look may come before any further step.
    part.rename(course.folder / f"{_CHECKPOINT}{looks[-1].steps:012}-{len(looks):06}")
    # After the new one is in place, so that a kill in between leaves one at least.
    for old in before:
        shutil.rmtree(old)


def _restore(algorithm: Any, course: Course) -> None:
    for path in _checkpoints(course)[-1:]:
        try:
            algorithm.restore_from_path(str(path.absolute()))
        except Exception as error:
            what = f"cannot go on from {path}: {str(error).splitlines()[0]}"
            raise PlanishError(
                what, "Another version of planish or RLlib wrote it: remove the folder."
            ) from error


def _checkpoints(course: Course) -> list[Path]:
    return sorted(course.folder.glob(f"{_CHECKPOINT}*"))
