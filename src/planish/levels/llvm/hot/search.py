"""Search for a faster program, a list for each hot function, and the export of its result."""

from __future__ import annotations

import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from planish.core import Objective, PlanishError, ProgramError, Ratio, TargetError, Verdict
from planish.core.hashing import content_hash
from planish.levels.llvm.hot.bench import Bench, Times, answer_of, judged
from planish.levels.llvm.hot.versions import (
    BEGIN,
    LAST,
    USUAL,
    HotBuild,
    Lists,
    Parts,
    PreparedProgram,
    drawn,
    first_lists,
    make,
    pipeline,
)
from planish.levels.llvm.ir.attributes import without_optnone
from planish.levels.llvm.modules.export import BegunNames, begun_names, write_module, write_script
from planish.levels.llvm.modules.results import Memory, ModuleRecipe
from planish.levels.llvm.modules.transform import whole_backend
from planish.levels.llvm.program import IRProgram
from planish.sandbox import ExitStatus, in_child


@dataclass(frozen=True)
class HotFunction:
    """A function in which a program spends time.

    Args:
        name: as the module calls it; empty: code that is not of the module.
        share: of the samples.
        tried: lists that were run on it; 0: it is not hot enough, or there was no time.
        passes: the pipeline that it has of its own; empty: that of -O3.
    """

    name: str
    share: float
    tried: int = 0
    passes: str = ""


@dataclass(frozen=True)
class HotProgress:
    """How far a search has come.

    Args:
        seconds: since its beginning.
        tried: lists that were measured.
        ratio: of the best time to that of -O3, as far as is known.
    """

    seconds: float
    tried: int
    ratio: float


@dataclass(frozen=True)
class RuntimeResult:
    """A program made faster, or left as -O3 makes it.

    Args:
        made: its object, and the module that it is made of.
        recipe: how it is made of the unoptimised module.
        baseline_s: what a run takes by -O3.
        ratio: time over -O3's, measured in turns in fresh processes; None: nothing was found to compare.
        verdict: what that says; only what is `better` is kept.
        functions: where the time goes with -O3, most first.
        samples: how many were taken.
        tried: lists that were measured.
        seconds: that it took.
    """

    made: HotBuild
    recipe: ModuleRecipe
    baseline_s: float
    ratio: Ratio | None
    verdict: Verdict
    functions: tuple[HotFunction, ...]
    samples: int
    tried: int
    seconds: float

    @property
    def verdict_word(self) -> str:
        """The verdict in the words of times."""
        return {"better": "faster", "worse": "slower"}.get(self.verdict, self.verdict)


HOT = 0.04
"""Functions with a smaller share of the time are left as -O3 has them."""
_MOST_HOT = 8
O3 = "default<O3>"
_TIME = Objective("time_s", "s")
_TIMED_S, _AGAIN_S, _FINAL_S = 0.4, 0.8, 1.0
_LESS = 0.99
"""What is to be kept takes so much of the time of the best so far, at most, in two measurements."""
_PROCESSES = (5, 10)


