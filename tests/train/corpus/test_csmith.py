from pathlib import Path

import pytest

from planish.core import TargetError
from planish.train.corpus.build import CorpusRequest, packages_of
from planish.train.corpus.programs import find_csmith, random_program
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.sources import Package
from train.corpus.sources import Build, lacking


def programs(count: int, seed: int) -> list[Package]:
    try:
        return packages_of(CorpusRequest(csmith=count, seed=seed), print)
    except TargetError as error:
        lacking(str(error))


def test_random_programs_are_apart(build: Build, tmp_path: Path) -> None:
    card = build(tmp_path / "out", *programs(3, 5))
    rows = list(read_corpus(tmp_path / "out", "csmith"))
    assert card["functions"] == len(rows) > 10
    assert {row.file for row in rows} == {"seed-5.c", "seed-6.c", "seed-7.c"}
    assert {(row.kind, row.license) for row in rows} == {("csmith", "CC0-1.0")}


def test_many_programs_come_in_batches() -> None:
    assert [package.name for package in programs(600, 1)] == ["seeds-1-250", "seeds-251-500", "seeds-501-600"]


def test_a_seed_makes_one_program() -> None:
    programs(1, 1)
    program, _ = find_csmith()
    assert random_program(program, 3) == random_program(program, 3) != random_program(program, 4)


def test_no_csmith(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetError, match=r"random programs need csmith.*apt-get install csmith"):
        find_csmith()
