"""Policies that are networks: what they compute, how they walk, and how they are kept."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Candidate, Machine, PlanishError, Target, rng
from planish.levels.loops.context import CONTEXT
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.space.cursor import CursorSpace
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.workloads import matmul
from planish.models import networks
from planish.models.named_policies import NetworkPolicy
from planish.models.networks import KINDS, Shape, scaled, scores
from planish.models.policy_files import SavedPolicy, load_policy, policy_for, policy_paths, write_policy
from planish.train.continuations import DISCOUNT, UNKNOWN, shortfalls, worths
from planish.train.samples import FARTHEST, STEPS, StateDataset

SPACE = CursorSpace(matmul(30, 20, 12))


def made(kind: str, seed: int = 0, steps: int = STEPS) -> SavedPolicy:
    """A network of chance."""
    shape = Shape(kind, 10, SPACE.observed.width, len(SPACE.actions) + 1, width=8, depth=2, heads=2)
    random = np.random.default_rng(seed)
    arrays = {name: random.normal(size=size).astype(np.float32) for name, size in shape.parameters().items()}
    actions = tuple(map(str, SPACE.actions))
    return SavedPolicy("chance", "loops", SPACE.observed, actions, steps, shape, arrays, {"regret": 0.5}, 3)


def shape_of(policy: SavedPolicy) -> Shape:
    """Its network's, which walks."""
    assert isinstance(policy.shape, Shape)
    return policy.shape


def observed(count: int) -> NDArray[np.float32]:
    """What a network reads of some candidates."""
    seen = np.stack([SPACE.observe(SPACE.sample(rng(0, number))) for number in range(count)])
    return scaled(seen, np.linspace(0, 1, count, dtype=np.float32))


def test_networks_read_the_element_type_and_the_processor() -> None:
    assert len(CONTEXT) == networks.CONTEXT
    wide, narrow = (
        CursorSpace(matmul(30, 20, 12, dtype), target=Target("", machine=Machine(vector_bytes, 16)))
        for dtype, vector_bytes in (("float32", 64), ("float64", 32))
    )
    rows = [
        scaled(space.observe(Candidate())[None], np.ones(1, np.float32))[0, :3] for space in (wide, narrow)
    ]
    differ = np.flatnonzero((rows[0] != rows[1]).all(axis=0))
    names = [SPACE.observed.names[column] for column in differ]
    assert names == ["element bytes", "vector bytes"]
    assert (rows[0] == rows[1])[:, [*set(range(rows[0].shape[1])) - {*differ}]].all()
    np.testing.assert_allclose(rows[0][:, differ[1]], np.log2(65) / 16, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_do_not_depend_on_each_other(kind: str) -> None:
    policy, rows = made(kind), observed(6)
    together = scores(np, shape_of(policy), policy.parameters, rows)
    alone = [scores(np, shape_of(policy), policy.parameters, rows[i : i + 1])[0] for i in range(6)]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-4, atol=1e-4)


def test_rows_that_are_no_loops_change_nothing() -> None:
    """Attention of a nest in ten rows is attention of the same nest in as many rows as it has loops."""
    policy, rows = made("attention"), observed(1)[:, :, :]
    loops = int(rows[0, :, -2].sum())
    short = replace(shape_of(policy), rows=loops)
    positions_ = {**policy.parameters, "positions": policy.parameters["positions"][:loops]}
    np.testing.assert_allclose(
        scores(np, shape_of(policy), policy.parameters, rows),
        scores(np, short, positions_, rows[:, :loops]),
        rtol=1e-4,
        atol=1e-4,
    )


