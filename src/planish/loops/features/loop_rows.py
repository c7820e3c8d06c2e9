"""Context features Z: one row for each loop of a candidate's annotated tree.

Counts are given as log2(1 + x), for what matters is by how many times one is larger; all else as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from planish.core import Machine
from planish.loops.features.decisions import Decision, Decisions
from planish.loops.features.touching import WORK, Visit, Visits
from planish.loops.ir.annotated import AnnotatedTree
from planish.loops.ir.tree import LoopTree
from planish.loops.lang.program import DTYPES

BUFFERS = 5
"""Buffers that a row tells of, in the order in which the heaviest leaf, and then the others, name them."""

LOOP_NAMES = (
    "extent",  # elements of the axis that the loop walks in its first execution
    "step",  # elements of the axis in an iteration
    "trips",  # iterations of its first execution, the tail included
    "tail",  # elements that are left for a last, shorter iteration
    "depth",  # loops around it; no logarithm
    "entries",  # how often it is executed: the top-down product
    "passes",  # iterations in all executions together
    "leaves",  # leaves executed inside, in one execution on average: the bottom-up product
    "reduces",  # 1 where nothing inside is written along it
    "counted",  # 1 where it is a loop at run time
    "unrolled",  # 1 where its iterations are straight code
    "parallel",  # 1 where threads share its iterations
    "block",  # reserved: iterations are blocks of a GPU's threads
    "thread",  # reserved: iterations are threads of a GPU
    "lanes",  # of the vectors that its iterations are; 1 for none; no logarithm
    "copies",  # of its body in a loop at run time
    *WORK,  # in one execution on average
    "bytes",  # touched by one execution, all buffers together
    "level",  # the cache that holds these: 1 for the nearest, one more than there are for memory
)
BUFFER_NAMES = (
    "stride",  # the farthest that an iteration moves a reference, in elements
    "accesses",  # reads and writes in one execution on average
    "touched",  # elements that one execution touches
    "bytes",  # of these
    "reuse",  # accesses for each element that is touched
    "written",  # 1 where it is written
    "own",  # 1 for the kernel's own memory: packed copies, and what is passed between leaves
    "level",  # as above, of its own bytes; 0 where registers hold them
)
NAMES = (*LOOP_NAMES, *[f"{name} {i}" for i in range(BUFFERS) for name in BUFFER_NAMES])
"""Columns of a row. A loop that touches more buffers has all that are left together in the last place."""

USUAL_CACHES = (1 << 15, 1 << 20, 1 << 25)
"""Bytes of the caches of a target that does not tell its own."""

_IDLE = Decision("", 1, 0, frozenset())
"""Of a loop that only gives first values, to what registers hold: nothing is left of it."""

Row = list[float]


class TreeRows:
    """The rows of an annotated tree.

    Args:
        annotated: what is described; its ahead part, which is executed once, is left out.
        machine: whose caches count.
    """

    def __init__(self, annotated: AnnotatedTree, machine: Machine) -> None:
        tree = annotated.tree
        self.visits = Visits(tree)
        self.caches = tuple([cache.size for cache in machine.caches]) or USUAL_CACHES
        self._decisions = Decisions(annotated)
        self._tree = tree
        self._itemsize = {buffer.name: DTYPES[buffer.dtype] for buffer in tree.buffers}
        self._own = {buffer.name for buffer in tree.buffers if buffer.kind in ("ahead", "temporary")}
        self._place = {name: i for i, name in enumerate(self._order())}

    def rows(self) -> list[Row]:
        """Describe every loop, each before those inside it."""
        return [self.row(visit) for visit in self.visits.visits]

    def row(self, visit: Visit) -> Row:
        """Describe a loop."""
        decision = self._decisions.of(visit.loop) or _IDLE
        buffers, total = self._buffers(visit, decision.held)
        return [*_of_loop(visit, decision), _log(total), self.level(total), *buffers]

    def level(self, size: int) -> float:
        """Number the nearest cache that holds so many bytes."""
        return float(1 + sum([cache < size for cache in self.caches]))

    def _order(self) -> Iterable[str]:
        """Order buffers by where they are met first: in the loop around the heaviest leaf, then anywhere."""
        visits = self.visits
        first = visits.visits[visits.heaviest].touches if visits.heaviest >= 0 else {}
        others = [name for visit in visits.visits for name in visit.touches]
        return dict.fromkeys([*first, *others])

    def _buffers(self, visit: Visit, held: frozenset[str]) -> tuple[Row, int]:
        """Describe a loop's buffers; gives the bytes of all of them too."""
        places: list[list[str]] = [[] for _ in range(BUFFERS)]
        for name in visit.touches:
            # By one order for the whole tree, so that a column is of the same buffer in every row.
            places[min(self._place[name], BUFFERS - 1)].append(name)
        found: Row = []
        total = 0
        for names in places:
            part, size = self._together(visit, names, held)
            found += part
            total += size
        return found, total

    def _together(self, visit: Visit, names: list[str], held: frozenset[str]) -> tuple[Row, int]:
        if not names:
            return [0.0] * len(BUFFER_NAMES), 0
        touches = [visit.touches[name] for name in names]
        touched = [self._touched(visit, name) for name in names]
        size = sum([n * self._itemsize[name] for n, name in zip(touched, names, strict=True)])
        accesses = sum([touch.accesses for touch in touches]) / visit.entries
        row = [
            _log(max([touch.stride for touch in touches])),
            _log(accesses),
            _log(sum(touched)),
            _log(size),
            _log(accesses / sum(touched)),
            float(any(touch.written for touch in touches)),
            float(not self._own.isdisjoint(names)),
            0.0 if held.issuperset(names) else self.level(size),
        ]
        return row, size

    def _touched(self, visit: Visit, name: str) -> int:
        # Footprints are bounds from above, and a buffer has no more.
        return min(visit.touched(name), self._tree.buffer[name].size)


def _of_loop(visit: Visit, decision: Decision) -> Row:
    loop, entries = visit.loop, visit.entries
    kind = loop.kind if loop.kind in ("block", "thread") else decision.kind
    return [
        _log(visit.here),
        _log(loop.step),
        _log(-(-visit.here // loop.step)),
        _log(visit.here % loop.step),
        float(visit.depth),
        _log(entries),
        _log(visit.passes),
        _log(visit.leaves / entries),
        float(visit.reduces),
        *[float(kind == name) for name in ("counted", "unrolled", "parallel", "block", "thread")],
        float(decision.lanes),
        _log(decision.copies),
        *[_log(amount / entries) for amount in visit.work],
    ]


def _log(x: float) -> float:
    return log2(1 + x)


def size_of_own_memory(tree: LoopTree) -> tuple[int, int]:
    """Count the bytes that are packed ahead of time, and those of temporaries."""
    sizes = {"ahead": 0, "temporary": 0}
    for buffer in tree.buffers:
        if buffer.kind in sizes:
            sizes[buffer.kind] += buffer.size * DTYPES[buffer.dtype]
    return sizes["ahead"], sizes["temporary"]
