"""Tables of what lists cost."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from damaged_files import with_flipped_bits
from planish.core import PlanishError
from planish.train.cost_tables import (
    FAILED,
    UNCOUNTED,
    Columns,
    CostRow,
    empty_table,
    read_costs,
    write_costs,
)

COLUMNS = Columns(
    "22.1.8", "x86_64", ("instructions", "text_bytes"), (("a", "b"), ("c",)), ("x", "y", "z"), 2
)


def _row(number: int, package: str = "one", costs: list[list[int] | None] | None = None) -> CostRow:
    features = np.arange(6, dtype=np.int64).reshape(2, 3) * (number % 100)
    split = "train" if package == "one" else "test"
    sizes = [90, 400], [50, 200], costs or [[45, 210], None]
    return CostRow(f"{number:032x}", package, split, *sizes, features, (700 + number % 100, 300))


@given(arrays.arrays(np.int32, (3, 2, 2), elements=st.integers(0, 2**31 - 1)), st.integers(0, 2**31 - 1))
def test_a_table_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    costs: np.ndarray[tuple[int, ...], np.dtype[np.int32]],
    last: int,
) -> None:
    path = tmp_path_factory.mktemp("costs") / "t.npz"
    rows = [_row(n, "one" if n % 2 else "two", costs[n].tolist()) for n in range(3)]
    rows.append(_row(2**127 + last))

    table = empty_table(COLUMNS).with_rows(rows)
    write_costs(table, path)
    read = read_costs(path)

    assert (read.columns, read.splits) == (table.columns, {"one": "train", "two": "test"})
    for name in ("identities", "packages", "unoptimised", "baseline", "costs", "features", "lexemes"):
        assert np.array_equal(getattr(read, name), getattr(table, name)), name
    assert read.packages.tolist() == ["one", "one", "two", "two"]
    assert read.costs[read.identities.tolist().index(f"{2**127 + last:032x}"), 1].tolist() == [FAILED, FAILED]


def test_what_is_saved_is_never_negative_and_nothing_where_a_list_failed() -> None:
    table = empty_table(COLUMNS).with_rows([_row(1)])
    assert table.saved("instructions").tolist() == [[5, 0]]
    assert table.saved("text_bytes").tolist() == [[0, 0]]


def test_a_split_has_the_functions_of_its_packages() -> None:
    table = empty_table(COLUMNS).with_rows([_row(1), _row(2, "two")]).with_rows([_row(3, "two")])
    assert table.split("test").identities.tolist() == [f"{2:032x}", f"{3:032x}"]
    assert [len(table.split(name)) for name in ("train", "csmith")] == [1, 0]


def test_an_empty_table_can_be_kept(tmp_path: Path) -> None:
    write_costs(empty_table(COLUMNS), tmp_path / "t.npz")
    read = read_costs(tmp_path / "t.npz")
    assert len(read) == 0
    assert len(read.with_rows([_row(1)])) == 1


def test_lexemes_of_older_tables_are_uncounted(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    write_costs(empty_table(COLUMNS).with_rows([_row(1)]), path)
    with np.load(path) as held:
        older = {name: held[name] for name in held if name != "lexemes"}
    np.savez(path, allow_pickle=False, **older)

    table = read_costs(path).with_rows([_row(2)])
    write_costs(table, path)
    assert read_costs(path).lexemes.tolist() == [[UNCOUNTED, UNCOUNTED], [702, 300]]


def test_the_same_table_is_the_same_file(tmp_path: Path) -> None:
    rows = [_row(n) for n in range(5)]
    write_costs(empty_table(COLUMNS).with_rows(rows), tmp_path / "a.npz")
    write_costs(empty_table(COLUMNS).with_rows(rows[3:]).with_rows(rows[:3]), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("costs") / "t.npz"
    write_costs(empty_table(COLUMNS).with_rows([_row(n) for n in range(30)]), path)
    return path


@given(st.integers(0, 9999), st.integers(1, 255))
@settings(max_examples=100)
def test_a_table_with_a_byte_changed_is_refused_or_whole(written: Path, place: int, change: int) -> None:
    with suppress(PlanishError):
        assert len(read_costs(with_flipped_bits(written, place, change))) == 30


def test_what_is_no_table_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    with pytest.raises(PlanishError, match="cannot read a table of costs"):
        read_costs(path)
    for damage in (b"", b"nothing", b"PK\x03\x04"):
        path.write_bytes(damage)
        with pytest.raises(PlanishError, match="cannot read a table of costs"):
            read_costs(path)
    with path.open("wb") as file:
        np.savez(file, about=np.frombuffer(b'{"format": 2}', np.uint8), costs=[])
    with pytest.raises(PlanishError, match="has format 2, and this planish reads 1"):
        read_costs(path)
