"""Edges of loops: what remains of an axis inside a loop, and when elements are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from planish.levels.loops.gpu.kernels import Condition
from planish.levels.loops.ir.tree import LoopId, LoopTree


@dataclass(frozen=True)
class Level:
    """A loop on the path.

    Args:
        loop: which.
        extent: elements of its axis, at most, that remain where it begins.
        rest: those that remain inside, at most.
        guarded: whether a last, shorter iteration is cut off by a condition.
    """

    loop: LoopId
    extent: int
    rest: int
    guarded: bool


@dataclass(frozen=True)
class Path:
    """Surroundings of a node.

    Args:
        levels: the loops, outermost first.
        inside: axis to the elements that remain of it, at most.
        threads: the thread loops among them.
        cooperative: whether the threads share the iterations.
    """

    levels: tuple[Level, ...] = ()
    inside: Mapping[str, int] = field(default_factory=dict[str, int])
    threads: frozenset[LoopId] = frozenset()
    cooperative: bool = False

    def into(self, loop: LoopId, extent: int, rest: int, *, guarded: bool, thread: bool = False) -> Path:
        """Return the path inside a loop whose iterations have this remainder."""
        return replace(
            self,
            levels=(*self.levels, Level(loop, extent, rest, guarded)),
            inside={**self.inside, loop[0]: rest},
            threads=self.threads | {loop} if thread else self.threads,
        )


class Edges:
    """Remaining elements of a tree's axes.

    Args:
        tree: the whole program.
        trips: loop to its iterations at most; filled while the tree is walked.
    """

    def __init__(self, tree: LoopTree, trips: Mapping[LoopId, int]) -> None:
        self.tree, self.trips = tree, trips

    def extent(self, axis: str, path: Path) -> int:
        """Count the elements of an axis that remain, at most."""
        if axis in path.inside:
            return path.inside[axis]
        terms = self.tree.window.get(axis)
        if terms is None:
            return self.tree.size[axis]
        return 1 + sum(c * (self.extent(other, path) - 1) for other, c in terms)

    def is_cut(self, axis: str, path: Path) -> bool:
        """Return whether fewer elements of an axis may remain, which only a condition finds out."""
        axes = {axis, *(other for other, _ in self.tree.window.get(axis, ()))}
        return any(level.guarded for level in path.levels if level.loop[0] in axes)

    def conditions(self, path: Path) -> list[Condition]:
        """List what must hold so that no axis is left."""
        found: list[Condition] = []
        for i, level in enumerate(path.levels):
            if not level.guarded:
                continue
            axis = level.loop[0]
            terms = {other.loop: other.loop[1] for other in path.levels[i:] if other.loop[0] == axis}
            found.append(Condition(tuple(terms.items()), level.extent))
            if axis in self.tree.window:
                found += self._of_window(axis, terms, path.levels[:i])
        return [each for each in dict.fromkeys(found) if self._may_fail(each)]

    def _may_fail(self, condition: Condition) -> bool:
        return sum(stride * (self.trips[loop] - 1) for loop, stride in condition.terms) >= condition.limit

    def _of_window(
        self, axis: str, terms: Mapping[LoopId, int], around: Sequence[Level]
    ) -> Iterator[Condition]:
        """Cut off what a window does not have where the axes that it follows have a shorter iteration.

        It has 1 + sum(c * (remaining - 1)) elements, and what remains of an axis is the least of what each
        loop around leaves.
        """
        ends: list[list[tuple[dict[LoopId, int], int]]] = []
        for other, c in self.tree.window[axis]:
            own = [level for level in around if level.loop[0] == other]
            whole = min([level.rest for level in own], default=self.tree.size[other])
            found = [(dict[LoopId, int](), c * (min(whole, self.tree.size[other]) - 1))]
            for i, level in enumerate(own):
                if level.guarded:
                    taken = {each.loop: c * each.loop[1] for each in own[i:]}
                    found.append((taken, c * (level.extent - 1)))
            ends.append(found)
        for chosen in product(*ends):
            moves = dict(terms)
            for taken, _ in chosen:
                moves |= taken
            yield Condition(tuple(moves.items()), 1 + sum(limit for _, limit in chosen))
