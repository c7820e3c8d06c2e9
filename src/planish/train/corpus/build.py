"""Builder of corpora: its worker processes, and the build, which resumes where it was interrupted."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from planish.core import PlanishError, ProgramError, cache_folder, usable_cores
from planish.sandbox.fork_pool import Done, ForkLimits, ForkPool, Watchdog
from planish.sandbox.scratch import is_no_room
from planish.train.corpus.programs import csmith_version, find_csmith, open_apt, unknown_packages
from planish.train.corpus.reader import CARD, write_card
from planish.train.corpus.shards import (
    KINDS,
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
from planish.train.corpus.sources import (
    DebianPackage,
    IRFiles,
    Package,
    Prepared,
    RandomPrograms,
    SourceFolder,
)
from planish.train.corpus.unit import CorpusRecipe, Crop, Found, SourceUnit, harvest
from planish.tuning.progress import ProgressDisplay, Status

_FILES_AT_ONCE = 8  # few enough that Ctrl-C is quick, many enough that sending them costs nothing
_PREPARED = 2  # packages that are prepared before a worker needs them
_TICK_S = 0.5
_LIMITS = ForkLimits(memory_bytes=0)  # compilers have limits of their own


@dataclass(eq=False)
class Passage:
    """Progress of a package through the workers.

    Args:
        package: it.
        version: of its sources.
        parts: what came of its files: by their order, as far as it is there.
        missing: how many parts are not there yet; None while it is prepared.
        error: why it cannot be had; empty where it can.
        begun: when, by the monotonic clock.
    """

    package: Package
    version: str = ""
    parts: dict[int, Crop] = field(default_factory=dict[int, Crop])
    missing: int | None = None
    error: str = ""
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Return the seconds since it was begun."""
        return time.monotonic() - self.begun

    @property
    def is_over(self) -> bool:
        """Return whether nothing more will come."""
        return bool(self.error) or self.missing == 0

    def crop(self) -> Crop:
        """Put the parts together, in the order of the files."""
        whole = Crop()
        for part in sorted(self.parts):
            whole.add(self.parts[part])
        return whole


@dataclass(frozen=True, eq=False)
class _Job:
    """Unit of work: to prepare a package, or to compile some of its files.

    Args:
        passage: of the package.
        index: of these files among all; 0 where it is prepared.
        units: the files; None where it is prepared.
    """

    passage: Passage
    index: int = 0
    units: Sequence[SourceUnit] | None = None


@dataclass(frozen=True)
class Pipeline:
    """Pipeline by which packages are prepared and compiled.

    Args:
        recipe: how functions are made.
        system: where the compiler's own headers are.
        sources: a folder for packages' files.
        jobs: how many processes.
    """

    recipe: CorpusRecipe
    system: Sequence[Path]
    sources: Path
    jobs: int

    def run(self, packages: Sequence[Package]) -> Generator[Passage]:
        """Work on packages, and yield each when it is over; one at which a worker dies is given up.

        Yields:
            A passage that is over; or one that is not, when there is news or half a second has passed.

        Raises:
            OSError: the disk is full.
        """
        waiting, under_way = deque(packages), list[Passage]()
        with closing(ForkPool(self._work, Prepared | Crop | str, self.jobs, limits=_LIMITS)) as pool:
            while waiting or under_way:
                while waiting and len(under_way) < self.jobs + _PREPARED:
                    under_way.append(Passage(waiting.popleft()))
                    pool.add([_Job(under_way[-1])])
                for done in pool.over(_TICK_S):
                    passage = done.item.passage
                    if passage not in under_way:  # another job of it has failed
                        continue
                    pool.add(_taken(done))
                    if passage.is_over:
                        under_way.remove(passage)
                    yield passage
                yield from under_way[:1]

    def _work(self, job: _Job, _: Watchdog) -> Prepared | Crop | str:
        """Return the result of a job, or why there is none; in a worker."""
        package = job.passage.package
        try:
            if job.units is not None:
                return harvest(job.units, self.recipe)
            return package.prepare(self.sources / key_of(package.kind, package.name), self.system)
        except PlanishError as error:  # of this package alone
            return error.message
        except OSError as error:
            if is_no_room(error):
                raise
            return str(error)


def _taken(done: Done[_Job, Prepared | Crop | str]) -> Sequence[_Job]:
    """Take what came of a job; return the jobs that follow from it."""
    job, passage = done.item, done.item.passage
    match done.answer:
        case Prepared(version, units):
            starts = range(0, len(units), _FILES_AT_ONCE)
            passage.version, passage.missing = version, len(starts)
            some = [units[start : start + _FILES_AT_ONCE] for start in starts]
            return [_Job(passage, index, each) for index, each in enumerate(some)]
        case Crop() as crop:
            assert passage.missing is not None
            passage.parts[job.index] = crop
            passage.missing -= 1
        case why:
            passage.error = why or "a worker died of it"
    return ()


