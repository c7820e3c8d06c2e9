"""How often each place of a loop tree is executed, exactly: tails and windows of other axes included.

Axes are independent of one another but for derived ones, whose extent depends on what remains of others. So
the count at a place is a product over groups of axes that depend on one another, and for each group it is
enough to know how often each combination of what remains occurs: a few, for an iteration is full or a tail.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from planish.loops.ir.extent import iterations, within
from planish.loops.ir.tree import Loop, LoopTree

_Remains = tuple[tuple[str, int], ...]
_ROOT: Mapping[_Remains, int] = {(): 1}


class Executions:
    """How often a place is executed; `inside` gives that of a loop's body.

    Args:
        tree: the whole tree.
        groups: axis to the group that it belongs to; an axis that is absent is one of its own.
        states: for each group that has an enclosing loop, what remains of its axes, and how often that is so.
    """

    __slots__ = ("_groups", "_states", "_tree", "count")

    def __init__(
        self, tree: LoopTree, groups: Mapping[str, str], states: Mapping[str, Mapping[_Remains, int]]
    ) -> None:
        self._tree = tree
        self._groups = groups
        self._states = states
        self.count = prod([sum(state.values()) for state in states.values()])

    @staticmethod
    def of(tree: LoopTree) -> Executions:
        """Begin at the root, which is executed once."""
        return Executions(tree, groups_of(tree), {})

    def inside(self, loop: Loop) -> Executions:
        """Go into a loop."""
        group = self._groups.get(loop.axis, loop.axis)
        found: dict[_Remains, int] = {}
        for remains, times in self._states.get(group, _ROOT).items():
            known = dict(remains)
            full, tail = iterations(self._tree, known, loop)
            for rest, passes in ((loop.step, full), (tail, int(tail > 0))):
                if passes:
                    key = tuple(within(known, loop.axis, rest).items())
                    # Equal remains are counted together: so there are as many states as shapes, and not as
                    # iterations.
                    found[key] = found.get(key, 0) + times * passes
        return Executions(self._tree, self._groups, {**self._states, group: found})


def groups_of(tree: LoopTree) -> Mapping[str, str]:
    """Name the group of every axis that others depend on, or that depends on others."""
    group: dict[str, str] = {}
    for axis, terms in tree.derived:
        names = [axis, *(other for other, _ in terms)]
        # An axis may depend on one that depends on others already: then both groups become one.
        joined = {group.get(name, name) for name in names}
        group.update(dict.fromkeys([*names, *(a for a, g in group.items() if g in joined)], axis))
    return group
