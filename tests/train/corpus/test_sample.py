"""The corpus that comes with planish."""

import sys

import pytest

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.ir.functions import identity
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.corpus.shards import split_of

NEEDS_MORE_THAN_A_NOTICE = ("GPL", "MPL", "EPL", "CDDL", "unknown")


def test_it_is_read_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    rows = list(read_corpus())
    assert 300 <= len(rows) <= 700
    assert {row.split for row in rows} == {"train", "validation", "test", "csmith"}
    assert list(read_corpus(split="test")) == [row for row in rows if row.split == "test"]


def test_rows_hold_what_they_say() -> None:
    bindings, seen = open_bindings(), set[str]()
    for row in read_corpus():
        module = bindings.parse(row.ir)
        assert module.verify() == ""
        assert module.instructions() == row.instructions
        module.close()
        assert row.identity == identity(row.ir)
        assert row.chars == len(row.ir)
        assert row.split == split_of(row.kind, row.package)
        seen.add(row.identity)
    assert len(seen) == sum(1 for _ in read_corpus())


def test_it_is_small_and_may_be_handed_on() -> None:
    attribution = (SAMPLE.parent / "ATTRIBUTION.md").read_text()
    assert SAMPLE.stat().st_size + len(attribution) < 2_000_000
    for row in read_corpus():
        free = [name for name in row.license.split(" or ") if not name.startswith(NEEDS_MORE_THAN_A_NOTICE)]
        assert free, row.license
        assert row.kind == "csmith" or f"## {row.package}\n" in attribution
