"""How good the choices of a policy are, by what is known without measuring anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planish.learn.language import Lessons as ListLessons
from planish.learn.language import ReaderShape, expected
from planish.learn.language.network import HEADS
from planish.learn.language.writer import WriterShape, read_one, said
from planish.learn.policy.continuations import StateLessons
from planish.learn.policy.network import Shape, scaled, scores
from planish.learn.policy.saved import SavedPolicy

EVALUATIONS = (1, 3, 5, 10, 30)
ROWS = 4096
"""States that the network is asked about at once."""


def judge_steps(policy: SavedPolicy, lessons: StateLessons) -> dict[str, float]:
    """Tell what the action that a policy prefers in a state is worth; unknown actions are not chosen.

    Args:
        policy: that walks.
        lessons: what a store knows of the same space.

    Returns:
        "regret", by how much it is behind the best known action, as a share of the best speed, and "best",
        the share of states where none is better.
    """
    assert isinstance(policy.shape, Shape)
    rows = scaled(lessons.observed, lessons.left)
    parts = np.array_split(rows, -(-len(rows) // ROWS))
    said = np.concatenate([scores(np, policy.shape, policy.parameters, part) for part in parts])
    known = np.where(np.isnan(lessons.short), -np.inf, said)
    chosen = np.take_along_axis(lessons.short, known.argmax(axis=1)[:, None], axis=1)[:, 0]
    behind = chosen - np.nanmin(lessons.short, axis=1)
    return {"regret": float(behind.mean()), "best": float((behind <= 0).mean())}


def judge_lists(policy: SavedPolicy, lessons: ListLessons) -> Mapping[str, float]:
    """Tell what the lists save that a policy holds for the most probable, with the baseline behind them.

    Args:
        policy: that writes lists.
        lessons: of lists.

    Returns:
        The share of all programs' cost that is saved: "saved at 1", at 3 and so on, evaluations of each.
    """
    order = np.argsort(-how_probable(policy, lessons), axis=1, kind="stable")
    # The best so far, since whoever evaluates n lists keeps the best of them.
    best = np.maximum.accumulate(np.take_along_axis(lessons.shares, order, axis=1), axis=1)
    # Weighted by size: the share of all code that is saved, and not the mean of shares.
    saved = lessons.baseline @ best / lessons.baseline.sum()
    return {f"saved at {n}": float(saved[n - 1]) for n in EVALUATIONS if n <= len(saved)}


def writable(policy: SavedPolicy, lists: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Give those of some lists that a writer can write: it knows their passes, and they are short enough."""
    assert isinstance(policy.shape, WriterShape)
    known, longest = {*policy.actions}, policy.shape.longest
    return [tuple(each) for each in lists if len(each) <= longest and {*each} <= known]


def how_probable(policy: SavedPolicy, lessons: ListLessons) -> NDArray[np.floating]:
    """Give how probable a policy has each list: (programs, lists), as logarithms up to a number each program.

    Args:
        policy: that writes lists.
        lessons: of lists; in its order, where it chooses among them.
    """
    if isinstance(policy.shape, ReaderShape):
        return expected(policy.shape, policy.parameters, lessons.observed)[:, HEADS.index("choice")]
    shape = policy.shape
    assert isinstance(shape, WriterShape)
    end = len(policy.actions)
    rows = np.full((len(lessons.lists), shape.longest + 1), end)
    for place, each in enumerate(lessons.lists):
        rows[place, : len(each)] = [policy.actions.index(step) for step in each]
    # One place more than the list has steps: its end counts, too.
    there = np.arange(shape.longest + 1) <= np.array([len(each) for each in lessons.lists])[:, None]
    found = np.zeros((len(lessons), len(rows)))
    for place, observed in enumerate(lessons.observed):
        read = read_one(shape, policy.parameters, observed[None])
        read = replace(read, begin=np.repeat(read.begin, len(rows), axis=0))
        scores = said(np, shape, policy.parameters, read, np.minimum(rows[:, :-1], end - 1)).astype(
            np.float64
        )
        sure = np.take_along_axis(scores, rows[..., None], 2)[..., 0] - np.logaddexp.reduce(scores, axis=2)
        found[place] = (sure * there).sum(axis=1)
    return found