def test_fully_connected_layers_are_sums_of_products() -> None:
    policy, rows = made("mlp"), observed(2)
    hidden = [float(value) for value in rows[1].reshape(-1)]
    for layer in range(3):
        weights, bias = policy.parameters[f"{layer}"], policy.parameters[f"{layer} bias"]
        sums = [sum(h * float(w) for h, w in zip(hidden, column, strict=True)) for column in weights.T]
        hidden = [total + float(b) for total, b in zip(sums, bias, strict=True)]
        hidden = hidden if layer == 2 else [max(0.0, value) for value in hidden]
    found = scores(np, shape_of(policy), policy.parameters, rows)[1]
    np.testing.assert_allclose(found, hidden, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_torch_computes_what_numpy_does(kind: str) -> None:
    torch = pytest.importorskip("torch")
    policy, rows = made(kind), observed(5)
    tensors = {name: torch.from_numpy(array) for name, array in policy.parameters.items()}
    found = scores(torch, shape_of(policy), tensors, torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(
        found, scores(np, shape_of(policy), policy.parameters, rows), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("kind", KINDS)
def test_only_legal_steps_are_probable(kind: str) -> None:
    policy = NetworkPolicy(made(kind))
    states = [policy.begin(SPACE)]
    states += [policy.extend(states[0], step) for step in SPACE.steps(Candidate())]
    for state, found in zip(states, policy.log_probabilities(states), strict=True):
        assert set(found) == {*SPACE.steps(state.candidate), None}
        assert sum(map(math.exp, found.values())) == pytest.approx(1)


def test_what_falls_short_is_reckoned_from_the_best_of_the_program() -> None:
    """Of the start, at a fifth, whose actions gain 0.7, 0.1 and an unknown amount; and of the best itself."""
    speeds, ahead = np.array([0.2, 1.0]), np.array([[0.7, 0.1, UNKNOWN], [-0.4, -0.1, UNKNOWN]])
    found = shortfalls(speeds, ahead)
    np.testing.assert_allclose(
        found, [[0.1, 0.1 + FARTHEST, np.nan, 0.8], [FARTHEST, 0.1, np.nan, 0.0]], atol=1e-6
    )


def test_after_its_steps_there_is_only_the_end() -> None:
    policy = NetworkPolicy(made("mlp", steps=2))
    state = policy.begin(SPACE)
    for _ in range(2):
        (found,) = policy.log_probabilities([state])
        state = policy.extend(state, next(step for step in found if step is not None))
    assert policy.log_probabilities([state]) == [{None: 0.0}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_is_worth_what_the_end_scores(kind: str) -> None:
    saved = made(kind)
    policy = NetworkPolicy(saved)
    states = [policy.begin(SPACE)]
    states += [policy.extend(states[0], step) for step in SPACE.steps(Candidate())]
    sure = policy.log_probabilities(states)
    for state, worth, found in zip(states, policy.value(states), sure, strict=True):
        rows = scaled(
            SPACE.observe(state.candidate)[None],
            np.array([1 - len(state.candidate.steps) / STEPS], np.float32),
        )
        (row,) = scores(np, shape_of(saved), saved.parameters, rows)
        assert worth == pytest.approx(row[-1], rel=1e-4)
        # Probabilities tell differences of scores.
        first = SPACE.steps(state.candidate)[0]
        assert found[None] - found[first] == pytest.approx(worth - row[SPACE.actions.index(first)], rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_that_learns_further_begins_with_its_own_weights(kind: str) -> None:
    pytest.importorskip("torch")
    from planish.train.imitation import imitate

    first, count = made(kind), 4
    seen = np.stack([SPACE.observe(SPACE.sample(rng(0, number))) for number in range(count)])
    short = np.zeros((count, len(SPACE.actions) + 1), np.float32)
    left, groups = np.ones(count, np.float32), np.arange(count)
    dataset = StateDataset(seen, left, short, groups, ["a", "b", "c", "d"], SPACE)
    after = imitate(dataset, "loops", "chance", epochs=1, start=first, rate=1e-9)
    assert after.shape == first.shape
    for name, array in first.parameters.items():
        np.testing.assert_allclose(after.parameters[name], array, atol=1e-5)


def test_a_policy_is_kept_as_it_is(tmp_path: Path) -> None:
    policy, path = made("attention"), tmp_path / "policy-some.safetensors"
    write_policy(policy, path)
    held = load_policy(path)
    assert replace(held, parameters={}) == replace(policy, name="some", parameters={})
    for name, array in policy.parameters.items():
        np.testing.assert_allclose(held.parameters[name], array, rtol=1e-3, atol=1e-3)


def test_what_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    write_policy(made("mlp"), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(PlanishError, match="cannot read a policy"):
        load_policy(path)
    length = int.from_bytes(whole[:8], "little")
    head = json.loads(whole[8 : 8 + length])
    head["__metadata__"]["planish"] = head["__metadata__"]["planish"].replace('"format": 1', '"format": 9')
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    with pytest.raises(PlanishError, match="has format 9"):
        load_policy(path)
    with pytest.raises(PlanishError, match="cannot read a policy"):
        load_policy(tmp_path / "none.safetensors")


def test_a_policy_of_other_actions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    write_policy(made("mlp"), path)
    other = CursorSpace(matmul(30, 20, 12), factors=(4, 8))
    with pytest.raises(PlanishError, match="is for the actions of loops/cursor"):
        policy_for(other, str(path))
    program = matmul(8, 8, 8)
    with pytest.raises(PlanishError, match="is for the actions of"):
        NetworkPolicy(load_policy(path)).begin(TemplateSpace(program, LoopsLevel().target(program, 1)))


def test_a_policy_of_another_version_of_what_it_observes_is_refused() -> None:
    old = replace(made("mlp"), schema=replace(SPACE.observed, version=1))
    with pytest.raises(PlanishError, match="was trained on version 1 of loops/cursor"):
        NetworkPolicy(old).begin(SPACE)


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match=r"cannot read a policy from .*: it is a folder"):
        load_policy(tmp_path)


def test_the_shipped_policy_fits() -> None:
    shipped = load_policy(policy_paths()["loops"])
    assert shipped.fits(SPACE)
    assert policy_paths()["loops"].stat().st_size < 2 << 20


def test_worths_are_the_best_discounted_gains() -> None:
    """Beside a search through all ways, on graphs of chance."""
    random = np.random.default_rng(0)
    speeds, follows = random.random(7), random.integers(-1, 7, size=(7, 3))
    found = worths(speeds, follows)
    assert found.shape == (STEPS + 1, 7, 3)
    for left in range(5):
        for state in range(7):
            expected = [_worth(speeds, follows, state, action, left) for action in range(3)]
            np.testing.assert_allclose(found[left, state], expected)


def _worth(
    speeds: NDArray[np.float64], follows: NDArray[np.int64], state: int, action: int, left: int
) -> float:
    after = int(follows[state, action])
    if left == 0 or after < 0:
        return UNKNOWN
    onward: Sequence[float] = [_worth(speeds, follows, after, number, left - 1) for number in range(3)]
    return float(speeds[after] - speeds[state] + DISCOUNT * max(0.0, *onward))
