"""What a cost model knows of a program's states: beams of good ones and of chance, and what follows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xgboost
from loop_orders import ACTIONS, Loops, State, after, axes_of, begin, walked
from nests import described, nests_of, observed
from numpy.random import Generator
from numpy.typing import NDArray
from programs import cursor_space

from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import ACTIONS_MAX
from planish.train.samples import FARTHEST, StateDataset

PRICE = 0.005
"""Of an action, as a share of the best speed: of ways that lead as far the shortest is the best."""
BEST, CHANCE = 30, 30
"""States of a layer that are gone on from: the best by the model, and others."""
MEASURED = 4
"""The ways to so many of the best measured nests are gone along, too."""
REPEATED = (12, 5, 3, 2)
"""States after so many actions count so often: they are few, and there the kind of tile is decided."""
TRUSTED = 1 / 3
"""A nest that was measured as slower than this share of the best counts as the model has it."""

Floats = NDArray[np.float32]


@dataclass
class Walked:
    """States by the number of actions to them, and what is known of each.

    Args:
        program: whose states they are.
        ways: nest to the shortest way that was found to it, a digit an action.
        speeds: nest to its speed; as the model has it, or what was measured.
        follows: state that was gone on from to what each action leads to; None where it is illegal.
        layers: these states, by the number of actions.
    """

    program: Program
    ways: dict[Loops, str] = field(default_factory=dict[Loops, str])
    speeds: dict[Loops, float] = field(default_factory=dict[Loops, float])
    follows: dict[State, list[State | None]] = field(default_factory=dict[State, list[State | None]])
    layers: list[list[State]] = field(default_factory=list[list[State]])


def walk(
    program: Program, model: xgboost.Booster, random: Generator, measured: Mapping[str, float] | None = None
) -> Walked:
    """Go on from the best states of each layer, and from some of chance.

    Args:
        program: whose states they are.
        model: of speeds, as shares of the program's best.
        random: chooses.
        measured: way to speed.
    """
    known = measured or {}
    extents = [program.size[axis] for axis in axes_of(program)]
    most = max(known.values(), default=1.0)
    rates = {walked(extents, way)[0]: rate / most for way, rate in known.items()}
    kept = _along(extents, sorted(known, key=lambda way: -known[way])[:MEASURED])
    found, layer = Walked(program), {begin(len(extents)): ""}
    seen = set(layer)
    for _ in range(ACTIONS_MAX):
        found.layers.append(list(layer))
        onward: dict[State, str] = {}
        for state, way in layer.items():
            found.follows[state] = [after(state, action, extents) for action in range(ACTIONS)]
            for action, then in enumerate(found.follows[state]):
                if then is not None and then not in seen:
                    onward.setdefault(then, f"{way}{action}")
        seen |= onward.keys()
        _score(found, onward, model, rates)
        layer = _chosen(found, onward, kept, random)
    return found


def _along(extents: list[int], ways: list[str]) -> set[State]:
    return {walked(extents, way[:length]) for way in ways for length in range(len(way) + 1)}


def _score(
    found: Walked, onward: Mapping[State, str], model: xgboost.Booster, rates: Mapping[Loops, float]
) -> None:
    """Ask the model about nests that are new, unless they were measured as fast."""
    for (loops, _), way in onward.items():
        found.ways.setdefault(loops, way)
    if new := [loops for loops in dict.fromkeys(loops for loops, _ in onward) if loops not in found.speeds]:
        guessed = model.inplace_predict(described(nests_of(found.program, new)))
        for loops, guess in zip(new, guessed.tolist(), strict=True):
            rate = rates.get(loops, 0.0)
            found.speeds[loops] = rate if rate > TRUSTED else guess


def _chosen(
    found: Walked, onward: Mapping[State, str], kept: set[State], random: Generator
) -> dict[State, str]:
    states = list(onward)
    order = np.argsort([-found.speeds[loops] for loops, _ in states], kind="stable")[:BEST]
    places = [*order.tolist(), *random.permutation(len(states))[:CHANCE].tolist()]
    return {states[place]: onward[states[place]] for place in places} | {
        s: onward[s] for s in states if s in kept
    }


def examples_of(
    programs: Mapping[int, Program],
    model: xgboost.Booster,
    known: Mapping[int, Mapping[str, float]],
    random: Generator,
) -> StateDataset:
    """Tell, for states of each program, what its actions lead to at best."""
    parts = [_rows_of(walk(program, model, random, known.get(n))) for n, program in programs.items()]
    seen, left, short = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    groups = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    texts = [program.text for program in programs.values()]
    return StateDataset(seen, left, short, groups, texts, cursor_space(next(iter(programs.values()))))


def _rows_of(found: Walked) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Reckon from the last layer to the first; what was not gone on from is worth what it is itself."""
    top = max(found.speeds.values())
    start = found.layers[0][0][0]
    speeds = {loops: max(0.0, speed) / top for loops, speed in found.speeds.items()}
    speeds.setdefault(start, 0.0)
    best: dict[State, tuple[float, int]] = {}  # what is in reach, and by how many actions
    rows = list[list[float]]()
    for done in reversed(range(len(found.layers))):
        left = ACTIONS_MAX - done - 1
        for state in found.layers[done]:
            options = [_worth(speeds, best, then, left) for then in found.follows[state]]
            own = speeds[state[0]]
            worth, length = max([(w - PRICE, length + 1) for w, length in options], key=lambda pair: pair[0])
            best[state] = (worth, length) if worth > own else (own, 0)
            rows.append([*(1 + PRICE - w for w, _ in options), 1 - own])
    states = [state for layer in reversed(found.layers) for state in layer]
    counts = [len(layer) for layer in reversed(found.layers)]
    left = np.repeat(1 + np.arange(len(counts)) + ACTIONS_MAX - len(counts), counts) / ACTIONS_MAX
    short = np.array(rows, np.float32)
    short[np.isinf(short)] = np.nan
    least = np.nanmin(short, axis=1, keepdims=True)
    short[:, :-1] = np.minimum(short[:, :-1], least + FARTHEST)
    seen = observed(
        nests_of(found.program, [loops for loops, _ in states]), np.array([at for _, at in states])
    )
    done = ACTIONS_MAX - np.round(left * ACTIONS_MAX).astype(int)
    often = np.array([*REPEATED, *[1] * (ACTIONS_MAX - len(REPEATED))])[done]
    return (
        np.repeat(seen, often, axis=0),
        np.repeat(left.astype(np.float32), often),
        np.repeat(short, often, axis=0),
    )


def _worth(
    speeds: Mapping[Loops, float], best: Mapping[State, tuple[float, int]], then: State | None, left: int
) -> tuple[float, int]:
    """Give the speed in reach after an action, and by how many more; -inf for an illegal one."""
    if then is None:
        return -np.inf, 0
    known = best.get(then)
    return known if known is not None and known[1] <= left else (speeds[then[0]], 0)
