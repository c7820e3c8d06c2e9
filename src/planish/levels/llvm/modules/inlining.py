"""Search for which functions to inline: many are tried at once, where each changes other callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planish.levels.llvm.modules.results import Inlining
from planish.levels.llvm.modules.space import CallRegions
from planish.levels.llvm.modules.transform import Sizes

_ROUNDS = 3
_LARGEST = 4000
"""Bytes that inlining one function everywhere may make of it at most, for it to be tried."""
Flip = tuple[str, str]
"""A function, and what its inlining is set to: "noinline" or "alwaysinline"."""


@dataclass
class InliningSearch:
    """Finds what to inline otherwise than LLVM does.

    A function that LLVM inlined away is tried as `noinline`, one that it kept as `alwaysinline`. That
    changes the function and its callers; functions whose callers are apart are tried in one module, and
    each is judged by its own callers. What is found so is made together now and then (a trial of no flips):
    only that shows whether it holds. Where it does not, each of it is tried by itself.

    Args:
        callers: of each definition, and how often they call it.
        never: those that may become `noinline`.
        always: those that may become `alwaysinline`.
        confirmed: what the search begins with.
        sizes: of the module's functions with that.
    """

    callers: Mapping[str, Counter[str]]
    never: frozenset[str]
    always: frozenset[str]
    sizes: dict[str, int]
    confirmed: dict[str, str] = field(default_factory=dict[str, str])
    _kept: dict[str, int] = field(init=False)
    _chosen: dict[str, str] = field(init=False)
    _regions: CallRegions = field(init=False)
    _waiting: list[Flip] = field(default_factory=list[Flip])
    _under_way: dict[Flip, frozenset[str]] = field(default_factory=dict[Flip, frozenset[str]])
    _since: list[Flip] = field(default_factory=list[Flip])
    _alone: set[Flip] = field(default_factory=set[Flip])
    _making: bool = False
    _round: int = 0
    _gained: bool = True

    def __post_init__(self) -> None:
        self._kept, self._chosen = dict(self.sizes), dict(self.confirmed)
        self._regions = CallRegions(self.callers)

    @property
    def total(self) -> int:
        """Return what the functions cost as far as is known."""
        return sum(self.sizes.values())

    @property
    def inlining(self) -> Inlining:
        """Return what was found so far; all of it may not have been made together yet."""
        return _sorted(self._chosen)

    @property
    def is_confirmed(self) -> bool:
        """Return whether all of it was made together."""
        return not self._since

    def next(self) -> tuple[tuple[Flip, ...], Inlining] | None:
        """Return flips to be tried together, and the inlining with them; None where nothing is left now."""
        if self._making:
            return None
        if not self._waiting and not self._under_way:
            if self._since:
                self._making = True
                return (), self.inlining
            if self._gained and self._round < _ROUNDS:
                self._round, self._gained = self._round + 1, False
                self._waiting = self._flips()
        batch = self._apart()
        return (tuple(batch), _sorted({**self._chosen, **dict(batch)})) if batch else None

    def _apart(self) -> list[Flip]:
        """Take what does not change the same functions; what is to be tried by itself is the only one."""
        busy = set[str]().union(*self._under_way.values())
        batch: list[Flip] = []
        later: list[Flip] = []
        single = bool(self._under_way) and not self._alone.isdisjoint(self._under_way)
        for flip in self._waiting:
            region = self._regions.of(flip[0], self.sizes)
            among = bool(batch or self._under_way)
            if single or not busy.isdisjoint(region) or (flip in self._alone and among):
                later.append(flip)
                continue
            busy |= region
            batch.append(flip)
            self._under_way[flip] = region
            single = flip in self._alone
        self._waiting = later
        return batch

    def tell(self, flips: tuple[Flip, ...], sizes: Sizes | None) -> None:
        """Return what functions cost with some flips; None where the module cannot be made."""
        regions = {flip: self._under_way.pop(flip) for flip in flips}
        if not flips:
            self._confirm(sizes)
        elif sizes is None:
            self._retry(flips if len(flips) > 1 else ())
        # Alone: the sum of all functions decides, and no guess about regions is needed.
        elif len(flips) == 1 and not self._under_way and not self._since:
            if sum(sizes.values()) < self.total:
                self._accept(flips[0], sizes, {*self.sizes, *sizes})
                self._keep()
        else:
            self._judge(regions, sizes)

    def _judge(self, regions: Mapping[Flip, frozenset[str]], sizes: Sizes) -> None:
        """Take the flips whose own functions become less than what grows for them elsewhere."""
        known = frozenset[str]().union(*regions.values(), *self._under_way.values())
        # Growth outside of all regions has some flip as its cause: LLVM may inline otherwise elsewhere.
        grown = {name for name in sizes if sizes[name] > self.sizes.get(name, 0)} - known
        for flip, region in regions.items():
            # Only what is called from there can depend on the flip. Each flip above it is blamed, since the
            # cause is not known.
            blamed = grown & self._regions.below(region)
            touched = region | blamed
            if self._sum(sizes, touched) < self._sum(self.sizes, touched):
                self._accept(flip, sizes, touched)

    def _accept(self, flip: Flip, sizes: Sizes, touched: Iterable[str]) -> None:
        name, attribute = flip
        self._gained = True
        self._since.append(flip)
        if attribute == "default":
            self._chosen.pop(name, None)
        else:
            self._chosen[name] = attribute
        for each in touched:
            self.sizes.pop(each, None)
            if each in sizes:
                self.sizes[each] = sizes[each]

    def _confirm(self, sizes: Sizes | None) -> None:
        self._making = False
        if sizes is not None and sum(sizes.values()) < sum(self._kept.values()):
            self.sizes = dict(sizes)
            self._keep()
            return
        flips, self._since = self._since, []
        self.sizes, self._chosen = dict(self._kept), dict(self.confirmed)
        self._retry(flips)

    def _keep(self) -> None:
        self._kept, self.confirmed, self._since = dict(self.sizes), dict(self._chosen), []

    def _retry(self, flips: Iterable[Flip]) -> None:
        """Have flips tried by themselves, once."""
        # Once: what failed by itself, too, is given up.
        again = [flip for flip in flips if flip not in self._alone]
        self._waiting += again
        self._alone.update(again)

    @staticmethod
    def _sum(sizes: Sizes, names: Iterable[str]) -> int:
        return sum(sizes.get(name, 0) for name in names)

    def _flips(self) -> list[Flip]:
        """List what is worth trying, the most promising first."""
        found: list[tuple[int, Flip]] = []
        for name, callers in self.callers.items():
            calls = callers.total() - callers[name]
            if not calls:
                continue
            if name in self._chosen:
                found.append((0, (name, "default")))
            elif name not in self.sizes:
                if name in self.never:
                    found.append((-calls, (name, "noinline")))
            else:
                size = self.sizes[name]
                if name in self.always and size * calls < _LARGEST:
                    found.append((size * (calls - 1) // 8, (name, "alwaysinline")))
                elif name in self.never:
                    found.append((size, (name, "noinline")))
        return [flip for _, flip in sorted(found)]


def _sorted(chosen: Mapping[str, str]) -> Inlining:
    return tuple(sorted((name, wanted) for name, wanted in chosen.items() if wanted != "default"))
