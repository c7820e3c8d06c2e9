"""Cards of corpora, and reading a corpus."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from planish.core import PlanishError, unknown
from planish.core.files import replace_text
from planish.core.hashing import versioned
from planish.train.corpus.shards import DATA, MANIFEST, SPLITS, Manifest, Row, read_table, split_of


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write the lines of a table; an upright stroke in a cell, which would end it, becomes a slash."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]


CARD = "card.json"
PAGE = "card.md"
_PERCENTILES = (5, 25, 50, 75, 90, 95, 99)
_PACKAGE_COLUMNS = ("package", "version", "split", "files", "failed_files", "found", "different", "kept")
_COLUMNS = ["instructions", "chars", "license", "duplicates"]


def write_card(folder: Path, manifest: Manifest, command: str) -> Mapping[str, Any]:
    """Count what a deduplicated corpus holds, and write it for programs and for people.

    Args:
        folder: the corpus.
        manifest: its manifest.
        command: the command that made it.

    Returns:
        The card, as card.json holds it.

    Raises:
        OSError: it cannot be written.
    """
    card = versioned(_counted(folder, manifest, command))
    replace_text(folder / PAGE, page(card))
    replace_text(folder / CARD, json.dumps(card, indent=1))
    return card


def read_card(folder: Path) -> Mapping[str, Any]:
    """Read the card of a finished corpus.

    Raises:
        PlanishError: there is none.
    """
    card = card_in(folder)
    if "packages" not in card:
        begun = (folder / MANIFEST).is_file()
        what = f"{folder} is an unfinished corpus" if begun else f"{folder} is not a corpus"
        raise PlanishError(what, "Build it: planish corpus build DIR ...")
    return card


def card_in(folder: Path) -> dict[str, Any]:
    """Read whatever card a folder has; empty where it has none, or one that is damaged."""
    try:
        return json.loads((folder / CARD).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}


def _counted(folder: Path, manifest: Manifest, command: str) -> dict[str, Any]:
    import numpy as np

    entries = manifest.done()
    packages: dict[str, dict[str, Any]] = {}
    sizes: dict[str, list[tuple[int, int]]] = {split: [] for split in SPLITS}
    licenses: Counter[str] = Counter()
    for entry in entries:
        split = split_of(entry.kind, entry.package)
        shard = read_table(folder / DATA / split / f"{entry.key}.parquet", _COLUMNS)
        columns = {name: shard[name].to_pylist() for name in _COLUMNS}
        sizes[split] += zip(columns["instructions"], columns["chars"], strict=True)
        licenses.update(columns["license"])
        packages[entry.key] = {
            "kind": entry.kind,
            "package": entry.package,
            "version": entry.version,
            "split": split,
            "files": entry.files,
            "failed_files": entry.failed_files,
            "found": entry.found,
            "different": entry.functions,
            "kept": shard.num_rows,
        }
    every = [size for split in SPLITS for size in sizes[split]]
    found, different = (sum(getattr(e, name) for e in entries) for name in ("found", "functions"))
    return {
        "functions": len(every),
        "splits": {split: _sizes(np.array(sizes[split] or [(0, 0)]), len(sizes[split])) for split in SPLITS},
        "all": _sizes(np.array(every or [(0, 0)]), len(every)),
        "duplicates": {
            "found": found,
            "within_packages": found - different,
            "across_packages": different - len(every),
        },
        "files": {
            "compiled": sum(entry.files for entry in entries),
            "failed": sum(entry.failed_files for entry in entries),
        },
        "left_out": dict(_summed(entry.left_out for entry in entries)),
        "failures": dict(_summed(entry.failures for entry in entries).most_common(20)),
        "licenses": dict(licenses.most_common()),
        "packages": packages,
        "failed_packages": {e.key: e.reason for e in manifest.entries.values() if e.state == "failed"},
        "recipe": dict(manifest.recipe),
        "seconds": round(sum(entry.seconds for entry in entries), 1),
        "command": command,
    }


def _sizes(sizes: Any, count: int) -> dict[str, Any]:
    import numpy as np

    def column(values: Any) -> dict[str, float]:
        ranks = np.percentile(values, _PERCENTILES).round().astype(int).tolist()
        named = {f"p{rank}": value for rank, value in zip(_PERCENTILES, ranks, strict=True)}
        return {"mean": round(float(values.mean()), 1), **named, "total": int(values.sum())}

    made: dict[str, Any] = {"functions": count}
    return made | {"instructions": column(sizes[:, 0]), "chars": column(sizes[:, 1])} if count else made


def _summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def page(card: Mapping[str, Any]) -> str:
    """Write a card for people, as Markdown."""
    duplicates, files = card["duplicates"], card["files"]
    lines = [
        "# A corpus of LLVM IR functions",
        "",
        f"{card['functions']:,} different functions of {len(card['packages']):,} packages.",
        f"Made by `{card['command']}`.",
        "",
        *(f"- {name}: {value}" for name, value in card["recipe"].items()),
        f"- files: {files['compiled']:,} compiled, {files['failed']:,} did not",
        f"- functions found: {duplicates['found']:,}",
        f"- duplicates within packages: {duplicates['within_packages']:,}",
        f"- duplicates across packages: {duplicates['across_packages']:,}",
        *(f"- left out, {reason}: {count:,}" for reason, count in card["left_out"].items()),
        "",
        "## Sizes",
        "",
        *_size_table(card, "instructions"),
        "",
        *_size_table(card, "chars"),
        "",
        "## Licenses",
        "",
        "As debian/copyright states them for each file.",
        "",
        *table(("license", "functions"), [(name, f"{n:,}") for name, n in card["licenses"].items()]),
        "",
        "## Packages",
        "",
        *table(
            _PACKAGE_COLUMNS, [[str(p[name]) for name in _PACKAGE_COLUMNS] for p in card["packages"].values()]
        ),
    ]
    if card["failed_packages"]:
        failed = list(card["failed_packages"].items())
        lines += ["", "## Packages that failed", "", *table(("package", "reason"), failed)]
    return "\n".join(lines) + "\n"


def _size_table(card: Mapping[str, Any], what: str) -> list[str]:
    heads = (what, "functions", "mean", *(f"p{rank}" for rank in _PERCENTILES), "total")
    named = [*card["splits"].items(), ("all", card["all"])]
    rows = [
        (split, f"{held['functions']:,}", *(f"{held[what][head]:,}" for head in heads[2:]))
        for split, held in named
        if held["functions"]
    ]
    return table(heads, rows)


SAMPLE = Path(__file__).parent / "sample" / "functions.jsonl.gz"


def read_corpus(path: Path | str = SAMPLE, split: str | None = None) -> Iterator[Row]:
    """Read the functions of a corpus, by package and file.

    Args:
        path: the folder that `planish corpus build` made, or a file of JSON lines compressed by gzip;
            the default is the sample that comes with planish, and needs no pyarrow.
        split: "train", "validation", "test" or "csmith"; None reads all.

    Yields:
        One function at a time; memory holds those of one package.

    Raises:
        PlanishError: there is no corpus, it is not finished or damaged, or the split is unknown.
    """
    if split is not None and split not in SPLITS:
        raise unknown("unknown split", split, SPLITS)
    path = Path(path)
    if path.is_file():
        yield from (row for row in _read_lines(path) if split in (None, row.split))
        return
    for shard in shards_of(path, split):
        yield from (Row(**row) for row in read_table(shard).to_pylist())


def shards_of(folder: Path, split: str | None = None) -> list[Path]:
    """List the shards of a finished corpus: by split, then by package.

    Raises:
        PlanishError: there is no corpus, or it is not finished.
    """
    read_card(folder)
    wanted = SPLITS if split is None else (split,)
    return [shard for name in wanted for shard in sorted((folder / DATA / name).glob("*.parquet"))]


def _read_lines(path: Path) -> Iterator[Row]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield Row(**json.loads(line))
    except (OSError, EOFError, zlib.error, ValueError, TypeError) as error:
        what = f"{path} is not a corpus: {error}"
        raise PlanishError(what, "Name a corpus's folder, or a .jsonl.gz file of functions.") from error
