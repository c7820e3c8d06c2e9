"""Which functions are inlined: tried many at once, where each changes other callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from planish.llvm.modules.result import Inlining
from planish.llvm.modules.work import Made, Sizes

_ROUNDS = 3
Flip = tuple[str, str]
"""A function, and what its inlining is set to: "noinline" or "alwaysinline"."""


@dataclass
class InliningSearch:
    """Finds what to inline otherwise than LLVM does.

    A function that LLVM inlined away is tried as `noinline`, one that it kept as `alwaysinline`. That
    changes the function and its callers; functions whose callers are apart are tried in one module, and
    each is judged by its own callers.

    Args:
        callers: of each definition, and how often they call it.
        never: those that may become `noinline`.
        always: those that may become `alwaysinline`.
        total: what the module costs without any of it.
        sizes: of its functions.
    """

    callers: Mapping[str, Counter[str]]
    never: frozenset[str]
    always: frozenset[str]
    total: int
    sizes: dict[str, int]
    chosen: dict[str, str] = field(default_factory=dict[str, str])
    _waiting: list[Flip] = field(default_factory=list[Flip])
    _under_way: dict[Flip, frozenset[str]] = field(default_factory=dict[Flip, frozenset[str]])
    _failed: set[Flip] = field(default_factory=set[Flip])
    _round: int = 0
    _gained: bool = True

    def next(self) -> tuple[tuple[Flip, ...], Inlining] | None:
        """Give flips to be tried together, and the inlining with them; None where nothing is left."""
        if not self._waiting and not self._under_way and self._gained and self._round < _ROUNDS:
            self._round, self._gained = self._round + 1, False
            self._waiting = self._flips()
        batch = self._apart()
        return (tuple(batch), self._with(batch)) if batch else None

    def _apart(self) -> list[Flip]:
        """Take what does not change the same functions; what failed among others is tried alone."""
        busy = set[str]().union(*self._under_way.values())
        batch: list[Flip] = []
        later: list[Flip] = []
        for flip in self._waiting:
            region = self._region(flip[0])
            if busy.isdisjoint(region) and not (batch and (flip in self._failed or batch[0] in self._failed)):
                busy |= region
                batch.append(flip)
                self._under_way[flip] = region
            else:
                later.append(flip)
        self._waiting = later
        return batch

    def tell(self, flips: tuple[Flip, ...], found: Made | None) -> None:
        """Tell what the module costs with some flips; None where it cannot be made."""
        for flip in flips:
            region = self._under_way.pop(flip)
            if found is None:
                continue
            saved = sum(self.sizes.get(name, 0) - found.sizes.get(name, 0) for name in region)
            if saved > 0:
                self._accept(flip, region, saved, found.sizes)
        if found is None and len(flips) > 1:
            self._waiting += flips
            self._failed.update(flips)

    @property
    def inlining(self) -> Inlining:
        """What was found so far."""
        return self._with([])

    def _accept(self, flip: Flip, region: frozenset[str], saved: int, sizes: Sizes) -> None:
        name, attribute = flip
        self._gained = True
        self.total -= saved
        if attribute == "default":
            self.chosen.pop(name, None)
        else:
            self.chosen[name] = attribute
        for each in region:
            self.sizes.pop(each, None)
            if each in sizes:
                self.sizes[each] = sizes[each]

    def _with(self, flips: list[Flip]) -> Inlining:
        changed = {**self.chosen, **dict(flips)}
        return tuple(sorted((name, wanted) for name, wanted in changed.items() if wanted != "default"))

    def _flips(self) -> list[Flip]:
        """List what is worth trying, the most promising first."""
        found: list[tuple[int, Flip]] = []
        for name, callers in self.callers.items():
            calls = callers.total() - callers[name]
            if not calls:
                continue
            if name in self.chosen:
                found.append((0, (name, "default")))
            elif name not in self.sizes:
                if name in self.never:
                    found.append((-calls, (name, "noinline")))
            else:
                size = self.sizes[name]
                if name in self.always and size * calls < 4000:
                    found.append((size * (calls - 1) // 8, (name, "alwaysinline")))
                elif name in self.never:
                    found.append((size, (name, "noinline")))
        return [flip for _, flip in sorted(found)]

    def _region(self, name: str) -> frozenset[str]:
        """Name a function, and those whose code depends on whether it is inlined."""
        found, open_ = {name}, [name]
        while open_:
            for caller in self.callers[open_.pop()]:
                if caller not in found:
                    found.add(caller)
                    if caller not in self.sizes:
                        open_.append(caller)
        return frozenset(found)
