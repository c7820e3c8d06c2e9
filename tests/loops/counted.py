"""Loop trees executed point by point, to count what happens: slow, and too simple to be wrong."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planish.loops.features.touching import WORK
from planish.loops.ir.extent import remaining, within
from planish.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value
from planish.loops.lang.program import Const

KINDS = {
    "sums": ("add", "sub", "neg"),
    "products": ("mul",),
    "quotients": ("div", "sqrt"),
    "choices": ("max", "min", "abs", "relu", "<", "<=", "==", "!="),
    "special": ("exp", "log", "tanh", "sigmoid", "erf"),
    "looked_up": ("gather",),
}


@dataclass
class Counts:
    """What was counted of a loop.

    Args:
        entries: executions.
        passes: iterations.
        leaves: leaves inside it that were executed.
        work: by kind.
        accesses: by buffer.
        first: by buffer, the elements that were touched in its first execution.
    """

    entries: int = 0
    passes: int = 0
    leaves: int = 0
    work: Counter[str] = field(default_factory=Counter[str])
    accesses: Counter[str] = field(default_factory=Counter[str])
    first: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict[str, set[int]](set))


class Execution:
    """Executes a tree's body, anything that is looked up being anywhere."""

    def __init__(self, tree: LoopTree) -> None:
        self.counts: defaultdict[int, Counts] = defaultdict(Counts)
        self._tree = tree
        self._at: dict[LoopId, int] = {}
        self._around: list[Counts] = []
        self._nodes(tree.body, {})

    def _nodes(self, nodes: Sequence[Node], inside: Mapping[str, int]) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self._leaf(node)
            else:
                self._loop(node, inside)

    def _loop(self, loop: Loop, inside: Mapping[str, int]) -> None:
        counts = self.counts[id(loop)]
        counts.entries += 1
        self._around.append(counts)
        left = remaining(self._tree, inside, loop.axis)
        number = 0
        while left > 0:
            counts.passes += 1
            self._at[loop.id] = number
            self._nodes(loop.body, within(inside, loop.axis, min(loop.step, left)))
            left, number = left - loop.step, number + 1
        del self._at[loop.id]
        self._around.pop()

    def _leaf(self, leaf: Leaf) -> None:
        work = Counter(_kinds(leaf))
        touched = [(leaf.target, (0,))] * (2 if leaf.reduce else 1) + list(_reads(leaf.value))
        for counts in self._around:
            counts.leaves += 1
            counts.work += work
            for ref, moves in touched:
                counts.accesses[ref.buffer] += 1
                if counts.entries == 1:
                    counts.first[ref.buffer].update([self._element(ref) + move for move in moves])

    def _element(self, ref: Ref) -> int:
        return ref.offset + sum(stride * self._at[loop] for loop, stride in ref.strides)


def _kinds(leaf: Leaf) -> list[str]:
    functions = [*([leaf.reduce] if leaf.reduce else []), *_functions(leaf.value)]
    return [kind for f in functions for kind in WORK if f in KINDS.get(kind, ())] or ["moved"]


def _functions(value: Value) -> Iterator[str]:
    if isinstance(value, Call):
        yield value.function
        for arg in value.args:
            yield from _functions(arg)


def _reads(value: Value) -> Iterator[tuple[Ref, Sequence[int]]]:
    match value:
        case Ref():
            yield value, (0,)
        case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
            yield base, range(0, int(stride) * int(extent), int(stride))
            yield from _reads(index)
        case Call(args=args):
            for arg in args:
                yield from _reads(arg)
        case Const():
            return
