"""Files of a corpus: rows in Parquet files, the manifest of what is done, and reading them."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from planish.core import PlanishError, TargetError
from planish.core.files import replace_text, replacing
from planish.core.installation import install_command
from planish.train.samples import hash_number

Kind = Literal["debian", "folder", "ir", "csmith"]
Split = Literal["train", "validation", "test", "csmith"]
KINDS: tuple[Kind, ...] = ("debian", "folder", "ir", "csmith")
SPLITS: tuple[Split, ...] = ("train", "validation", "test", "csmith")

_TRAIN, _VALIDATION = 80, 90  # of 100: the rest is for the test


@dataclass(frozen=True, slots=True)
class Row:
    """One function, as a module of its own.

    Args:
        identity: the hash of its IR, whatever its names are.
        package: where it is from: a source package, a folder, a batch of random programs.
        version: the package's.
        file: the path within the package.
        function: its name there.
        license: the short name of the file's license (DEP-5); "unknown" where it is not stated.
        kind: of the source.
        split: what it is for; the same for all of a package.
        ir: the normalized text.
        instructions: of the IR as it stands, unoptimized.
        chars: the IR's length in characters.
        duplicates: how many other functions, in this package and others, are the same.
    """

    identity: str
    package: str
    version: str
    file: str
    function: str
    license: str
    kind: Kind
    split: Split
    ir: str
    instructions: int
    chars: int
    duplicates: int


def split_of(kind: Kind, package: str) -> Split:
    """Return the split of a package: 80 % train, 10 % validate, 10 % test; random programs stay apart.

    It depends on the name alone, so that a package is for the same in every corpus.
    """
    if kind == "csmith":
        return "csmith"
    share = hash_number(package) % 100
    return "train" if share < _TRAIN else "validation" if share < _VALIDATION else "test"


@contextmanager
def ours(folder: Path) -> Generator[None]:
    """Hold a folder against other builds, and raise one clear line where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise PlanishError(
                    f"another process is at work in {folder}", "Wait for it to end."
                ) from error
            yield
    except OSError as error:
        what = f"cannot write {folder}: {error.strerror or error}"
        hint = "Make room or name another folder; what is finished is kept, and the same command resumes it."
        raise PlanishError(what, hint) from error


FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class PackageEntry:
    """Entry of a package: what a build made of it.

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
        """Return whether nothing is left to do for a package."""
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


RAW = "raw"
DATA = "data"
Table = Any  # pyarrow has no types
_GROUP = 4096  # rows that are compressed together


def arrow() -> Any:
    """Import pyarrow; raises TargetError where it is not installed."""
    try:
        import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise TargetError("a corpus needs pyarrow", f"Try: {install_command('corpus')}.") from error
    return import_module("pyarrow")


def schema() -> Any:
    """Return the columns of a shard: the fields of `Row`."""
    pa = arrow()
    numbers = {"instructions": pa.int32(), "chars": pa.int32(), "duplicates": pa.int32()}
    return pa.schema([(name, numbers.get(name, pa.string())) for name in Row.__slots__])


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write a shard such that it is there as a whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    columns = {name: [getattr(row, name) for row in rows] for name in Row.__slots__}
    write_table(arrow().table(columns, schema=schema()), path)


def write_table(table: Table, path: Path) -> None:
    """Write a table as `write_rows` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, part.open("wb") as file:
        arrow().parquet.write_table(table, file, compression="zstd", row_group_size=_GROUP)


def read_table(path: Path, columns: Sequence[str] | None = None) -> Table:
    """Read a shard, or some of its columns; raises PlanishError where it is damaged."""
    try:
        return arrow().parquet.read_table(path, columns=columns)
    except ValueError as error:
        what = f"{path} is damaged: {error}"
        raise PlanishError(what, "Make it again by the command that made it, in another folder.") from error


def deduplicate(folder: Path, entries: Sequence[PackageEntry]) -> None:
    """Write the shards of each split anew from the packages' own.

    The first package that has a function keeps it, with the number of other locations that have it.

    Args:
        folder: the corpus.
        entries: what is done, in the order in which packages keep functions.

    Raises:
        OSError: the disk is full.
    """
    locations = _locations(folder, entries)
    shutil.rmtree(folder / DATA, ignore_errors=True)
    seen: set[str] = set()
    for entry in entries:
        table = _first_ones(read_table(_raw(folder, entry)), locations, seen)
        write_table(table, folder / DATA / split_of(entry.kind, entry.package) / f"{entry.key}.parquet")


def _raw(folder: Path, entry: PackageEntry) -> Path:
    return folder / RAW / f"{entry.key}.parquet"


def _locations(folder: Path, entries: Sequence[PackageEntry]) -> Counter[str]:
    """Count in how many locations each function is."""
    locations: Counter[str] = Counter()
    for entry in entries:
        table = read_table(_raw(folder, entry), ["identity", "duplicates"])
        for name, more in zip(table["identity"].to_pylist(), table["duplicates"].to_pylist(), strict=True):
            locations[name] += 1 + more
    return locations


def _first_ones(table: Table, locations: Counter[str], seen: set[str]) -> Table:
    names: list[str] = table["identity"].to_pylist()
    fresh = [name not in seen for name in names]
    seen.update(names)
    kept = table.filter(arrow().array(fresh, arrow().bool_()))
    counts = [locations[name] - 1 for name, is_fresh in zip(names, fresh, strict=True) if is_fresh]
    column = kept.schema.get_field_index("duplicates")
    return kept.set_column(column, kept.schema.field(column), arrow().array(counts, arrow().int32()))
