"""What of a corpus is done; kept in one file that is replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from planish.core import PlanishError
from planish.core.replacing import replace_text
from planish.corpus.row import KINDS, Kind

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class PackageEntry:
    """What became of a package.

    Args:
        kind: of its source.
        package: its name.
        state: "failed" ones are tried again by the next run.
        version: the package's.
        reason: why it failed.
        files: how many files gave IR.
        failed_files: how many did not.
        failures: the most frequent reasons, with their numbers.
        found: functions that were kept, before duplicates within the package were put together.
        functions: different ones.
        left_out: functions that were left out, by reason.
        seconds: from the first file to the last.
    """

    kind: Kind
    package: str
    state: Literal["done", "failed"]
    version: str = ""
    reason: str = ""
    files: int = 0
    failed_files: int = 0
    failures: Mapping[str, int] = field(default_factory=dict[str, int])
    found: int = 0
    functions: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """The name of its files."""
        return key_of(self.kind, self.package)


@dataclass
class Manifest:
    """All packages of a corpus.

    Args:
        recipe: what all rows were made with: versions, limits.
        entries: by key.
    """

    recipe: Mapping[str, Any]
    entries: dict[str, PackageEntry] = field(default_factory=dict[str, PackageEntry])

    def is_done(self, key: str) -> bool:
        """Whether nothing is left to do for a package."""
        return key in self.entries and self.entries[key].state == "done"

    def done(self) -> list[PackageEntry]:
        """List what is done, in the order in which packages keep a function that several have."""
        done = [entry for entry in self.entries.values() if entry.state == "done"]
        return sorted(done, key=lambda entry: (KINDS.index(entry.kind), entry.package))


def key_of(kind: Kind, package: str) -> str:
    """Name a package's files."""
    return f"{kind}-{package.replace('/', '_')}"


def read_manifest(folder: Path) -> Manifest | None:
    """Read a corpus's manifest; None where there is none.

    Raises:
        PlanishError: it is damaged, or of another version.
    """
    try:
        text = (folder / MANIFEST).read_text()
    except FileNotFoundError:
        return None
    try:
        held = json.loads(text)
        if held["format"] != FORMAT:
            what = f"{folder / MANIFEST} has format {held['format']}, and this planish reads {FORMAT}"
            raise PlanishError(what, "Build the corpus anew in another folder.")
        entries = {key: PackageEntry(**entry) for key, entry in held["packages"].items()}
        return Manifest(held["recipe"], entries)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlanishError(f"{folder / MANIFEST} is damaged: {error}", "Build in another folder.") from error


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Replace the manifest."""
    packages = {key: asdict(entry) for key, entry in sorted(manifest.entries.items())}
    held = {"format": FORMAT, "recipe": manifest.recipe, "packages": packages}
    replace_text(folder / MANIFEST, json.dumps(held, indent=1))
