"""How good the choices of a policy are, by what is known without measuring anything."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planish.learn.language import Lessons as ListLessons
from planish.learn.language import ReaderShape, expected
from planish.learn.language.network import HEADS
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
    known = np.where(np.isnan(lessons.behind), -np.inf, said)
    behind = np.take_along_axis(lessons.behind, known.argmax(axis=1)[:, None], axis=1)
    return {"regret": float(behind.mean()), "best": float((behind <= 0).mean())}


def judge_lists(policy: SavedPolicy, lessons: ListLessons) -> Mapping[str, float]:
    """Tell what the lists save that a policy holds for the most probable, with the baseline behind them.

    Args:
        policy: that writes lists.
        lessons: of these lists, in its order.

    Returns:
        The share of all programs' cost that is saved: "saved at 1", at 3 and so on, evaluations of each.
    """
    assert isinstance(policy.shape, ReaderShape)
    said = expected(policy.shape, policy.parameters, lessons.observed)[:, HEADS.index("choice")]
    order = np.argsort(-said, axis=1, kind="stable")
    best = np.maximum.accumulate(np.take_along_axis(lessons.shares, order, axis=1), axis=1)
    saved = lessons.baseline @ best / lessons.baseline.sum()
    return {f"saved at {n}": float(saved[n - 1]) for n in EVALUATIONS if n <= len(saved)}
