"""Builder of corpora; a build that is interrupted resumes where it was."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from planish.core import PlanishError, usable_cores
from planish.train.corpus.pipeline import Passage, Pipeline
from planish.train.corpus.reader import CARD, write_card
from planish.train.corpus.shards import (
    RAW,
    Manifest,
    PackageEntry,
    Row,
    arrow,
    deduplicate,
    key_of,
    ours,
    read_manifest,
    split_of,
    write_manifest,
    write_rows,
)
from planish.train.corpus.sources import Package
from planish.train.corpus.unit import CorpusRecipe, Found
from planish.tuning.progress import ProgressDisplay, Status

SOURCES = "sources"
_REASONS = 10


class BuildStatus(Status):
    """State of a build.

    Args:
        packages: how many there are.
        known: how many of them were done before.
        functions: how many these have.

    Attributes:
        functions: how many are kept, before duplicates across packages are put together.
        failed: how many packages could not be had.
    """

    def __init__(self, packages: int, known: int, functions: int) -> None:
        super().__init__("packages", packages, known)
        self.functions = self._before = functions
        self.failed = 0

    @property
    def detail(self) -> str:
        """The functions, and the packages that failed."""
        failed = f", {self.failed:,} packages failed" if self.failed else ""
        return f"{self.functions:,} functions{failed}"

    @property
    def pace(self) -> str:
        """How many functions are made in a second."""
        return f"{(self.functions - self._before) / self.seconds:.0f} functions/s"


@dataclass(frozen=True)
class BuildPlan:
    """Plan of a build.

    Args:
        packages: all packages; those that are done are skipped.
        recipe: how functions are made.
        llvm: the version of the back end's LLVM.
        jobs: how many processes; 0: as many as there are cores.
        keep_sources: whether unpacked sources stay.
        command: the command that asks for it, for the data card.
    """

    packages: Sequence[Package]
    recipe: CorpusRecipe
    llvm: str
    jobs: int = 0
    keep_sources: bool = False
    command: str = ""


def build_corpus(folder: Path, plan: BuildPlan, display: ProgressDisplay) -> Mapping[str, Any]:
    """Build a corpus, or resume its build.

    Args:
        folder: where to; made where it is missing.
        plan: what to build.
        display: shows the progress, and logs what could not be done.

    Returns:
        The data card, as card.json holds it.

    Raises:
        PlanishError: the folder cannot be written, is in use, or was built otherwise.
    """
    arrow()
    with ours(folder):
        manifest = _manifest(folder, plan)
        wanted = [p for p in plan.packages if not manifest.is_done(key_of(p.kind, p.name))]
        known = len(plan.packages) - len(wanted)
        held = sum(entry.functions for entry in manifest.done())
        status = BuildStatus(len(plan.packages), known, held)
        display.begin(status)
        (folder / CARD).unlink(missing_ok=True)  # until all is there again
        if wanted:
            _work(folder, plan, wanted, manifest, status, display)
        deduplicate(folder, manifest.done())
        return write_card(folder, manifest, plan.command)


def _work(
    folder: Path,
    plan: BuildPlan,
    wanted: Sequence[Package],
    manifest: Manifest,
    status: BuildStatus,
    display: ProgressDisplay,
) -> None:
    compiler = plan.recipe.compiler
    system = compiler.header_folders() if compiler else []
    sources = folder.resolve() / SOURCES
    pipeline = Pipeline(plan.recipe, system, sources, plan.jobs or usable_cores())
    with closing(pipeline.run(wanted)) as passages:
        for passage in passages:
            status.item = passage.package.name
            if passage.is_over:
                entry = _keep(folder, passage)
                manifest.entries[entry.key] = entry
                write_manifest(manifest, folder)
                _count(status, entry, display)
                if not plan.keep_sources:
                    shutil.rmtree(sources / entry.key, ignore_errors=True)
            display.update()
    if not plan.keep_sources:
        shutil.rmtree(sources, ignore_errors=True)


def _count(status: BuildStatus, entry: PackageEntry, display: ProgressDisplay) -> None:
    status.done += 1
    status.functions += entry.functions
    if entry.state == "failed":
        status.failed += 1
        display.log(f"{entry.package}: {entry.reason}")
    elif not entry.functions:
        reason = next(iter(entry.failures), "it has no C files")
        display.log(f"{entry.package}: no functions ({reason})")


def _keep(folder: Path, passage: Passage) -> PackageEntry:
    """Write a package's shard."""
    package, crop = passage.package, passage.crop()
    if passage.error:
        return PackageEntry(package.kind, package.name, "failed", reason=passage.error)
    rows = _rows(passage, crop.found)
    write_rows(rows, folder / RAW / f"{key_of(package.kind, package.name)}.parquet")
    # Without the location, which the reason begins with.
    reasons = Counter(reason.rpartition(": ")[2] for _, reason in crop.failures)
    return PackageEntry(
        package.kind,
        package.name,
        "done",
        version=passage.version,
        files=crop.files,
        failed_files=len(crop.failures),
        failures=dict(reasons.most_common(_REASONS)),
        found=len(crop.found),
        functions=len(rows),
        left_out=dict(crop.left_out),
        seconds=round(passage.seconds, 2),
    )


def _rows(passage: Passage, found: Sequence[Found]) -> list[Row]:
    """Make rows of the different functions; the first location keeps a function."""
    package, first = passage.package, {function.identity: function for function in reversed(found)}
    counts = Counter(function.identity for function in found)
    return [
        Row(
            **asdict(first[identity]),
            package=package.name,
            version=passage.version,
            kind=package.kind,
            split=split_of(package.kind, package.name),
            chars=len(first[identity].ir),
            duplicates=count - 1,
        )
        for identity, count in counts.items()
    ]


def _manifest(folder: Path, plan: BuildPlan) -> Manifest:
    """Read the manifest, which must fit the plan, or begin one."""
    compiler = plan.recipe.compiler
    recipe: dict[str, Any] = {
        "llvm": plan.llvm,
        "compiler": f"{compiler.name} {compiler.version}" if compiler else "",
        "max_chars": plan.recipe.max_chars,
        "alignment": plan.recipe.alignment,
        "noundef": plan.recipe.noundef,
    }
    manifest = read_manifest(folder)
    if manifest is None:
        return Manifest(recipe)
    for name, now in recipe.items():
        then = manifest.recipe.get(name)
        if then != now and "" not in (then, now):  # empty: nothing was compiled
            what = f"{folder} was built with {name} {then!r}, and now it is {now!r}"
            raise PlanishError(what, "Build in another folder, or with the same.")
    return Manifest(
        {**recipe, "compiler": recipe["compiler"] or manifest.recipe["compiler"]}, manifest.entries
    )
