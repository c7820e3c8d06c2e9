"""What a policy proposes, measured: its own mistakes teach it most, and are in no other example."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
from cases import Case
from dataset import PRICE, Floats
from loop_orders import ACTIONS, after, axes_of, walked
from nests import nests_of, observed
from numpy.typing import NDArray
from programs import cursor_space

from planish.core import Step
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import ACTIONS_MAX
from planish.models.named_policies import NetworkPolicy
from planish.models.networks import Shape, scaled, scores
from planish.models.policy_files import SavedPolicy
from planish.search.decoding import priority_samples
from planish.search.policies import greedy_rollout, new_programs
from planish.train.samples import FARTHEST, SHARPNESS, StateDataset

SAMPLES = 32
"""Of each program, beside the greedy end."""
MOST_SECONDS = 3.0
"""For one program; the ends that the policy holds for good come first, so that slow ones are left out."""
AGAIN = 0.8
"""What has this share of the best speed, and the greedy end, is timed once more."""
BEHIND = 0.01
"""An action that nobody measured is held for worse than the best one that was by so much at least."""
EARLY = 4
"""States after fewer actions count twice: they are few, and there the kind of tile is decided."""


def measure_proposals(programs: Sequence[Program], policy: SavedPolicy, path: Path, end: float) -> None:
    """Measure a policy's ways, a line of JSON for each program; what is in the file is not measured again.

    Args:
        programs: to learn from.
        policy: is asked.
        path: of the measurements.
        end: by `time.monotonic`.
    """
    lines = path.read_text().splitlines() if path.exists() else []
    done = {json.loads(line)["p"] for line in lines}
    with path.open("a") as file:
        for number, program in enumerate(programs):
            if number not in done and time.monotonic() < end:
                file.write(json.dumps({"p": number, "ways": _measured(program, policy)}) + "\n")
                file.flush()


def _measured(program: Program, policy: SavedPolicy) -> dict[str, float]:
    """Give GFLOPS by the digits of the actions."""
    case, walker, end = Case(program), NetworkPolicy(policy), time.monotonic() + MOST_SECONDS
    (greedy,) = greedy_rollout(walker, case.space)
    sampled = priority_samples(walker, case.space, samples=SAMPLES, by="whole")
    several = list(islice(new_programs(case.space, chain([greedy], sampled)), SAMPLES))
    states = [walker.begin(case.space) for _ in several]
    for place, candidate in enumerate(several):
        for step in candidate.steps:
            states[place] = walker.extend(states[place], step)
    worth = walker.value(states)
    rates = dict[int, float]()
    for place in sorted(range(len(several)), key=lambda place: (place > 0, -worth[place])):
        if time.monotonic() < end:
            rates[place] = case.rate(several[place])
    most = max(rates.values())
    again = {
        p: max(rate, case.rate_anew(several[p])) for p, rate in rates.items() if rate > AGAIN * most or not p
    }
    digits: dict[Step, str] = {step: str(number) for number, step in enumerate(case.space.actions)}
    return {"".join(digits[step] for step in several[p].steps): rate for p, rate in (rates | again).items()}


def dataset_of_proposals(programs: Sequence[Program], policy: SavedPolicy, path: Path) -> StateDataset:
    """Make a dataset of the states on the measured ways; of actions off them the policy's own opinion counts.

    Args:
        programs: as they were measured.
        policy: whose ways they are.
        path: of the measurements.
    """
    parts, texts = list[tuple[NDArray[np.int64], Floats, Floats]](), list[str]()
    for row in map(json.loads, path.read_text().splitlines()):
        if max(row["ways"].values()) > 0:
            parts.append(_rows_of(programs[row["p"]], policy, row["ways"]))
            texts.append(programs[row["p"]].text)
    if not parts:
        raise SystemExit(f"{path} has no measurement: give more minutes")
    seen, left, short = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    groups = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    return StateDataset(seen, left, short, groups, texts, cursor_space(programs[0]))


def _rows_of(
    program: Program, policy: SavedPolicy, ways: Mapping[str, float]
) -> tuple[NDArray[np.int64], Floats, Floats]:
    extents, known = [program.size[axis] for axis in axes_of(program)], _known(ways)
    states = [walked(extents, way) for way in known]
    seen = observed(nests_of(program, [loops for loops, _ in states]), np.array([at for _, at in states]))
    left = np.array([1 - len(way) / ACTIONS_MAX for way in known], np.float32)
    assert isinstance(policy.shape, Shape)
    short = -SHARPNESS * scores(np, policy.shape, policy.parameters, scaled(seen, left))
    for row, (way, options), state in zip(short, known.items(), states, strict=True):
        row[:] = np.maximum(row, 1 + BEHIND - max(options.values()))
        for action in range(ACTIONS):
            if len(way) == ACTIONS_MAX or after(state, action, extents) is None:
                row[action] = row[:ACTIONS].min() + FARTHEST
        for action, worth in options.items():
            row[action] = 1 - worth
    often = np.array([2 if len(way) < EARLY else 1 for way in known])
    return (
        np.repeat(seen, often, axis=0),
        np.repeat(left, often),
        np.repeat(short.astype(np.float32), often, axis=0),
    )


def _known(ways: Mapping[str, float]) -> dict[str, dict[int, float]]:
    """Give for each beginning of a way what its actions were seen to lead to; `ACTIONS` is the end."""
    found, most = dict[str, dict[int, float]](), max(ways.values())
    for way, rate in ways.items():
        for length in range(len(way) + 1):
            action = int(way[length]) if length < len(way) else ACTIONS
            options = found.setdefault(way[:length], {})
            worth = rate / most - PRICE * (len(way) - length)
            options[action] = max(worth, options.get(action, worth))
    return found
