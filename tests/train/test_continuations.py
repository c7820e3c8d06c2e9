"""What is told of a policy's choices, beside a count by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planish.core import FeatureSchema
from planish.models.networks import HEADS, ReaderShape, predict_lists
from planish.models.policy_files import SavedPolicy
from planish.models.writer import WriterShape
from planish.train.continuations import evaluate_lists, writable
from planish.train.samples import ListDataset

LISTS = (("a",), ("a", "b"), ("c",))
SCHEMA = FeatureSchema("llvm/instructions", 1, ("part", "opcode"))


def test_lists_are_tried_by_their_probability() -> None:
    random = np.random.default_rng(0)
    shape = ReaderShape(sizes=(3, 5), rows=4, lists=len(LISTS), width=8, depth=1, heads=2)
    sizes = shape.parameters().items()
    parameters = {name: random.normal(size=size).astype(np.float32) for name, size in sizes}
    policy = SavedPolicy("x", "llvm", SCHEMA, tuple(map(",".join, LISTS)), 2, shape, parameters, {}, 1)
    observed = random.integers(1, 3, (6, 4, 2)).astype(np.int16)
    shares = random.random((6, len(LISTS))).astype(np.float32)
    baseline = np.array([10, 20, 30, 40, 50, 60], np.float32)
    groups = np.full(6, "p")
    dataset = ListDataset(["f"] * 6, observed, shares, baseline, groups, SCHEMA, shape.sizes, LISTS)

    found = evaluate_lists(policy, dataset)

    said = predict_lists(shape, parameters, observed)[:, HEADS.index("choice")]
    for count in (1, 3):
        tried = [sorted(range(len(LISTS)), key=lambda n: -row[n])[:count] for row in said]
        saved = sum(
            c * max(row[n] for n in places) for c, row, places in zip(baseline, shares, tried, strict=True)
        )
        assert np.isclose(found[f"saved at {count}"], saved / baseline.sum())
    assert found.keys() == {"saved at 1", "saved at 3"}
    worse = replace(dataset, shares=np.zeros_like(shares))
    assert set(evaluate_lists(policy, worse).values()) == {0.0}


def test_a_writer_is_judged_by_lists_that_it_can_write() -> None:
    shape = WriterShape(sizes=(3, 5), rows=4, tokens=3, longest=2, once=(), width=8, depth=1, heads=2)
    policy = SavedPolicy("x", "llvm", SCHEMA, ("a", "b"), 2, shape, {}, {}, 1)
    lists = (("a",), ("a", "b"), ("a", "b", "a"), ("c",))
    assert writable(policy, lists) == [("a",), ("a", "b")]