STANDARD = "standard"
_STANDARD_FILE = Path(__file__).parent / "packages.json"
_BATCH = 250  # random programs that make a package, which is done or not done
_IR_SUFFIXES = (".ll", ".bc")


@dataclass(frozen=True)
class CorpusRequest:
    """Request for a corpus: its sources and options.

    Args:
        debian: source packages that must exist.
        lists: files that name source packages, or "standard"; what does not exist is left out.
        folders: of C files.
        ir: files of LLVM IR, or folders of such.
        csmith: how many random programs; each has about six functions.
        seed: of the first one.
    """

    debian: Sequence[str] = ()
    lists: Sequence[str] = ()
    folders: Sequence[Path] = ()
    ir: Sequence[Path] = ()
    csmith: int = 0
    seed: int = 1


def packages_of(request: CorpusRequest, note: Callable[[str], None]) -> list[Package]:
    """Find all that is asked for.

    Args:
        request: what is asked for.
        note: takes a line for each package of a list that does not exist.

    Raises:
        PlanishError: something does not exist, has the name of another, or nothing is asked for.
    """
    found: list[Package] = [
        *_debian(request, note),
        *map(_source_folder, request.folders),
        *_ir(request.ir),
        *_random(request.csmith, request.seed),
    ]
    if not found:
        raise PlanishError(
            "nothing to make a corpus of",
            f"Name packages, folders or files, or the list of packages {STANDARD}.",
        )
    for first, second in zip(ordered := sorted(found, key=_order), ordered[1:], strict=False):
        if _order(first) == _order(second):
            what = f"two sources are called {first.name}"
            raise PlanishError(what, "Rename one of the folders, or leave it out.")
    return found


def standard_packages() -> dict[str, Any]:
    """Read the shipped list of source packages.

    Returns:
        "packages": name to how many different functions it had; and "macros": name to what its own build
        would define.
    """
    return json.loads(_STANDARD_FILE.read_text())


def _order(package: Package) -> tuple[int, str]:
    return KINDS.index(package.kind), package.name


def _debian(request: CorpusRequest, note: Callable[[str], None]) -> list[Package]:
    listed = [name for named in request.lists for name in _listed(named)]
    wanted = dict.fromkeys([*request.debian, *listed])
    if not wanted:
        return []
    apt = open_apt(cache_folder("apt"))
    unknown = unknown_packages(apt, wanted)
    for name in request.debian:
        if name in unknown:
            raise PlanishError(f"no source package is called '{name}'", unknown[name])
    for name in unknown:
        note(f"{name}: no source package is called so; left out")
    macros = standard_packages()["macros"]
    return [DebianPackage(name, apt, macros.get(name, ())) for name in wanted if name not in unknown]


def _listed(named: str) -> Iterable[str]:
    """Read a list: names, with comments after `#`."""
    if named == STANDARD:
        return standard_packages()["packages"]
    try:
        lines = Path(named).read_text().splitlines()
    except OSError as error:
        what = f"the list {named} cannot be read: {error.strerror or error}"
        raise PlanishError(what, f"Name a file, or '{STANDARD}'.") from error
    return [name for line in lines for name in line.partition("#")[0].split()]


def _source_folder(path: Path) -> SourceFolder:
    if not path.is_dir():
        raise ProgramError(f"{path} is not a folder", "Name a folder of C files.")
    return SourceFolder(path.resolve().name, path)


def _ir(paths: Sequence[Path]) -> list[Package]:
    """Make a package of the files of each folder."""
    files: dict[Path, list[Path]] = {}
    for path in paths:
        if not path.exists():
            raise ProgramError(f"{path} does not exist", "Name files of LLVM IR: .ll or .bc.")
        some = sorted(p for p in path.rglob("*") if p.suffix in _IR_SUFFIXES) if path.is_dir() else [path]
        for file in some:
            if file.suffix not in _IR_SUFFIXES:
                raise ProgramError(f"{file} is not LLVM IR", "Name files of LLVM IR: .ll or .bc.")
            files.setdefault((path if path.is_dir() else path.parent).resolve(), []).append(file)
    return [IRFiles(folder.name, some) for folder, some in files.items()]


def _random(count: int, seed: int) -> list[Package]:
    if not count:
        return []
    program, headers = find_csmith()
    version = csmith_version(program)
    batches = ((first, min(_BATCH, seed + count - first)) for first in range(seed, seed + count, _BATCH))
    return [
        RandomPrograms(f"seeds-{first}-{first + size - 1}", program, headers, version, first, size)
        for first, size in batches
    ]


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
        """Functions made in a second."""
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
