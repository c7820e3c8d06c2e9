"""Tables of what lists cost on functions: their files, and tables that are joined."""

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
from planish.core import PlanishError
from planish.train.cost_tables import (
    FAILED,
    UNCOUNTED,
    Columns,
    CostRow,
    CostTable,
    empty_table,
    join_tables,
    read_costs,
    read_joined,
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
    for name in ("identities", "packages", "unoptimized", "baseline", "costs", "features", "lexemes"):
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
@settings(max_examples=examples(100))
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


FEATURES = np.zeros((2, 1), np.int64)


WIDE = Columns("22.1.8", "x86_64", ("text_bytes", "instructions"), (("a",), ("b",), ("c",)), ("x",))


NARROW = replace(WIDE, objectives=("instructions",), lists=(("c",), ("d",), ("b",)))


def named(*tables: CostTable) -> dict[str, CostTable]:
    return dict(zip(("a.npz", "b.npz"), tables, strict=True))


def tables() -> list[CostTable]:
    wide = CostRow("1" * 32, "one", "train", [90, 9], [80, 8], [[1, 2], None, [5, 6]], FEATURES)
    narrow = CostRow("2" * 32, "two", "test", [7], [6], [[3], [4], [5]], FEATURES)
    return [empty_table(WIDE).with_rows([wide]), empty_table(NARROW).with_rows([narrow])]


def test_functions_of_all_have_the_costs_of_the_lists_that_all_have() -> None:
    joined = join_tables(named(*tables()), "instructions", described=True)
    assert joined.columns == replace(WIDE, objectives=("instructions",), lists=(("b",), ("c",)))
    assert joined.identities.tolist() == ["1" * 32, "2" * 32]
    assert joined.costs[..., 0].tolist() == [[FAILED, 6], [5, 3]]
    assert (joined.baseline.tolist(), joined.unoptimized.tolist()) == ([[8], [6]], [[9], [7]])
    assert joined.lexemes.shape == (2, 2)
    assert joined.split("test").packages.tolist() == ["two"]
    assert joined.features.shape == (2, 2, 1)


def test_lists_that_are_asked_for_come_from_whichever_table_has_them() -> None:
    lists = [("a",), ("d",), ("b",)]
    wide, narrow = tables()
    rows = [
        CostRow("1" * 32, "one", "train", [9], [8], [[30], [40], [50]], FEATURES),
        CostRow("2" * 32, "two", "test", [7], [6], [[3], [4], [5]], FEATURES),
    ]
    more = empty_table(NARROW).with_rows(rows)
    joined = join_tables(named(wide, more), "instructions", lists, described=True)
    # What list a costs the second function is unknown; the first table tells list b of the first.
    assert (joined.columns.lists, joined.identities.tolist()) == (tuple(lists), ["1" * 32])
    assert joined.costs[..., 0].tolist() == [[2, 40, FAILED]]
    with pytest.raises(
        PlanishError, match=r"no function has the costs of all 3 wanted lists in a\.npz and b\.npz"
    ):
        join_tables(named(wide, narrow), "instructions", lists)
    other = replace(more, baseline=more.baseline + 1)
    with pytest.raises(PlanishError, match="costs 8 after -Oz in one table, and 9 in another"):
        join_tables(named(wide, other), "instructions", lists)


def test_features_are_left_out_where_not_all_have_the_same() -> None:
    wide, narrow = tables()
    bare = replace(narrow, columns=replace(NARROW, features=()), features=narrow.features[..., :0])
    joined = join_tables(named(wide, bare), "instructions")
    assert (joined.columns.features, joined.features.shape) == ((), (2, 2, 0))
    assert joined.costs.tolist() == join_tables(named(wide, narrow), "instructions").costs.tolist()
    with pytest.raises(PlanishError, match=r"b\.npz and a\.npz differ in features\. Leave one of them out"):
        join_tables(named(wide, bare), "instructions", described=True)


def test_a_function_of_two_tables_is_there_once_and_held_back_if_one_holds_it_back() -> None:
    rows = [
        CostRow(f"{one:032x}", package, split, [9], [8], [[cost]] * 3, FEATURES)
        for one, package, split, cost in (
            (1, "held", "test", 1),
            (2, "learnt", "train", 2),
            (2, "held", "test", 3),
            (3, "learnt", "train", 4),
            (3, "learnt", "train", 5),
        )
    ]
    first, second = (
        empty_table(NARROW).with_rows([rows[place] for place in places]) for places in ((1, 3), (0, 2, 4))
    )
    joined = join_tables(named(first, second), "instructions")
    found = {int(one): row[0, 0] for one, row in zip(joined.identities, joined.costs, strict=True)}
    assert found == {1: 1, 2: 3, 3: 4}
    assert joined.split("train").identities.tolist() == [f"{3:032x}"]


def test_the_same_file_twice_is_the_file_once(tmp_path: Path) -> None:
    wide, narrow = tables()
    paths = [tmp_path / name for name in ("a.npz", "b.npz", "a.npz")]
    write_costs(wide, paths[0])
    write_costs(narrow, paths[1])
    assert read_joined(paths, "instructions").identities.tolist() == ["1" * 32, "2" * 32]


def test_what_does_not_fit_together_is_reported() -> None:
    wide, narrow = tables()
    with pytest.raises(PlanishError, match=r"b\.npz lacks the objective 'text_bytes'"):
        join_tables(named(wide, narrow), "text_bytes")
    older = replace(narrow, columns=replace(NARROW, llvm="3.8.0"))
    with pytest.raises(PlanishError, match=r"b\.npz and a\.npz differ in LLVM: 3\.8\.0 and 22\.1\.8"):
        join_tables(named(wide, older), "instructions")
    newer = replace(narrow, columns=replace(NARROW, version=2))
    with pytest.raises(PlanishError, match="differ in version of features: 2 and 1"):
        join_tables(named(wide, newer), "instructions", described=True)
    others = replace(narrow, columns=replace(NARROW, lists=(("d",), ("e",), ("f",))))
    with pytest.raises(PlanishError, match=r"a\.npz and b\.npz have no list in common"):
        join_tables(named(wide, others), "instructions")
    moved = replace(narrow, splits={"two": "test", "one": "validation"})
    with pytest.raises(PlanishError, match=r"b\.npz has package one for validation, .* for train"):
        join_tables(named(wide, moved), "instructions")