def optimize_runtime(
    program: IRProgram,
    seconds: float = 20.0,
    trials: int | None = None,
    progress: Callable[[HotProgress], None] | None = None,
    seed: int = 0,
    remember: Memory | None = None,
) -> RuntimeResult:
    """Make a program faster than -O3 does, on its input.

    It is sampled first. Then other lists are run on each function that is hot, one at a time and hottest
    first, in place of what -O3 runs once functions are inlined; each version's answer is compared with the
    unoptimised program's, and the whole program is measured in turns with -O3. At the end the best is
    measured again in fresh processes.

    Args:
        program: with a `main`, as clang gives it to the passes of -O3.
        seconds: to search; the comparison at the end takes at most as long again, and 5 s at least.
        trials: lists that are measured at most; None: as many as there is time for.
        progress: is told now and then how far it has come.
        seed: of lists that are drawn.
        remember: keeps the lists that made functions faster, which are tried first the next time.

    Returns:
        The program; that of -O3 where nothing is clearly faster.

    Raises:
        ProgramError: it has no `main`, cannot be run, or gives different answers.
        TargetError: no LLVM here can do it.
    """
    if not program.can_run or program.running is None:
        raise ProgramError(
            f"{program.title} has no 'main' that could be timed",
            "Give one that calls it: --option harness=FILE.c.",
        )
    if not whole_backend().runs(f"{BEGIN},{pipeline(USUAL)}"):
        version = whole_backend().version
        raise TargetError(f"LLVM {version} lacks passes of -O3 that this needs", "Install LLVM 22.")
    began = time.monotonic()
    ir = without_optnone(program.ir)
    # The answer to hold is the unoptimised program's: -O3 is the rival, and might be wrong itself.
    base, reference = make(ir, ModuleRecipe(O3, (), "")), make(ir, ModuleRecipe("", (), ""))
    bench = Bench(program.running, base.code, answer_of(program.running, reference.code, base.code))
    counts = bench.sampled()
    search = HotSearch(PreparedProgram.of(ir), bench, began, began + seconds, trials, progress, remember)
    for name in search.hot(counts):
        search.choose(name)
    search.go_on(random.Random(seed))
    best = search.finish()
    times = compared(bench, best.code) if best else []
    ratio = judged(times) if times else None
    verdict = ratio.verdict(_TIME) if ratio else "same"
    # Nothing is kept on a tie: the luckiest of many versions often looks a little faster.
    kept = best if verdict == "better" else None
    return RuntimeResult(
        kept or base,
        search.recipe() if kept else ModuleRecipe(O3, (), ""),
        times[0].median_s if times else bench.expected.seconds,
        ratio,
        verdict,
        tuple(search.shares(counts, kept=kept is not None)),
        counts.total(),
        search.tried.total(),
        time.monotonic() - began,
    )


def compared(bench: Bench, code: bytes) -> list[Times]:
    """Measure a version in fresh processes: five, or ten where those leave it open; none where one fails."""
    found: list[Times] = []
    for processes in _PROCESSES:
        while len(found) < processes:
            times = bench.beside(code, _FINAL_S, patient=True)
            if times is None:
                return []
            found.append(times)
        if judged(found).conclusive:
            break
    return found


