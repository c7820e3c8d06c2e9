"""Programs of a corpus: Debian's source packages, and random C programs by csmith."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from planish.core import PlanishError, TargetError, did_you_mean
from planish.core.files import replace_text
from planish.sandbox.scratch import check_room
from planish.sandbox.tool import Ran, run_tool

_DAY_S = 86400.0
_SECONDS = 900.0
_HELPER = "/usr/lib/apt/apt-helper"
_SYSTEM = Path("/etc/apt")
_PACKAGE = re.compile(r"^Package: (\S+)", re.MULTILINE)
_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)
_TYPES = re.compile(r"^Types:.*$", re.MULTILINE)
_SUITES = re.compile(r"^Suites:(.*)$", re.MULTILINE)
_LINE = re.compile(r"^deb\s+(?P<options>\[[^]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<rest>.*)$")


@dataclass(frozen=True)
class Apt:
    """apt with source packages switched on.

    Args:
        folder: where its configuration and lists are.
    """

    folder: Path

    def configure(self, system: Path, codename: str) -> None:
        """Write the configuration, where it is not as it is to be.

        Args:
            system: where the system's is.
            codename: of the release: "bookworm".

        Raises:
            TargetError: the system has no repository of this release.
        """
        texts = list(_source_entries(system, codename))
        if not texts:
            raise TargetError(
                f"{system} names no repository of this distribution", "Name folders of sources instead."
            )
        parts, lists, cache = (self.folder / name for name in ("sources", "lists", "cache"))
        for made in (parts, lists / "partial", cache / "archives" / "partial"):
            made.mkdir(parents=True, exist_ok=True)
        wanted = {f"{number}{suffix}": text for number, (suffix, text) in enumerate(texts)}
        # apt of another command may be reading what is there.
        if {file.name: file.read_text() for file in parts.iterdir()} != wanted:
            for file in parts.iterdir():
                file.unlink()
            for name, text in wanted.items():
                (parts / name).write_text(text)
        user = 'APT::Sandbox::User "root";\n' if os.geteuid() == 0 else ""
        conf = (
            f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{parts}";\n'
            f'Dir::State::lists "{lists}";\nDir::Cache "{cache}";\nDebug::NoLocking "true";\n{user}'
        )
        replace_text(self.folder / "apt.conf", conf)

    def update(self) -> None:
        """Fetch the lists of source packages anew."""
        self._run("apt-get", "--quiet", "update")

    def names(self) -> frozenset[str]:
        """Name every source package that can be had."""
        files = self._run("apt-get", "indextargets", "--format", "$(FILENAME)", "Created-By: Sources")
        found: set[str] = set()
        for file in files.split():
            found.update(_PACKAGE.findall(self._run(_HELPER, "cat-file", file)))
        return frozenset(found)

    def unpack(self, package: str, into: Path) -> tuple[Path, str]:
        """Download a source package and unpack it, with Debian's patches.

        Args:
            package: the source package's name.
            into: an empty folder.

        Returns:
            The folder of the sources, and the version.

        Raises:
            PlanishError: it cannot be downloaded or unpacked.
            OSError: the disk is full.
        """
        self._run("apt-get", "--quiet", "source", "--download-only", "--only-source", package, cwd=into)
        description = next(into.glob("*.dsc"))
        tree = into / "tree"
        self._run("dpkg-source", "--no-check", "-x", description.name, tree.name, cwd=into)
        for archive in into.glob("*.tar.*"):
            archive.unlink()
        found = _VERSION.search(description.read_text(errors="replace"))
        return tree, found[1] if found else ""

    def _run(self, *command: str, cwd: Path | None = None) -> str:
        variables = {"APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C"}
        try:
            ran = run_tool(command, seconds=_SECONDS, folder=cwd, variables=variables)
        except TimeoutError as error:
            raise PlanishError(str(error)) from error
        if ran.code:
            _raise(command, ran.message)
        return ran.output.decode(errors="replace")


def open_apt(folder: Path, system: Path = _SYSTEM, codename: str = "") -> Apt:
    """Make the private configuration, and fetch the lists of source packages once a day.

    Args:
        folder: where to keep both; made where it is missing.
        system: where apt's configuration is.
        codename: of the release whose sources are wanted; the default is the system's.

    Raises:
        TargetError: apt or dpkg-source is not installed, or no Debian or Ubuntu sources are configured.
        PlanishError: the lists cannot be fetched.
    """
    for program in ("apt-get", "dpkg-source"):
        if shutil.which(program) is None:
            what = f"source packages need {program}, which this machine lacks"
            raise TargetError(
                what, "On Debian: apt-get install dpkg-dev. Elsewhere: name folders of sources instead."
            )
    apt, stamp = Apt(folder.resolve()), folder / "updated"  # apt runs in other folders
    folder.mkdir(parents=True, exist_ok=True)
    # Two commands at once would write the configuration and the lists under each other's feet.
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        apt.configure(system, codename or _codename())
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > _DAY_S:
            apt.update()
            stamp.touch()
    return apt


def unknown_packages(apt: Apt, wanted: Iterable[str]) -> dict[str, str]:
    """Return the names that no source package has, each with a hint."""
    known = apt.names()
    return {name: did_you_mean(name, known) for name in wanted if name not in known}


def _source_entries(system: Path, codename: str) -> Iterator[tuple[str, str]]:
    """Turn the distribution's entries to source packages.

    Other repositories often have none, and those of updates drop a version when the next one comes.

    Yields:
        A file's suffix and its text.
    """
    parts = system / "sources.list.d"
    for file in sorted(parts.glob("*.sources")):
        stanzas = re.split(r"\n\s*\n", file.read_text())
        wanted = [_of_sources(stanza, codename) for stanza in stanzas if _is_ours(stanza, codename)]
        if wanted:
            yield ".sources", "\n\n".join(wanted) + "\n"
    for file in (system / "sources.list", *sorted(parts.glob("*.list"))):
        lines = file.read_text().splitlines() if file.exists() else []
        found = [match for match in map(_LINE.match, lines) if match and match["suite"] == codename]
        if found:
            yield ".list", "".join(f"deb-src{match[0].removeprefix('deb')}\n" for match in found)


def _is_ours(stanza: str, codename: str) -> bool:
    suites = _SUITES.search(stanza)
    return bool(suites and codename in suites[1].split() and _TYPES.search(stanza))


def _of_sources(stanza: str, codename: str) -> str:
    return _SUITES.sub(f"Suites: {codename}", _TYPES.sub("Types: deb-src", stanza))


def _codename() -> str:
    found = re.search(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    return found[1] if found else "sid"


def _raise(command: tuple[str, ...], messages: str) -> None:
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "dpkg-source: error"))] or lines[-1:]
    check_room(command[0], messages)
    raise PlanishError(f"{command[0]}: {'; '.join(errors) or 'it failed'}")


_CSMITH_S = 30.0
SMALL = (
    *("--max-funcs", "12", "--max-block-depth", "2", "--max-block-size", "3"),
    *("--max-expr-complexity", "4", "--no-checksum"),
)
"""Options for functions of 100 instructions in the median, as real code has; the defaults make 277."""
_HEADERS = ("/usr/include/csmith", "/usr/local/include/csmith")


def find_csmith() -> tuple[str, Path]:
    """Find the program and the folder of its headers; raises TargetError where one of them is missing."""
    program = shutil.which("csmith")
    headers = next((folder for folder in map(Path, _HEADERS) if (folder / "csmith.h").is_file()), None)
    if program is None or headers is None:
        lacking = "csmith" if program is None else "csmith's headers"
        raise TargetError(f"random programs need {lacking}", "Try: apt-get install csmith libcsmith-dev.")
    return program, headers


def csmith_version(program: str) -> str:
    """Ask csmith for its version."""
    said = _run([program, "--version"]).output.decode(errors="replace")
    return said.split("\n", 1)[0].removeprefix("csmith").strip()


def random_program(program: str, seed: int, options: Sequence[str] = SMALL) -> str:
    """Make a C program; the same seed and options make the same one.

    Args:
        program: csmith.
        seed: of its randomness.
        options: what the program is like.

    Raises:
        PlanishError: csmith fails, or does not end.
    """
    try:
        ran = _run([program, "--seed", str(seed), *options])
    except TimeoutError as error:
        raise PlanishError(f"csmith did not end within {_CSMITH_S:g} s on seed {seed}") from error
    if ran.code:
        raise PlanishError(f"csmith fails on seed {seed}: {ran.message.strip()[:200]}")
    return ran.output.decode(errors="replace")


def _run(command: list[str]) -> Ran:
    """Run csmith in a folder of its own: it leaves a file where it runs."""
    with TemporaryDirectory() as folder:
        return run_tool(command, seconds=_CSMITH_S, folder=folder)
