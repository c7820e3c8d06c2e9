"""Blocks of a network, found by its structure: what lies between two values of one type.

A value dominates a later one where every way from the network's input to that one leads through it. So what
is between the two is a block, of whatever kind: a residual block, an inverted one, attention, a step of a
recurrence, or several of these. Without it the later value is the earlier one, and all else fits as it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planish.levels.hlo.edits import DeleteOp, Draft, exclusions
from planish.levels.hlo.flops import HEAVY, flops_of, group
from planish.levels.hlo.ir import TensorType, walk

_INPUT = ""
"""Instead of an operation: the argument that the network reads."""


@dataclass(frozen=True)
class NetworkBlock:
    """A part of a network that can be left out.

    Args:
        entry: the value that it begins with, by name.
        exit: the operation whose result is of the same type, and then is that value.
        flops: of the operations between them.
    """

    entry: str
    exit: str
    flops: int

    @property
    def bypass(self) -> DeleteOp:
        """The edit that leaves it out."""
        return DeleteOp(self.exit, ((self.entry, ()),))


def blocks(draft: Draft) -> list[NetworkBlock]:
    """Find the blocks of a function that hold a convolution or a product, those that compute most first.

    Of those with the same convolutions and products one counts: the first whose exit joins several ways, as
    the sum at the end of a residual block does, else the first; with its nearest entry.
    """
    if not draft.mirror.arguments[""]:
        return []
    stream = _Stream(draft)
    found: dict[frozenset[str], NetworkBlock] = {}
    for exit_ in stream.order:
        for entry in stream.entries(exit_):
            between = stream.between(entry, exit_)
            heavy = frozenset(uid for uid in between if group(draft.mirror.facts[uid]) in HEAVY)
            if heavy:
                known = found.get(heavy)
                # Behind a residual sum come operations of the same type, such as its activation: to leave out
                # up to the sum keeps those.
                if known is None or (stream.joins(exit_) and not stream.joins(known.exit)):
                    flops = sum(stream.flops[uid] for uid in between)
                    found[heavy] = NetworkBlock(stream.value(entry), exit_, flops)
    return sorted(found.values(), key=lambda block: -block.flops)


class _Stream:
    """The operations that depend on a function's main input, as a graph.

    The main input is the argument on which the most computation depends; weights are others, and what
    depends on them alone is no part of the stream.

    Args:
        draft: a module; only what its results need counts.
    """

    def __init__(self, draft: Draft) -> None:
        live = draft.live()
        self._facts, self._draft = draft.mirror.facts, draft
        # Dead operations would join paths that lead to no result.
        every = [uid for uid in draft.mirror.blocks[""] if uid in live]
        self.flops = {uid: flops_of(draft, uid) for uid in every}
        self._reads = {uid: _read(draft, uid) for uid in every}
        self.argument = self._main()
        self.order = list(self._after(f"arg{self.argument}"))
        self._inner = frozenset(self.order)
        self._position = {uid: number for number, uid in enumerate(self.order)}
        self._above: dict[str, str] = {}
        for uid in self.order:
            self._above[uid] = self._dominator(uid)

    def entries(self, uid: str) -> Iterator[str]:
        """List what dominates an operation and gives its type, the nearest first."""
        type_ = self._type(uid)
        if type_ is None or not exclusions.is_target(self._draft, uid):
            return
        while uid != _INPUT:
            uid = self._above[uid]
            if self._type(uid) == type_:
                yield uid

    def between(self, entry: str, exit_: str) -> frozenset[str]:
        """List what the exit needs that the entry does not give, itself included."""
        found: set[str] = set()
        waiting = [exit_]
        while waiting:
            uid = waiting.pop()
            if uid != entry and uid in self._inner and uid not in found:
                found.add(uid)
                waiting += self._owners(uid)
        return frozenset(found)

    def joins(self, uid: str) -> bool:
        """Return whether an operation reads several values of the stream."""
        return len(set(self._owners(uid))) > 1

    def value(self, uid: str) -> str:
        """Name the value of an operation, or of the main input."""
        return f"arg{self.argument}" if uid == _INPUT else f"{uid}#0"

    def _type(self, uid: str) -> TensorType | None:
        if uid == _INPUT:
            return self._draft.mirror.arguments[""][self.argument]
        results = self._facts[uid].results
        return results[0] if len(results) == 1 else None

    def _main(self) -> int:
        """Find the argument on which the most computation depends; of equals the first."""
        work = [
            sum(self.flops[uid] for uid in self._after(f"arg{number}"))
            for number in range(len(self._draft.mirror.arguments[""]))
        ]
        return work.index(max(work))

    def _after(self, value: str) -> Mapping[str, None]:
        """List the operations that depend on an argument, in order."""
        found: dict[str, None] = {}
        for uid, reads in self._reads.items():
            if any(read == value or read.partition("#")[0] in found for read in reads):
                found[uid] = None
        return found

    def _owners(self, uid: str) -> list[str]:
        """List what an operation reads of the stream."""
        owners = (read.partition("#")[0] for read in self._reads[uid])
        main = f"arg{self.argument}"
        return [
            _INPUT if owner == main else owner for owner in owners if owner == main or owner in self._inner
        ]

    def _dominator(self, uid: str) -> str:
        """Return the nearest operation through which every way from the main input leads."""
        owners = self._owners(uid)
        nearest = owners[0]
        for other in owners[1:]:
            # As Cooper, Harvey and Kennedy do ("A simple, fast dominance algorithm", 2001); without cycles
            # one pass is enough.
            nearest = self._common(nearest, other)
        return nearest

    def _common(self, one: str, other: str) -> str:
        """Return the nearest that dominates both, or is one of them."""
        while one != other:
            # The later one goes up: a dominator always stands before what it dominates.
            if one == _INPUT or (other != _INPUT and self._position[other] > self._position[one]):
                one, other = other, one
            one = self._above[one]
        return one


def _read(draft: Draft, uid: str) -> list[str]:
    """Name the values that an operation reads, and those that are read inside of it."""
    return [draft.name(value) for op in walk(draft.op(uid)) for value in op.operands]
