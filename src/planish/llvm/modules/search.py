"""The search within one module: what to inline, then a list for each function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from planish.isolation import Done, End, Watchdog, in_child
from planish.llvm.backend.capi.calls import Calls
from planish.llvm.backend.capi.module import CModule
from planish.llvm.modules.inlining import Flip, InliningSearch
from planish.llvm.modules.jobs import Job, jobs
from planish.llvm.modules.lists import Passes, shipped_lists
from planish.llvm.modules.result import Inlining, Recipe
from planish.llvm.modules.spending import LIMITS, Spending
from planish.llvm.modules.start import LAST
from planish.llvm.modules.work import Made, Sizes, Tried, Trier, begin, single, try_inlining, whole_backend
from planish.llvm.passes import print_pipeline

_ON_INLINING = 0.45
"""Share of the time that inlining may take."""
_RESERVE = 1.5
"""How often the time of one whole trial is kept back for putting together."""

Trial = tuple[tuple[Flip, ...], Inlining]


@dataclass
class ModuleSearch:
    """Looks for what makes one module smaller.

    Args:
        code: the module, unoptimised.
        passes: what it begins with.
        objective: what is made less.
        spending: what it may use.
        told: is given what the functions are expected to cost, now and then.

    Attributes:
        inlining: the best that was found.
        best: function to what it costs, and the list.
    """

    code: str | bytes
    passes: str
    objective: str
    spending: Spending
    told: Callable[[int], None]
    inlining: Inlining = ()
    best: dict[str, tuple[int, Passes]] = field(default_factory=dict[str, tuple[int, Passes]])

    def run(self) -> Recipe | None:
        """Search; gives how the best is made, None where the module cannot be begun."""
        usual = shipped_lists().first[0][0]
        with closing(single(whole_backend().parse(self.code))) as module:
            began = time.monotonic()
            pipeline = print_pipeline(usual)
            first = in_child(partial(try_inlining, module, (), self.passes, pipeline, self.objective), LIMITS)
            if first is None or isinstance(first, End):
                return None
            self.spending.reserve = _RESERVE * (time.monotonic() - began)
            sizes = self._search_inlining(module, pipeline, first)
        self.best = {name: (size, usual) for name, size in sizes.items()}
        self._search_lists(first.bitcode)
        return Recipe(self.passes, tuple(self._groups()), LAST, self.inlining)

    def _search_inlining(self, module: CModule, pipeline: str, first: Made) -> Sizes:
        calls = Calls(module.definitions())
        found = InliningSearch(calls.callers(), *calls.free(), first.total, dict(first.sizes))

        def work(item: Trial, watchdog: Watchdog) -> Made | None:
            watchdog.enter("inlining")
            return try_inlining(module, item[1], self.passes, pipeline, self.objective)

        def hear(over: Done[Trial, Made | None]) -> None:
            self.spending.done += len(over.item[0])
            found.tell(over.item[0], over.answer)
            self.told(sum(found.sizes.values()))

        self.spending.spend(work, found.next, hear, _ON_INLINING)
        self.inlining = found.inlining
        return found.sizes

    def _search_lists(self, plain: bytes) -> None:
        """Try lists on functions; what the module is without other inlining is known already."""
        if self.spending.left() <= 0:
            return
        made = plain
        if self.inlining:
            begun = in_child(partial(_begun, self.code, self.inlining, self.passes), LIMITS)
            if isinstance(begun, End):
                return
            made = begun
        with closing(single(whole_backend().parse(made))) as module:
            counts = module.definitions().instructions()
            items = jobs({name: count for name, count in counts.items() if name in self.best})
            trier = Trier(module, self.objective)

            def work(item: Job, watchdog: Watchdog) -> Tried | None:
                watchdog.enter("list")
                return trier(print_pipeline(item.passes), item.names)

            def hear(over: Done[Job, Tried | None]) -> None:
                self.spending.done += len(over.item.names)
                if over.answer:
                    trier.known.update(over.answer.texts)
                    self._take(over.item.passes, over.answer.sizes)

            self.spending.spend(work, lambda: next(items, None), hear)

    def _take(self, passes: Passes, sizes: Sizes) -> None:
        for name, size in sizes.items():
            if size < self.best[name][0]:
                self.best[name] = size, passes
        self.told(sum(size for size, _ in self.best.values()))

    def _groups(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Give each list that is run, as a pipeline, and on which functions."""
        groups: dict[Passes, list[str]] = {}
        for name, (_, passes) in self.best.items():
            groups.setdefault(passes, []).append(name)
        for passes, names in groups.items():
            yield print_pipeline(passes), tuple(names)


def _begun(code: str | bytes, inlining: Inlining, passes: str) -> bytes:
    with closing(single(whole_backend().parse(code))) as module:
        begin(module, inlining, passes)
        return module.bitcode()
