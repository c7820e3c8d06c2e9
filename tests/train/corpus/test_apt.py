"""Debian source packages, from a repository that the test makes."""

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from planish.core import PlanishError, TargetError
from planish.train.corpus.programs import Apt, open_apt, unknown_packages
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.sources import DebianPackage
from train.corpus.sources import Build, Recording, lacking, numbered, write

CONTROL = "Source: little\nMaintainer: Nobody <nobody@example.org>\n\nPackage: little\nArchitecture: any\n"
CHANGELOG = "little (1.2) stable; urgency=low\n\n  * New.\n\n -- Nobody <nobody@example.org>  {date}\n"
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: Nobody
License: GPL-2+

Files: free/*
Copyright: Nobody
License: Expat
 Permission is hereby granted ...
"""


@pytest.fixture(scope="module")
def apt(tmp_path_factory: pytest.TempPathFactory) -> Apt:
    """Make a repository of one source package, and open it."""
    for program in ("apt-get", "dpkg-source", "dpkg-scansources"):
        if shutil.which(program) is None:
            lacking(f"{program} is not installed: apt-get install dpkg-dev")
    folder = tmp_path_factory.mktemp("apt")
    repository = folder / "repository"
    tree = repository / "little-1.2"
    write(tree, x=numbered(1))
    write(tree / "free", y=numbered(2))
    (tree / "debian" / "source").mkdir(parents=True)
    (tree / "debian" / "source" / "format").write_text("3.0 (native)\n")
    (tree / "debian" / "control").write_text(CONTROL)
    (tree / "debian" / "changelog").write_text(CHANGELOG.format(date="Mon, 05 Jan 2026 10:00:00 +0000"))
    (tree / "debian" / "copyright").write_text(COPYRIGHT)
    subprocess.run(["dpkg-source", "-b", tree.name], cwd=repository, check=True, capture_output=True)
    index = subprocess.run(
        ["dpkg-scansources", "."], cwd=repository, check=True, capture_output=True, text=True
    ).stdout
    (repository / "Sources").write_text(index)
    shutil.rmtree(tree)
    _write_sources(folder, repository)
    return _open(folder)


def _write_sources(folder: Path, repository: Path) -> None:
    (folder / "etc").mkdir()
    (folder / "etc" / "sources.list").write_text(f"deb [trusted=yes] file://{repository} ./\n")


def _open(folder: Path) -> Apt:
    return open_apt(folder / "private", folder / "etc", codename="./")


def test_a_package_with_its_version_and_licenses(apt: Apt, build: Build, tmp_path: Path) -> None:
    build(tmp_path / "out", DebianPackage("little", apt))
    rows = list(read_corpus(tmp_path / "out"))
    assert sorted((row.function, row.file, row.license) for row in rows) == [
        ("f1", "x.c", "GPL-2+"),
        ("f2", "free/y.c", "Expat"),
    ]
    assert {(row.package, row.version, row.kind) for row in rows} == {("little", "1.2", "debian")}
    assert not (tmp_path / "out" / "sources").exists()


def test_commands_at_once_share_the_lists(apt: Apt, tmp_path: Path) -> None:
    _write_sources(tmp_path, apt.folder.parent / "repository")
    with ThreadPoolExecutor() as pool:
        opened = [pool.submit(_open, tmp_path) for _ in range(4)]
    assert [each.result().names() for each in opened] == [{"little"}] * 4


def test_names_that_do_not_exist(apt: Apt, build: Build, display: Recording, tmp_path: Path) -> None:
    assert apt.names() == {"little"}
    assert unknown_packages(apt, ["little", "litle"]) == {"litle": "Did you mean 'little'?"}
    card = build(tmp_path / "out", DebianPackage("litle", apt))
    assert re.search("Unable to find a source package for litle", card["failed_packages"]["debian-litle"])
    assert len(display.logged) == 1


def test_entries_of_both_forms_become_those_of_sources(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / "debian.sources").write_text(
        "Types: deb\nURIs: http://a\nSuites: stable stable-updates\nComponents: main\n\n"
        "Types: deb\nURIs: http://security\nSuites: stable-security\nComponents: main\n"
    )
    (parts / "other.list").write_text(
        "# no\ndeb http://b cloud main\ndeb [arch=amd64] http://c stable main extra\n"
    )
    apt = Apt(tmp_path / "private")
    apt.configure(tmp_path, "stable")
    written = [file.read_text() for file in sorted((tmp_path / "private" / "sources").iterdir())]
    assert written == [
        "Types: deb-src\nURIs: http://a\nSuites: stable\nComponents: main\n",
        "deb-src [arch=amd64] http://c stable main extra\n",
    ]


def test_a_system_without_repositories(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="names no repository of this distribution"):
        Apt(tmp_path / "private").configure(tmp_path, "stable")


def test_lists_that_cannot_be_fetched(apt: Apt, tmp_path: Path) -> None:
    del apt
    _write_sources(tmp_path, tmp_path / "nowhere")
    with pytest.raises(PlanishError, match="apt-get: E:"):
        _open(tmp_path)
