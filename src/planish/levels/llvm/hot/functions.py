"""Hot functions of a program: the sampler that finds them, and the space of their pass lists.

The program is run with a sampler linked to it, which notes ten thousand times a second, by signals of a
timer, in which function it is. Nothing is asked of the system: `perf` needs rights, and counters that virtual
machines lack.
"""

from __future__ import annotations

import random
import re
import struct
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import EMPTY_CONTEXT, Candidate, CanVaryParts, SearchContext
from planish.levels.llvm.bindings.elf import Range, function_ranges
from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.execution import NotRunnableError, RunAnswer, Runner, compile_harness
from planish.levels.llvm.function_steps import FunctionPasses
from planish.levels.llvm.hot.lists import USUAL, drawn, first_lists, passes_within, pipeline
from planish.levels.llvm.modules.stored_costs import plain_text
from planish.levels.llvm.passes.pipeline import candidate_of
from planish.levels.llvm.program import Harness

if TYPE_CHECKING:
    from numpy.random import Generator

    from planish.levels.llvm.program import IRProgram

ANCHOR = "planish_sampler"
SAMPLES = "planish-samples"
ELSEWHERE = "(libraries, the system)"
"""Stands for all code outside of the program's own functions."""
_ENOUGH = 400
_SAMPLING_S = 3.0
_SLOWER, _LEAST_S = 20.0, 2.0
"""Times that a program may run longer with the sampler, and seconds that it has at least."""


def sampled_seconds(
    runner: Runner, code: bytes, expected: RunAnswer, seconds: float, bindings: Bindings
) -> Mapping[str, float]:
    """Return the seconds that a program spends in each of its functions, the most first.

    Args:
        runner: links and runs it.
        code: its object.
        expected: its answer, and how long a run takes without the sampler.
        seconds: that a run takes.
        bindings: compiles the sampler.

    Raises:
        NotRunnableError: it cannot be run with the sampler.
    """
    source = (files("planish.levels.llvm.hot") / "sampler.c").read_text(encoding="utf-8")
    sampler = compile_harness(Harness("c", source), runner.compiler, bindings)
    found, end = Counter[str](), time.monotonic() + max(_SAMPLING_S, expected.seconds)
    with runner.executable(code, sampler) as path:
        while found.total() < _ENOUGH and time.monotonic() < end:
            runner.answer(path, max(_LEAST_S, _SLOWER * expected.seconds))
            notes = path.parent / SAMPLES
            if not notes.exists():
                raise NotRunnableError("it cannot be sampled here")
            found += counted(path, notes.read_bytes())
    return {name or ELSEWHERE: seconds * count / found.total() for name, count in found.most_common()}


def counted(program: Path, notes: bytes) -> Counter[str]:
    """Count samples by function; what is in none, as in a library, has the empty name."""
    ranges = sorted(function_ranges(program.read_bytes()), key=lambda each: each.start)
    anchor = next((each.start for each in ranges if each.name == ANCHOR), None)
    if anchor is None:
        return Counter()
    starts = [each.start for each in ranges]
    # By distances from a function of its own: a program may be loaded anywhere.
    addresses = (distance + anchor for (distance,) in struct.iter_unpack("=q", notes) if distance)
    return Counter(_function_at(ranges, starts, address) for address in addresses)


def _function_at(ranges: list[Range], starts: list[int], address: int) -> str:
    at = bisect_right(starts, address) - 1
    return ranges[at].name if at >= 0 and address < ranges[at].start + ranges[at].size else ""


HOT = 0.04
"""Functions with a smaller share of the time are left as -O3 has them."""
_MOST_HOT = 8
O3 = "default<O3>"
_FUNCTION = re.compile(r'^define [^\n]*?@("[^"]*"|[-\w$.]+)\(.*?^\}$', re.MULTILINE | re.DOTALL)


class HotFunctionSpace(CanVaryParts):
    """Candidates that run lists of their own on hot functions; the start is -O3.

    They are not shortened at the end of a run: each list was kept since it gained.

    Args:
        program: the module; a function is hot where it is defined there.
    """

    def __init__(self, program: IRProgram) -> None:
        self._program = program

    def start(self) -> Candidate:
        """Return -O3 for the whole module; of a linked program the object as the compiler made it."""
        return Candidate() if self._program.linked else candidate_of((O3,))

    def parts(self, measured: Mapping[str, float]) -> Sequence[str]:
        """List the hot functions of the module, the hottest first.

        Args:
            measured: seconds by function, of all that the program runs.
        """
        linked, least = self._program.linked, HOT * sum(measured.values())
        defined = linked.functions if linked else frozenset(self._program.definitions)
        hot = [name for name, value in measured.items() if name in defined and value >= least]
        return sorted(hot, key=lambda name: -measured[name])[:_MOST_HOT]

    def suggestions(
        self, candidate: Candidate, part: str, context: SearchContext = EMPTY_CONTEXT
    ) -> Sequence[Candidate]:
        """List what is worth trying on every hot function, after what was good for this one elsewhere."""
        lists = dict.fromkeys((*self._known(part, context), *map(pipeline, first_lists())))
        return [_with(candidate, part, text) for text in lists]

    def vary(self, candidate: Candidate, part: str, rng: Generator) -> Candidate:
        """Leave some passes out of a function's list, or of -O3's, and put others in."""
        own = _list_of(candidate, part)
        draws = random.Random(int(rng.integers(1 << 62)))
        chosen = draws.choice((USUAL, passes_within(own) if own else USUAL))
        return _with(candidate, part, pipeline(drawn(chosen, draws)))

    def _known(self, part: str, context: SearchContext) -> Iterator[str]:
        """Yield the lists that made an equal function of other programs faster, the best of each program."""
        own = _bodies(self._program.ir).get(part)
        for text, outcomes in context.history().items():
            if own is None or _bodies(text).get(part) != own:
                continue
            ratios = [(ratio, each) for each, ratio in outcomes if ratio is not None and ratio < 1]
            for _, each in sorted(ratios, key=lambda pair: pair[0]):
                if known := _list_of(each, part):
                    yield known
                    break


def _with(candidate: Candidate, part: str, text: str) -> Candidate:
    """Run a list on a function, instead of its own one; it comes last."""
    others = tuple(s for s in candidate.steps if isinstance(s, FunctionPasses) and s.functions != (part,))
    return Candidate((*others, FunctionPasses(text, (part,))))


def _list_of(candidate: Candidate, part: str) -> str:
    """Return the pipeline that a function has of its own; empty where it has none."""
    own = (s.pipeline for s in candidate.steps if isinstance(s, FunctionPasses) and s.functions == (part,))
    return next(own, "")


def _bodies(ir: str) -> Mapping[str, str]:
    """Return the functions of a module by name, without numbers that follow from the rest of the module."""
    return {found[1].strip('"'): plain_text(found[0]) for found in _FUNCTION.finditer(ir)}
