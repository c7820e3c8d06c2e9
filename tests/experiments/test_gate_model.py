"""The gate of the experiments: its trees, what it learns, its files, and what is spent by its word."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from amounts import examples
from damaged_files import with_flipped_bits
from gate_model import EvaluationShares, load_gate, main, train_gate, write_gate
from grown_trees import GrownTrees
from planish.core import PlanishError
from planish.models.cost_model import CostModel, Dataset
from planish.train.cost_tables import FAILED, UNCOUNTED, Columns, CostTable, write_costs

LISTS = (("a",), ("b",), ("c",))
COUNT = 400


def _data(count: int = COUNT, seed: int = 0) -> Dataset:
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, 5)).astype(np.float32)
    first = np.where(features[:, 0] > 0, 4.0, 0.0) * (features[:, 3] > -1)
    return Dataset(features, np.stack([first, first / 2 + features[:, 1]], axis=1).astype(np.float32))


def _table(seed: int = 0) -> CostTable:
    """A third of the functions, told by a feature, are made smaller by list c, some of those by b too."""
    random = np.random.default_rng(seed)
    features = random.integers(0, 9, (COUNT, 2, 3)).astype(np.int32)
    features[:, :, 2] = 50
    good = features[:, 1, 0] < 3
    costs = np.full((COUNT, 3, 1), 40, np.int32)
    costs[good, 2] = 30
    costs[good & (features[:, 0, 1] < 4), 1] = 35
    costs[:, 0] = np.where(features[:, 0, :1] > 4, FAILED, 60)
    names = np.array([f"{n:032x}" for n in range(COUNT)])
    columns = Columns("22.1.8", "x86_64", ("instructions",), LISTS, ("x", "y", "TotalInsts"))
    flat = np.full((COUNT, 1), 90, np.int32), np.full((COUNT, 1), 40, np.int32)
    lexemes = np.full((COUNT, 2), UNCOUNTED, np.int32)
    return CostTable(columns, names, np.full(COUNT, "p"), {"p": "train"}, *flat, costs, features, lexemes)


def _gains(table: CostTable, other: CostTable) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    gate = train_gate(table, "instructions", LISTS)
    return gate.gains(other.features, other.unoptimized[:, 0], other.baseline[:, 0])


def test_trees_predict_what_they_did_not_see() -> None:
    model: CostModel = GrownTrees()
    model.fit(_data())
    other = _data(seed=1)

    error = model.predict(other.features).mean - other.targets

    assert (error**2).mean() < 0.1 * other.targets.var()
    assert model.predict(other.features).deviation is None


def test_trees_are_the_same_by_the_same_seed_and_learn_anew() -> None:
    data, model = _data(), GrownTrees(rounds=5)
    model.fit(replace(data, targets=-data.targets))
    model.fit(data)
    again, other = GrownTrees(rounds=5), GrownTrees(rounds=5, seed=1)
    again.fit(data)
    other.fit(data)

    mean = model.predict(data.features).mean
    assert np.array_equal(mean, again.predict(data.features).mean)
    assert not np.array_equal(mean, other.predict(data.features).mean)


def test_too_few_rows_are_not_split() -> None:
    data = _data(30)
    model = GrownTrees(rounds=3)
    model.fit(data)
    assert not np.isfinite(model.trees.thresholds).any()
    assert model.predict(data.features[:0]).mean.shape == (0, 2)


def test_a_gate_knows_where_lists_save() -> None:
    other = _table(1)
    gains = _gains(_table(), other)
    saved = np.maximum.accumulate(other.saved("instructions"), axis=1)

    assert np.abs(gains.cumsum(axis=1) - saved).mean() < 0.5
    assert (gains >= 0).all()
    assert gains[saved[:, 2] > 0].sum(axis=1).min() > gains[saved[:, 2] == 0].sum(axis=1).max()


def test_a_gate_is_read_as_it_was_written(tmp_path: Path) -> None:
    table, path = _table(), tmp_path / "gate.npz"
    gate = train_gate(table, "instructions", LISTS)
    write_gate(gate, path)
    read = load_gate(path)

    assert replace(read, model=gate.model) == gate
    for asked in (_table(2), table.take(np.arange(0))):
        given_ = asked.features, asked.unoptimized[:, 0], asked.baseline[:, 0]
        assert np.array_equal(read.gains(*given_), gate.gains(*given_))


def test_a_gate_knows_what_its_features_meant(tmp_path: Path) -> None:
    table, path = _table(), tmp_path / "gate.npz"
    newer = replace(table, columns=replace(table.columns, version=2))
    write_gate(train_gate(newer, "instructions", LISTS), path)
    read = load_gate(path)
    read.require(newer.columns.features, 2)
    with pytest.raises(PlanishError, match="for version 2 of its features, and these are version 1"):
        read.require(table.columns.features, 1)
    with pytest.raises(PlanishError, match="features of other names"):
        read.require(("x", "y"), 2)


def test_a_gate_learns_of_its_own_objective_alone() -> None:
    table, columns = _table(), _table().columns
    wide = replace(
        table,
        columns=replace(columns, objectives=("text_bytes", "instructions")),
        **{
            name: np.concatenate([7 + 3 * array, array], axis=-1)
            for name, array in (
                ("unoptimized", table.unoptimized),
                ("baseline", table.baseline),
                ("costs", table.costs),
            )
        },
    )
    alone, other = train_gate(wide, "instructions", LISTS), _table(1)
    asked = other.features, other.unoptimized[:, 0], other.baseline[:, 0]
    assert np.array_equal(alone.gains(*asked), _gains(table, other))


def test_what_cannot_be_learnt_or_read_is_an_error_of_one_line(tmp_path: Path) -> None:
    table, path = _table(), tmp_path / "gate.npz"
    with pytest.raises(PlanishError, match="lacks the list d,e"):
        train_gate(table, "instructions", [("d", "e")])
    with pytest.raises(PlanishError, match="lacks functions to learn from"):
        train_gate(table.split("test"), "instructions", LISTS)
    bare = replace(table, columns=replace(table.columns, features=()), features=table.features[..., :0])
    with pytest.raises(PlanishError, match="lacks features of functions"):
        train_gate(bare, "instructions", LISTS)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(PlanishError, match="cannot read a gate"):
        load_gate(path)
    with path.open("wb") as file:
        np.savez(file, about=np.frombuffer(b'{"format": 1}', np.uint8))
    with pytest.raises(PlanishError, match="has format 1, and this planish reads 2"):
        load_gate(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate") / "gate.npz"
    write_gate(train_gate(_table(), "instructions", LISTS), path)
    return path


@given(st.integers(0, 9999), st.integers(1, 255))
@settings(max_examples=examples(100))
def test_a_gate_with_a_byte_changed_is_refused_or_whole(written: Path, place: int, change: int) -> None:
    other = _table(1)
    with suppress(PlanishError):
        gate = load_gate(with_flipped_bits(written, place, change))
        gate.gains(other.features, other.unoptimized[:, 0], other.baseline[:, 0])


def test_a_gate_whose_trees_are_of_other_lists_is_refused(tmp_path: Path) -> None:
    table, path = _table(), tmp_path / "gate.npz"
    write_gate(replace(train_gate(table, "instructions", LISTS), lists=LISTS[:2]), path)
    with pytest.raises(PlanishError, match="its trees do not fit its features and lists"):
        load_gate(path)


def _spend(gains: np.ndarray[tuple[int, ...], np.dtype[np.float32]], table: CostTable, budget: int) -> float:
    saved, allocation = table.saved("instructions"), EvaluationShares(gains)
    for _ in range(budget):
        given_ = allocation.next()
        assert given_ is not None
        allocation.tell(given_[0], saved[given_])
    return float(allocation.saved.sum())


def test_a_gate_saves_more_by_as_many_evaluations() -> None:
    other = _table(1)
    everything = float(other.saved("instructions").max(axis=1).sum())

    for lists in (1, 2):
        static = float(other.saved("instructions")[:, :lists].max(axis=1).sum())
        assert _spend(_gains(_table(), other), other, lists * COUNT) > 1.5 * max(static, 0.3 * everything)
    assert _spend(_gains(_table(), other), other, 3 * COUNT) == everything


def test_a_list_that_promises_nothing_is_run_where_the_next_one_promises_much() -> None:
    gains = np.array([[1, 0, 0], [0, 0, 9], [2, 0, 0]], np.float32)
    allocation, order = EvaluationShares(gains), list[tuple[int, int]]()
    while (given_ := allocation.next()) is not None:
        order.append(given_)
        allocation.tell(given_[0], 0)
    assert order[:5] == [(1, 0), (1, 1), (1, 2), (2, 0), (0, 0)]


@settings(max_examples=examples(50))
@given(arrays.arrays(np.float32, (4, 3), elements=st.floats(0, 100, width=32)))
def test_every_list_is_run_once_on_every_function(
    gains: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> None:
    allocation, order = EvaluationShares(gains), list[tuple[int, int]]()
    while (given_ := allocation.next()) is not None:
        order.append(given_)
        allocation.tell(given_[0], 1)
    assert sorted(order) == [(function, place) for function in range(4) for place in range(3)]
    assert allocation.next() is None


def test_a_function_under_way_is_not_given_again() -> None:
    allocation = EvaluationShares(np.array([[5, 5], [1, 1]], np.float32))
    assert [allocation.next(), allocation.next(), allocation.next()] == [(0, 0), (1, 0), None]
    allocation.tell(0, 2)
    assert allocation.next() == (0, 1)
    assert allocation.saved.tolist() == [2, 0]


def test_a_gate_is_trained_from_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, out = tmp_path / "one.npz", tmp_path / "other.npz", tmp_path / "gate.npz"
    table = _table()
    write_costs(table.take(np.arange(300)), one)
    write_costs(table.take(np.arange(300, COUNT)), other)
    main([str(one), str(other), "-o", str(out)])
    assert capsys.readouterr().out == f"wrote {out}: 1 lists, learnt from {COUNT} functions\n"
    gate, kept = load_gate(out), out.read_bytes()
    assert gate.objective == "instructions"
    assert set(gate.lists) <= {*LISTS}
    for words, match in (
        ([str(out)], "cannot read a table of costs from .*: it holds no costs"),
        ([str(one), "--objective", "time_s"], "lacks the objective 'time_s'"),
    ):
        with pytest.raises(PlanishError, match=match):
            main([*words, "-o", str(out)])
    write_costs(table.take(np.arange(0)), one)
    with pytest.raises(PlanishError, match="no list of the labels makes a function"):
        main([str(one), "-o", str(out)])
    assert out.read_bytes() == kept