@dataclass
class HotSearch:
    """Finds a list for each hot function.

    Args:
        begun: the module.
        bench: measures versions of it.
        began: when the whole began.
        over: when it shall be over.
        trials: lists that may be measured; None: any number.
        progress: is told how far it has come.
        remember: keeps lists that were good.
    """

    begun: PreparedProgram
    bench: Bench
    began: float
    over: float
    trials: int | None
    progress: Callable[[HotProgress], None] | None
    remember: Memory | None = None
    lists: dict[str, Parts] = field(default_factory=dict[str, Parts])
    tried: Counter[str] = field(default_factory=Counter[str])
    ratio: float = 1.0
    _seen: set[bytes] = field(default_factory=set[bytes])
    _ready: tuple[str, PreparedProgram | None] = ("", None)
    _names: list[str] = field(default_factory=list[str])

    def hot(self, counts: Counter[str]) -> list[str]:
        """Name the functions of the module in which it spends its time, the hottest first."""
        least = HOT * counts.total()
        hot = [name for name, count in counts.most_common() if count >= least and name in self.begun.names]
        return hot[:_MOST_HOT]

    def recipe(self) -> ModuleRecipe:
        """Return the recipe of the best version."""
        return ModuleRecipe(BEGIN, self._lists(), LAST)

    def finish(self) -> HotBuild | None:
        """Make the best version by its recipe; None: there is none."""
        return self.begun.finished(self.recipe()) if self.lists else None

    def _lists(self, without: str = "") -> Lists:
        """Return what is run on the functions, apart from one."""
        lists = {name: parts for name, parts in self.lists.items() if name != without}
        own = tuple((pipeline(parts), (name,)) for name, parts in lists.items())
        others = tuple(name for name in self.begun.names if name not in lists and name != without)
        return (*own, (pipeline(USUAL), others)) if others else own

    def lists_by_function(self) -> dict[str, str]:
        """Return the pipeline of each function that has one of its own."""
        return {name: pipeline(parts) for name, parts in self.lists.items()}

    def choose(self, name: str) -> None:
        """Try what was good for this function before, and what is worth trying on every hot function."""
        self._names.append(name)
        for parts in (*self._known(name), *first_lists()):
            self._try(name, parts)

    def _known(self, name: str) -> Iterator[Parts]:
        text = self.remember.get(self._key(name)) if self.remember is not None else None
        with suppress(ValueError, TypeError):
            parts = tuple(map(str, json.loads(text))) if text else ()
            if parts and whole_backend().runs(pipeline(parts)):
                yield parts

    def _key(self, name: str) -> str:
        return content_hash(f"{whole_backend().version} time_s {self.begun.identities[name]}")

    def go_on(self, rng: random.Random) -> None:
        """Try what is drawn, on hotter functions more often, until the time is over."""
        while self._names and self._has_left():
            # Each half as often as the one before: what is hotter has more to gain.
            name = next((each for each in self._names if rng.random() < 0.5), self._names[0])
            self._try(name, drawn(rng.choice((USUAL, self.lists.get(name, USUAL))), rng))

    def shares(self, counts: Counter[str], *, kept: bool) -> Iterator[HotFunction]:
        """List where the time goes, and what was done about it."""
        for name, count in counts.most_common():
            own = pipeline(self.lists[name]) if kept and name in self.lists else ""
            yield HotFunction(name, count / counts.total(), self.tried[name], own)

    def _try(self, name: str, parts: Parts) -> None:
        if not self._has_left():
            return
        made = self.version(name, parts)
        # By its code: many lists make the same, and timing is what takes the time.
        if made is None or made.code in self._seen:
            return
        self._seen.add(made.code)
        self.tried[name] += 1
        if self._is_faster(made.code):
            self.lists[name] = parts
            if self.remember is not None:  # at once: a search that is interrupted is not lost
                self.remember.put(self._key(name), json.dumps(parts))
        if self.progress:
            self.progress(HotProgress(time.monotonic() - self.began, self.tried.total(), self.ratio))

    def version(self, name: str, parts: Parts) -> HotBuild | None:
        """Make the program with a list on one function, the others at their best; None: LLVM refuses."""
        begun = self._around(name)
        return begun and begun.finished(ModuleRecipe("", ((pipeline(parts), (name,)),), LAST))

    def _around(self, name: str) -> PreparedProgram | None:
        """Return the module in which all other functions are done; it is kept while one function is tuned."""
        if self._ready[0] != name:
            # What comes before this function's list is the same for each of its lists.
            self._ready = name, self.begun.after(self._lists(name))
        return self._ready[1]

    def _has_left(self) -> bool:
        tried = self.trials is None or self.tried.total() < self.trials
        return tried and time.monotonic() < self.over

    def _is_faster(self, code: bytes) -> bool:
        """Return whether it is faster than the best, in two measurements: one may have been lucky."""
        worst = 0.0
        for seconds in (_TIMED_S, _AGAIN_S):
            times = self.bench.beside(code, seconds)
            worst = max(worst, judged([times]).value if times else math.inf)
            # The worse of both counts, and a single bad one ends it: most lists are no gain, and cost one
            # short look.
            if worst > self.ratio * _LESS:
                return False
        self.ratio = worst
        return True


Answer = TypeVar("Answer")


def export_program(program: IRProgram, faster: RuntimeResult, folder: Path) -> Sequence[Path]:
    """Write a program before and after, its bitcode and object, a manifest, and a script that repeats it.

    Args:
        program: that was made faster.
        faster: what came of it.
        folder: made where it is missing.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM does not survive it.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ir = without_optnone(program.ir)
    text, names = _survived(partial(_text, faster.made.bitcode), str), partial(begun_names, ir, faster.recipe)
    write_script(faster.recipe, _survived(names, BegunNames), folder)
    return write_module(folder, ir, text, faster.made.bitcode, faster.made.code, manifest(faster))


def manifest(faster: RuntimeResult) -> dict[str, object]:
    """Tell all of a result but its code, as JSON has it."""
    return {
        "llvm": whole_backend().version,
        "baseline_s": faster.baseline_s,
        "ratio": asdict(faster.ratio) if faster.ratio else None,
        "verdict": faster.verdict_word,
        "functions": [asdict(each) for each in faster.functions],
        "samples": faster.samples,
        "tried": faster.tried,
        "seconds": faster.seconds,
        "recipe": asdict(faster.recipe),
    }


def _survived(work: Callable[[], Answer], answer: type[Answer]) -> Answer:
    found = in_child(work, answer)
    if isinstance(found, ExitStatus):
        raise PlanishError(f"LLVM does not survive what it did before: {found.detail}")
    return found


def _text(bitcode: bytes) -> str:
    with closing(whole_backend().parse(bitcode)) as module:
        return module.text()
