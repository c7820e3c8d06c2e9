"""Best known continuations of states, and the quality of a policy's choices by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, CanObserve, Objective, PlanishError, ScheduleError, Trial, rng
from planish.models.networks import HEADS, ReaderShape, Shape, predict_lists, scaled, scores
from planish.models.policy_files import SavedPolicy
from planish.models.provenance import HeldOut, Value, stated
from planish.models.writer import WriterShape, encode_observed, token_scores
from planish.train.samples import FARTHEST, STEPS, Floats, ListDataset, StateDataset
from planish.tuning.transfer import KnownTask

DISCOUNT = 0.95
"""Of what is gained a step later, as the thesis' winner has it (3.8.1)."""
MOMENTS = 3
"""Numbers of steps left with which a state is learnt from: few steps left are another situation."""
FEWEST = 50
"""States of a program, below which there is little to see of its continuations."""
UNKNOWN = -2.0
"""The value of an action whose outcome was not measured: below all that are known."""


def read_state_dataset(tasks: Sequence[KnownTask], level: str, space_name: str = "") -> StateDataset:
    """Read from a store what is known of a level's programs in a space of numbered actions.

    Args:
        tasks: of the level, as `known_tasks` returns them.
        level: its name.
        space_name: of a space of numbered actions; empty for the level's first one.

    Raises:
        PlanishError: it knows nothing of that kind.
    """
    parts = list[_Rows]()
    programs, space, conditions = list[str](), None, list[Mapping[str, Value]]()
    refused: PlanishError | None = None
    for task in tasks:
        mine = task.space(CanObserve, space_name)
        if mine is None:
            continue
        try:
            mine.start()
        except PlanishError as error:
            refused = error
            continue
        rows = _rows(mine, task.trials(), task.objective)
        if rows is None:
            continue
        parts.append(rows)
        programs.append(task.program)
        conditions.append(mine.conditions)
        space = mine
    if space is None:
        # Searching there, as the hint has it, would be refused as well.
        raise refused or PlanishError(
            f"the store knows {FEWEST} states of no program of the level '{level}' in a space of "
            "numbered actions",
            "Search there first: planish tune ... --space steps --searcher beam-bfs --trials 200.",
        )
    observed, left, short = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    groups = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    return StateDataset(observed, left, short, groups, programs, space, stated(conditions))


def shortfalls(speeds: NDArray[np.float64], ahead: NDArray[np.float64]) -> Floats:
    """Return what `StateDataset.short` has.

    Args:
        speeds: (states,), as shares of the program's best.
        ahead: (states, actions), what each action gains in the end, discounted; `UNKNOWN` where unmeasured.
    """
    # Never below the end, which gains 0: it is among what the best action is compared with.
    least = np.maximum(ahead.max(axis=1, keepdims=True), 0.0) - FARTHEST
    gains = np.where(ahead == UNKNOWN, np.nan, np.maximum(ahead, least))
    gains = np.pad(gains, ((0, 0), (0, 1)))  # nothing is gained by the end
    return (1 - speeds[:, None] - gains).astype(np.float32)


_Rows = tuple[NDArray[np.int64], Floats, Floats]


def _rows(space: CanObserve, trials: Sequence[Trial], objective: Objective) -> _Rows | None:
    """Return the rows of one program's measured states, as `StateDataset` has them; None for too few."""
    nodes: dict[str, tuple[Candidate, float]] = {}
    costs = ((trial.candidate, trial.cost(objective)) for trial in trials)
    # The shortest path to a state is met first, and leaves the most steps for what follows.
    for candidate, cost in sorted(costs, key=lambda pair: len(pair[0].steps)):
        if cost is not None:
            with suppress(ScheduleError):  # a candidate of another space
                nodes.setdefault(space.state_key(candidate), (candidate, cost))
    if len(nodes) < FEWEST:
        return None
    candidates = [candidate for candidate, _ in nodes.values()]
    costs_of = np.array([cost for _, cost in nodes.values()])
    speeds = costs_of.min() / costs_of
    worth = worths(speeds, _follows(space, candidates, list(nodes)))
    # As many steps left as can be, and some fewer, drawn by the number of states alone: reading the same
    # store again makes the same rows.
    random = rng(0, len(nodes))
    most = np.maximum(STEPS - np.array([len(candidate.steps) for candidate in candidates]), 0)
    fewer = [np.ceil(most * random.random(len(nodes))).astype(np.int64) for _ in range(MOMENTS - 1)]
    states, left = np.tile(np.arange(len(nodes)), MOMENTS), np.concatenate([most, *fewer])
    observed = np.stack([space.observe(candidate) for candidate in candidates])
    short = shortfalls(speeds[states], worth[left, states])
    return observed[states], (left / STEPS).astype(np.float32), short


