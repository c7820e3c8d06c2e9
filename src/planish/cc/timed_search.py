"""The search for faster objects of a program that is linked of several."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic

from planish.cc.compiler import Compiler
from planish.cc.improving import code_of
from planish.cc.link_parts import LinkPart, exchanged, without_output
from planish.cc.timed_unit import TimedUnit
from planish.core import Objective
from planish.llvm.backend.elf import function_bytes
from planish.llvm.execution import OBJECTS, PROGRAM, LinkCommand
from planish.llvm.hot.bench import Bench, answer_of, judged
from planish.llvm.hot.search import HOT, HotSearch, compared
from planish.llvm.hot.versions import PreparedProgram
from planish.llvm.modules import Memory
from planish.llvm.program import Running, running_by
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
        """Give the hot functions of objects, the hottest object first; a name of two may be of either."""
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
