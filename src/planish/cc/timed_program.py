"""Search for faster objects of a program that was linked of several, which is run as the user says."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from planish.cc.clang import Compiler, run
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest, note, refused
from planish.cc.optimize import FunctionMemory, Removed, SearchError, check_version, code_of
from planish.cc.settings import CompileSettings, UsageError
from planish.cc.timed_objects import LinkPart, TimedUnit, exchanged, link_parts, read_unit, without_output
from planish.core import Objective, PlanishError
from planish.core.cores import usable_cores
from planish.levels.llvm.backend.elf import function_bytes
from planish.levels.llvm.execution import OBJECTS, PROGRAM, LinkCommand
from planish.levels.llvm.hot.bench import Bench, answer_of, judged
from planish.levels.llvm.hot.search import HOT, HotSearch, compared
from planish.levels.llvm.hot.versions import PreparedProgram
from planish.levels.llvm.modules import Memory
from planish.levels.llvm.modules.budget import processor_s
from planish.levels.llvm.program import Running, running_by
from planish.sandbox.scratch import Scratch

_TIME = Objective("time_s", "s")


@dataclass(frozen=True)
class FasterObject:
    """An object that makes a program faster.

    Args:
        part: which it replaces.
        source: what it is made of.
        functions: of another list than -O3's, with the share of the time and the pipeline.
        ratio: the program's time over that with clang's object: with the ends of its interval.
        baseline_s: what a run took.
        code: the object.
    """

    part: LinkPart
    source: str
    functions: tuple[tuple[str, float, str], ...]
    ratio: tuple[float, float, float]
    baseline_s: float
    code: bytes = field(repr=False)

    def told(self) -> dict[str, object]:
        """Tell all but the code, as JSON has it."""
        return {
            "source": self.source,
            "functions": self.functions,
            "ratio": self.ratio,
            "baseline_s": self.baseline_s,
        }


def read_running(run: str) -> Running:
    """Read how a program is run; files that are named are those of this folder, wherever it is run.

    Raises:
        ProgramError: it cannot be read.
    """
    running = running_by({"run": run if len(run.split()) > 1 else ""}, Running()) or Running()
    args = (os.path.abspath(word) if os.path.exists(word) else word for word in running.args)
    return replace(running, args=tuple(args))


@dataclass
class TimedSearch:
    """Finds objects that make a program faster, one after the other, the hottest first.

    Each is measured in the program that has those that were found before it, beside clang's object.

    Args:
        compiler: makes code, and links.
        words: that link the program.
        units: objects, and what they were made of.
        running: how the program is run.
        scratch: where objects are written that are found.
        remember: keeps the lists of functions.
    """

    compiler: Compiler
    words: list[str]
    units: Mapping[LinkPart, TimedUnit]
    running: Running
    scratch: Scratch
    remember: Memory
    _kept: dict[LinkPart, str] = field(default_factory=dict[LinkPart, str])

    def run(self, seconds: float) -> list[FasterObject]:
        """Search; the comparisons at the end of each object's search come on top.

        Raises:
            PlanishError: the program cannot be run, its answers differ, or LLVM does not survive it.
            SearchError: clang makes no code of what is found.
        """
        over = monotonic() + seconds
        counts = self._bench(next(iter(self.units))).sampled()
        hot = self._hot(counts)
        found: list[FasterObject] = []
        left = sum(own.total() for own in hot.values())
        for part, own in hot.items():
            now = monotonic()
            # By how hot they are; what one leaves of its time is shared by those after it.
            given, left = max(over - now, 0.0) * own.total() / left, left - own.total()
            found += self._faster(part, own, counts.total(), given)
        return found

    def _hot(self, counts: Counter[str]) -> dict[LinkPart, Counter[str]]:
        """Return the hot functions of objects, the hottest object first; a name of two may be of either."""
        names = {part: set(function_bytes(part.code)) for part in self.units}
        owners = Counter(name for each in names.values() for name in each)
        own = {
            part: Counter(
                {
                    name: count
                    for name, count in counts.items()
                    if name in each and owners[name] == 1 and count >= HOT * counts.total()
                }
            )
            for part, each in names.items()
        }
        return dict(sorted(((part, each) for part, each in own.items() if each), key=_coldness))

    def _bench(self, part: LinkPart) -> Bench:
        words = without_output(exchanged(self.words, {**self._kept, part: OBJECTS}))
        reads = ("/",)  # wherever its objects, libraries and files are
        link = LinkCommand(tuple(self.compiler.command), (*words, "-o", PROGRAM, "-Qunused-arguments"), reads)
        answer = answer_of(self.running, part.code, part.code, link)
        return Bench(self.running, part.code, answer, link)

    def _faster(
        self, part: LinkPart, own: Counter[str], total: int, seconds: float
    ) -> Iterator[FasterObject]:
        """Search for one object; give it where it makes the program clearly faster."""
        unit, bench, began = self.units[part], self._bench(part), monotonic()
        search = HotSearch(
            PreparedProgram.of(unit.bitcode), bench, began, began + seconds, None, None, self.remember
        )
        for name in search.hot(own):
            search.choose(name)
        search.go_on(random.Random(0))
        best = search.finish()
        if best is None:
            return
        code = code_of(self.compiler, unit.options, best.bitcode, self.scratch)
        times = compared(bench, code)
        ratio = judged(times) if times else None
        if ratio is None or ratio.verdict(_TIME) != "better":
            return
        path = self.scratch.path / f"kept-{len(self._kept)}.o"
        path.write_bytes(code)
        self._kept[part] = str(path)
        lists = dict(search.lists_by_function())
        functions = tuple((name, own[name] / total, lists[name]) for name in lists)
        three = ratio.value, ratio.low, ratio.high
        yield FasterObject(part, unit.source, functions, three, times[0].median_s, code)


def _coldness(row: tuple[LinkPart, Counter[str]]) -> int:
    return -row[1].total()


_KIND = "programs"


def speed_up_program(
    compiler: Compiler, words: list[str], program: str, settings: CompileSettings, cache: ObjectCache
) -> None:
    """Exchange objects of a program for faster ones, and link it again.

    Args:
        compiler: that linked it.
        words: by which it was linked.
        program: it.
        settings: how it is run, and how long may be searched.
        cache: has what its objects were made of, and keeps what is found.

    Raises:
        UsageError: that cannot be done, and has to be (--planish-strict).
    """
    began = monotonic()
    try:
        how, text, objects = _found(compiler, words, settings, cache)
        _link_again(compiler, words, program, objects)
    except (SearchError, PlanishError, OSError) as error:
        _fall_back(program, settings, " ".join(str(error).split()).rstrip("."))
        return
    note(cache, settings, program, program, how, text, monotonic() - began)


def _fall_back(program: str, settings: CompileSettings, why: str) -> None:
    try:
        settings.fall_back(f"{program}: {why}")
    except UsageError:
        Path(program).unlink(missing_ok=True)  # or the next make would take it for made
        raise


def _found(
    compiler: Compiler, words: list[str], settings: CompileSettings, cache: ObjectCache
) -> tuple[str, bytes, dict[LinkPart, bytes]]:
    """Return how it was found, what is told of it, and the objects that are faster."""
    parts = link_parts(words)
    running = read_running(settings.run)
    units = {part: unit for part in parts if (unit := read_unit(cache, part.name))}
    made_of = {part: unit.key for part, unit in units.items()}
    key = digest(
        compiler.identity.encode(),
        os.fsencode("\0".join(without_output(words))),
        *(f"{part.name} {made_of.get(part, '')}".encode() for part in parts),
        running.text.encode("latin-1", "backslashreplace"),
    )
    known = _known(cache, key, parts, settings.program_seconds)
    if known is not None:
        return "known", *known
    if not settings.program_seconds:
        return "clang", refused("there is no time to search in"), {}
    if not units:
        raise SearchError(
            "it is not known what its objects were made of: build them by planish cc too, and no two the same"
        )
    check_version(compiler)
    began, used, scratch = monotonic(), processor_s(), Scratch()
    with closing(Removed(scratch)):
        search = TimedSearch(compiler, words, units, running, scratch, FunctionMemory(cache))
        found = search.run(settings.program_seconds)
    had = _had(settings.program_seconds, monotonic() - began, processor_s() - used)
    before = _record(cache, key)
    if had < settings.program_seconds and before:  # load may last: builds add up what they have
        had = min(settings.program_seconds, had + json.loads(before[1])["seconds"])
    about = {
        "faster": [each.told() for each in found],
        "run": settings.run,
        "seconds": had,
        "search_s": round(monotonic() - began, 3),
    }
    return "searched", _keep(cache, key, about, found), {each.part: each.code for each in found}


def _had(seconds: float, passed: float, used: float) -> float:
    """Return the seconds that a search had: those of the processor where a loaded machine cut it short.

    Args:
        seconds: that it was given, by the clock.
        passed: that it took.
        used: of the processor.
    """
    # On a machine that is not loaded, it is the program that waits for something.
    is_loaded = os.getloadavg()[0] > usable_cores()
    return used if passed >= seconds > 2 * used and is_loaded else seconds


def _keep(cache: ObjectCache, key: str, about: Mapping[str, object], found: list[FasterObject]) -> bytes:
    kept = {each.part.name: digest(key.encode(), each.part.name.encode()) for each in found}
    text = json.dumps(about).encode()
    # The objects first, so that what names them is never there without them.
    for each in found:
        cache.put(kept[each.part.name], CachedObject(float("inf"), 0, b"", each.code, has_diagnostics=False))
    data = json.dumps(kept).encode() + b"\n" + text
    cache.put_plain(_KIND, key, digest(data).encode() + b"\n" + data)
    return text


def _known(
    cache: ObjectCache, key: str, parts: list[LinkPart], seconds: float
) -> tuple[bytes, dict[LinkPart, bytes]] | None:
    """Return what was found before by a search as long; None where there was none, or it is damaged."""
    record = _record(cache, key)
    if record is None:
        return None
    kept, text = record
    objects: dict[LinkPart, bytes] = {}
    for name, place in json.loads(kept).items():
        part, entry = next((each for each in parts if each.name == name), None), cache.get(place)
        if part is None or entry is None:
            return None
        objects[part] = entry.code
    return (text, objects) if json.loads(text)["seconds"] >= seconds else None


def _record(cache: ObjectCache, key: str) -> tuple[bytes, bytes] | None:
    """Return which objects a search found, and its report, both as JSON; None: there is no whole record."""
    check, _, data = (cache.read(_KIND, key) or b"").partition(b"\n")
    if not data or digest(data).encode() != check:
        return None
    kept, _, text = data.partition(b"\n")
    return kept, text


def _link_again(compiler: Compiler, words: list[str], program: str, objects: dict[LinkPart, bytes]) -> None:
    """Put the faster program in its place, whole."""
    if not objects:
        return
    scratch = Scratch()
    with closing(Removed(scratch)):
        others: dict[LinkPart, str] = {}
        for number, (each, code) in enumerate(objects.items()):
            path = scratch.path / f"{number}.o"
            path.write_bytes(code)
            others[each] = str(path)
        # Not beside the program: a linker that outlives an interrupt would leave a file there.
        made = scratch.path / "program"
        command = [*without_output(exchanged(words, others)), "-o", str(made), "-Qunused-arguments"]
        ended = run([*compiler.command, *command])
        if ended.code:
            raise SearchError("clang does not link what was found")
        atomic_write(program, made.read_bytes(), 0o777)
