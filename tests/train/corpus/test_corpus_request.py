from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.train.corpus.build import CorpusRequest, packages_of, standard_packages
from train.corpus.sources import numbered, write


def message_of(request: CorpusRequest) -> str:
    with pytest.raises(PlanishError) as error:
        packages_of(request, print)
    return str(error.value)


def test_what_cannot_be_meant(tmp_path: Path) -> None:
    file = write(tmp_path / "a", x=numbered(1)) / "x.c"
    write(tmp_path / "other" / "a", x=numbered(1))
    assert message_of(CorpusRequest()).startswith("nothing to make a corpus of. Name")
    assert message_of(CorpusRequest(folders=[file])) == f"{file} is not a folder. Name a folder of C files."
    assert message_of(CorpusRequest(ir=[file])).startswith(f"{file} is not LLVM IR")
    assert message_of(CorpusRequest(ir=[tmp_path / "x.ll"])).startswith(f"{tmp_path / 'x.ll'} does not exist")
    assert message_of(CorpusRequest(lists=["nowhere"])).startswith(
        "the list nowhere cannot be read: No such file"
    )
    assert message_of(CorpusRequest(folders=[tmp_path / "a", tmp_path / "other" / "a"])).startswith(
        "two sources are called a"
    )


def test_ir_files_are_packages_by_folder(tmp_path: Path) -> None:
    for name in ("one/a.ll", "one/deep/b.bc", "one/c.txt", "two/d.ll"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = packages_of(CorpusRequest(ir=[tmp_path / "one", tmp_path / "two" / "d.ll"]), print)
    assert [package.name for package in found] == ["one", "two"]
    names = [[unit.name for unit in package.prepare(tmp_path, []).units] for package in found]
    assert names == [
        [str(tmp_path / "one/a.ll"), str(tmp_path / "one/deep/b.bc")],
        [str(tmp_path / "two/d.ll")],
    ]


def test_the_shipped_list() -> None:
    packages = standard_packages()["packages"]
    assert all(functions >= 100 for functions in packages.values())
    assert {"lua5.4", "zlib"} <= packages.keys()