def _follows(space: CanObserve, candidates: Sequence[Candidate], states: Sequence[str]) -> NDArray[np.int64]:
    """Return the index of the state after each action; -1 where it is illegal, or unknown."""
    index = {state: number for number, state in enumerate(states)}
    column = {action: number for number, action in enumerate(space.actions)}
    found = np.full((len(index), len(column)), -1)
    for row, candidate in enumerate(candidates):
        for step in space.steps(candidate):
            # Known only where it was measured: what was not tried is left out of the loss, and not taken
            # for bad.
            after = space.state_key(space.extend(candidate, step))
            found[row, column[step]] = index.get(after, -1)
    return found


def worths(speeds: NDArray[np.float64], follows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the value of each action: the gains in speed that follow, discounted (thesis 3.6.3).

    Args:
        speeds: of each state, as a share of the best.
        follows: (states, actions), the state after an action; -1 where there is none.

    Returns:
        (steps left from 0 to `STEPS`, states, actions); `UNKNOWN` where there is no state.
    """
    best = np.zeros(len(speeds))
    found = [np.full(follows.shape, UNKNOWN)]
    for _ in range(STEPS):
        # A Bellman backup by steps left: with none left nothing is gained, and each pass adds one step. Where
        # there is no state, the index -1 reads a value that the next line drops.
        gained = speeds[follows] - speeds[:, None] + DISCOUNT * best[follows]
        found.append(np.where(follows >= 0, gained, UNKNOWN))
        best = np.maximum(found[-1].max(axis=1), 0.0)  # by the end nothing is gained, and nothing lost
    return np.stack(found)


EVALUATIONS = (1, 3, 5, 10, 30)
ROWS = 4096
"""States that the network is asked about at once."""


def evaluate_steps(policy: SavedPolicy, dataset: StateDataset) -> dict[str, float]:
    """Return the value of the action that a policy prefers in a state; unknown actions are not chosen.

    Args:
        policy: that walks.
        dataset: what a store knows of the same space.

    Returns:
        "regret", by how much it is worse than the best known action, as a share of the best speed, and
        "best", the share of states where none is better.
    """
    assert isinstance(policy.shape, Shape)
    rows = scaled(dataset.observed, dataset.left)
    parts = np.array_split(rows, -(-len(rows) // ROWS))
    found = np.concatenate([scores(np, policy.shape, policy.parameters, part) for part in parts])
    known = np.where(np.isnan(dataset.short), -np.inf, found)
    chosen = np.take_along_axis(dataset.short, known.argmax(axis=1)[:, None], axis=1)[:, 0]
    worse = chosen - np.nanmin(dataset.short, axis=1)
    return {"regret": float(worse.mean()), "best": float((worse <= 0).mean())}


def compare_steps(policy: SavedPolicy, rival: SavedPolicy, dataset: StateDataset) -> HeldOut | None:
    """Compare two policies on the programs that are held back; None where there are none.

    A rival that ships with planish may have learnt from them, which is to its advantage alone.
    """
    held = dataset.held
    if not held.any() or not isinstance(rival.shape, Shape):
        return None
    rows = dataset.rows(held)
    mine, theirs = (1 - evaluate_steps(each, rows)["regret"] for each in (policy, rival))
    return HeldOut(len(np.unique(rows.groups)), "share of the best speed", mine, rival.name, theirs)


def compare_lists(
    policy: SavedPolicy, rival: SavedPolicy, dataset: ListDataset, held: NDArray[np.bool_]
) -> HeldOut | None:
    """Compare two policies over pass lists on the functions that are held back.

    Args:
        policy: learnt from the other functions.
        rival: is in use.
        dataset: of functions, with the lists of the labels.
        held: which functions are held back.

    Returns:
        The comparison; None where no function is held back, or the labels lack lists of the rival's.
    """
    rows, found = dataset.rows(held), list[float]()
    if not len(rows):
        return None
    for each in (policy, rival):
        if isinstance(each.shape, ReaderShape):
            lists = [tuple(text.split(",")) for text in each.actions]
        elif isinstance(each.shape, WriterShape):
            lists = writable(each, rows.lists)
        else:
            return None
        if not lists or not {*lists} <= {*rows.lists}:
            return None
        found.append(evaluate_lists(each, rows.columns(lists))["saved at 1"])
    return HeldOut(len(rows), "share saved by the first list", found[0], rival.name, found[1])


def evaluate_lists(policy: SavedPolicy, dataset: ListDataset) -> Mapping[str, float]:
    """Return the savings of the most probable lists of a policy, with the baseline after them.

    Args:
        policy: that writes lists.
        dataset: of lists.

    Returns:
        The share of all programs' cost that is saved: "saved at 1", at 3 and so on, evaluations of each.
    """
    order = np.argsort(-list_log_probabilities(policy, dataset), axis=1, kind="stable")
    # The best so far, since of n evaluated lists the best is kept.
    best = np.maximum.accumulate(np.take_along_axis(dataset.shares, order, axis=1), axis=1)
    # Weighted by size: the share of all code that is saved, and not the mean of shares.
    saved = dataset.baseline @ best / dataset.baseline.sum()
    return {f"saved at {n}": float(saved[n - 1]) for n in EVALUATIONS if n <= len(saved)}


def writable(policy: SavedPolicy, lists: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the lists that a writer can write: of its passes, and short enough."""
    assert isinstance(policy.shape, WriterShape)
    known, longest = {*policy.actions}, policy.shape.longest
    return [tuple(each) for each in lists if len(each) <= longest and {*each} <= known]


def list_log_probabilities(policy: SavedPolicy, dataset: ListDataset) -> NDArray[np.floating]:
    """Return log-probabilities of lists, (programs, lists), up to a constant for each program.

    Args:
        policy: that writes lists.
        dataset: of lists; in its order, where it chooses among them.
    """
    if isinstance(policy.shape, ReaderShape):
        return predict_lists(policy.shape, policy.parameters, dataset.observed)[:, HEADS.index("choice")]
    shape = policy.shape
    assert isinstance(shape, WriterShape)
    end = len(policy.actions)
    rows = np.full((len(dataset.lists), shape.longest + 1), end)
    for index, each in enumerate(dataset.lists):
        rows[index, : len(each)] = [policy.actions.index(step) for step in each]
    # One more than the list has steps: its end counts, too.
    there = np.arange(shape.longest + 1) <= np.array([len(each) for each in dataset.lists])[:, None]
    found, tokens = np.zeros((len(dataset), len(rows))), np.minimum(rows[:, :-1], end - 1)
    for index, observed in enumerate(dataset.observed):
        encoded = encode_observed(shape, policy.parameters, observed[None])
        encoded = replace(encoded, begin=np.repeat(encoded.begin, len(rows), axis=0))
        scores = token_scores(np, shape, policy.parameters, encoded, tokens).astype(np.float64)
        chosen = np.take_along_axis(scores, rows[..., None], 2)[..., 0]
        found[index] = ((chosen - np.logaddexp.reduce(scores, axis=2)) * there).sum(axis=1)
    return found
