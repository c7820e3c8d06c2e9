"""Measurements that a cost model learns from: nests of chance first, then those that it holds for good."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import xgboost
from cases import Case
from dataset import Walked, walk
from loop_orders import ACTIONS, Loops, after, axes_of, begin, walked
from numpy.random import Generator
from speeds import Known

from planish.core import Candidate, rng
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import ACTIONS_MAX

BY_CHANCE = 30
"""Nests of each program in the first round."""
BEST, PROBABLE, OTHERS = 12, 8, 2
"""In each later round: the best by the model, some that may be as good, and others that are not hopeless."""
WARMTH = 0.06
"""A nest that the model holds for worse by so much, as a share of the best, is chosen e times less often."""
MOST_SECONDS = 3.0
"""For one program; slow nests take long, and teach little."""


def measure_round(
    programs: Sequence[Program], known: Known, model: xgboost.Booster | None, path: Path, end: float
) -> int:
    """Measure some nests of each program that this round has not seen yet, a line of JSON for each.

    Args:
        programs: to learn from.
        known: what was measured in rounds before.
        model: chooses; None for chance.
        path: of this round; what is there is not measured again.
        end: by `time.monotonic`.

    Returns:
        How many programs are left.
    """
    lines = path.read_text().splitlines() if path.exists() else []
    done = {json.loads(line)["p"] for line in lines}
    left = [number for number in range(len(programs)) if number not in done]
    with path.open("a") as file:
        while left and time.monotonic() < end:
            number = left.pop(0)
            for way, rate in _measured(
                programs[number], known.get(number, {}), model, rng(number, len(known))
            ):
                file.write(json.dumps({"p": number, "a": way, "g": rate}) + "\n")
            file.flush()
    return len(left)


def _measured(
    program: Program, known: Mapping[str, float], model: xgboost.Booster | None, random: Generator
) -> Iterator[tuple[str, float]]:
    extents = [program.size[axis] for axis in axes_of(program)]
    if model is None:
        ways = dict.fromkeys(_way_of_chance(extents, random) for _ in range(BY_CHANCE))
    else:
        most = max(known.values(), default=0.0)
        there = {walked(extents, way)[0] for way, rate in known.items() if rate > most / 3}
        ways = _chosen(walk(program, model, random), there, random)
    case, end = Case(program), time.monotonic() + MOST_SECONDS
    for way in ways:
        if time.monotonic() < end:
            yield way, case.rate(Candidate(tuple(case.space.actions[int(digit)] for digit in way)))


def _way_of_chance(extents: Sequence[int], random: Generator) -> str:
    state, way = begin(len(extents)), ""
    for _ in range(int(random.integers(1, ACTIONS_MAX + 1))):
        legal = [a for a in range(ACTIONS) if after(state, a, extents) is not None]
        way += str(legal[int(random.integers(len(legal)))])
        state = walked(extents, way)
    return way


def _chosen(found: Walked, there: set[Loops], random: Generator) -> list[str]:
    ways, speeds = found.ways, found.speeds
    new = [loops for loops in speeds if loops not in there]
    guessed = np.array([speeds[loops] for loops in new])
    chances = np.exp((guessed - guessed.max()) / WARMTH)
    hopeful = guessed > guessed.max() / 5
    places = [
        *np.argsort(-guessed)[:BEST],
        *random.choice(
            len(new), min(PROBABLE, int((chances > 1e-9).sum())), replace=False, p=chances / chances.sum()
        ),
        *random.choice(np.flatnonzero(hopeful), OTHERS),
    ]
    return list(dict.fromkeys(ways[new[int(place)]] for place in places))
