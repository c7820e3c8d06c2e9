"""Files of policies, the folders that hold them, and the policies that planish ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planish.core import Machine, PlanishError, Target
from planish.levels.llvm.ir.features import FEATURES
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.loops.space.cursor import CursorSpace
from planish.levels.loops.workloads import matmul
from planish.models.networks import Shape
from planish.models.policy_files import (
    SavedPolicy,
    load_policy,
    policies_folder,
    policy_for,
    policy_paths,
    write_policy,
)
from planish.models.provenance import HeldOut
from planish.train.corpus.shards import split_of
from planish.train.cost_tables import CostTable, read_costs


def space(vector_bytes: int) -> CursorSpace:
    """One on a processor with such vectors; 0 where nothing is known of it."""
    return CursorSpace(matmul(30, 20, 12), target=target(vector_bytes) if vector_bytes else None)


def target(vector_bytes: int) -> Target:
    """A processor with such vectors."""
    return Target("", machine=Machine(vector_bytes, 16))


def saved(name: str, vector_bytes: int, programs: int = 3) -> SavedPolicy:
    """A network that knows nothing."""
    there = space(0)
    shape = Shape("mlp", 10, there.observed.width, len(there.actions) + 1, width=8, depth=2)
    arrays = {each: np.zeros(size, np.float32) for each, size in shape.parameters().items()}
    made = SavedPolicy(
        name, "loops", there.observed, tuple(map(str, there.actions)), 10, shape, arrays, {}, 3
    )
    return replace(made, programs=programs, vector_bytes=vector_bytes)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's folder, where no policies come with planish."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    policies_folder().mkdir(parents=True)
    return policies_folder()


def own_policies() -> dict[str, Path]:
    """List the user's policies alone."""
    return {name: path for name, path in policy_paths().items() if policies_folder() in path.parents}


def put(own: Path, *policies: SavedPolicy) -> None:
    """Write policies to the folder."""
    for policy in policies:
        write_policy(policy, own / f"{policy.name}.safetensors")


@pytest.mark.parametrize(
    ("vector_bytes", "chosen"), [(16, "narrow"), (32, "narrow"), (64, "wide"), (128, "wide")]
)
def test_the_width_of_vectors_chooses(own: Path, vector_bytes: int, chosen: str) -> None:
    put(own, saved("narrow", 32, programs=10), saved("wide", 64, programs=9))
    assert policy_for(space(vector_bytes), "auto", own_policies).name == chosen


def test_of_equal_widths_the_one_of_most_programs_is_asked(own: Path) -> None:
    put(own, saved("few", 64, programs=3), saved("many", 64, programs=30), saved("narrow", 32, programs=99))
    assert policy_for(space(64), "auto", own_policies).name == "many"
    assert policy_for(space(0), "auto", own_policies).name == "narrow"


def compared(policy: SavedPolicy, value: float, programs: int = 20) -> SavedPolicy:
    """The policy, compared with a shipped one that has 0.9."""
    held_out = HeldOut(programs, "share of the best speed", value, "loops", 0.9)
    return replace(policy, held_out=held_out)


@pytest.mark.parametrize(
    ("value", "programs", "chosen"),
    [(0.95, 20, "own-loops"), (0.95, 2, "loops"), (0.9, 20, "loops"), (0.2, 20, "loops")],
)
def test_a_policy_of_the_users_is_asked_where_it_is_better_on_enough_held_back_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: float, programs: int, chosen: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    policies_folder().mkdir(parents=True)
    put(policies_folder(), compared(saved("own-loops", 64, 10**6), value, programs))
    assert policy_for(space(64), "auto").name == chosen
    assert policy_for(space(32), "auto").name == "loops-avx2", "it learnt on vectors of another width"
    assert policy_for(space(64), "own-loops").held_out is not None


def test_a_policy_of_the_users_does_not_take_the_name_of_a_shipped_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    policies_folder().mkdir(parents=True)
    put(policies_folder(), saved("loops", 64, 10**6))
    assert policy_for(space(64), "auto").programs == policy_for(space(64), "loops").programs > 1000
    assert policy_for(space(64), "auto").programs < 10**6
    assert policy_for(space(64), "own-loops").programs == 10**6


def test_a_policy_is_asked_only_for_the_element_types_that_it_learnt_from(own: Path) -> None:
    put(own, replace(saved("singles", 64), conditions={"element type": ["float32"]}))
    double = CursorSpace(matmul(30, 20, 12, "float64"), target=target(64))
    assert policy_for(space(64), "auto", own_policies).name == "singles"
    with pytest.raises(
        PlanishError, match="no policy is for the actions of loops/cursor, element type float64"
    ):
        policy_for(double, "auto", own_policies)
    assert policy_for(double, "singles", own_policies).conditions == {"element type": ["float32"]}


@pytest.mark.parametrize("name", ["loops", "loops-avx2"])
def test_shipped_policies_of_loops_state_their_element_type(name: str) -> None:
    assert policy_for(space(64), name).conditions == {"element type": ["float32"]}


def test_a_damaged_one_is_left_out_with_a_warning(own: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(own, saved("whole", 64))
    (own / "cut.safetensors").write_bytes(b"no policy")
    assert policy_for(space(64), "auto", own_policies).name == "whole"
    assert "cut.safetensors" in caplog.text
    assert "it is left out" in caplog.text


def test_a_file_is_read_once_and_its_arrays_cannot_be_written(own: Path) -> None:
    put(own, saved("known", 64))
    policy = load_policy(own / "known.safetensors")
    assert load_policy(own / "known.safetensors") is policy
    for array in policy.parameters.values():
        with pytest.raises(ValueError, match="read-only"):
            array += 1


def test_a_file_that_was_written_again_is_read_again(own: Path) -> None:
    put(own, saved("known", 64, programs=3))
    assert load_policy(own / "known.safetensors").programs == 3
    put(own, saved("known", 64, programs=4))
    assert load_policy(own / "known.safetensors").programs == 4


def test_each_width_of_vectors_has_a_shipped_policy() -> None:
    assert {
        vector_bytes: policy_for(space(vector_bytes), "auto").vector_bytes for vector_bytes in (32, 64)
    } == {
        32: 32,
        64: 64,
    }


LABELS = Path(__file__).parents[2] / "experiments" / "labels"


TABLES = {"instructions": "joined-lists.npz", "text_bytes": "functions.npz"}


HELD_BACK = {"lua5.1", "lua5.4", "zlib", "bzip2", "sqlite3", "redis", "cjson", "re2", "fmtlib"}


@pytest.fixture(scope="module", params=TABLES)
def objective(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def table(objective: str) -> CostTable:
    return read_costs(LABELS / TABLES[objective])


def test_tables_are_small() -> None:
    assert sum(file.stat().st_size for file in LABELS.glob("*.npz")) < 6_000_000


def test_a_table_is_of_the_packages_that_may_be_learnt_from(table: CostTable) -> None:
    assert len(set(table.identities.tolist())) == len(table) > 3000
    assert not HELD_BACK & set(table.splits)
    assert table.splits == {package: split_of("debian", package) for package in table.splits}


def test_a_table_has_every_list_of_the_coreset(table: CostTable, objective: str) -> None:
    assert objective in table.columns.objectives
    assert table.columns.features == FEATURES
    assert set(load_coreset(objective)) <= set(table.columns.lists)
