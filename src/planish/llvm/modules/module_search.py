"""The search within one module: what to inline, then a list for each function."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from planish.isolation import Done, End, Watchdog, in_child
from planish.llvm.backend.capi.calls import Calls
from planish.llvm.backend.capi.module import CModule
from planish.llvm.modules.evaluation_budget import LIMITS, EvaluationBudget
from planish.llvm.modules.forked_work import Begun, begin_and_try, single, whole_backend
from planish.llvm.modules.function_lists import shipped_lists
from planish.llvm.modules.inlining_search import Flip, InliningSearch
from planish.llvm.modules.list_search import ListSearch, Whole
from planish.llvm.modules.module_result import Inlining, ModuleRecipe
from planish.llvm.modules.remembered import Known
from planish.llvm.modules.start import LAST
from planish.llvm.modules.trying import Trier
from planish.llvm.passes import print_pipeline

_ON_INLINING = 0.45
"""Share of the time that inlining may take."""
_RESERVE = 2.0
"""How often the time of ending a whole module is kept back for putting together, which has more lists."""
_MEASURING = 35.0
"""How often the time for reading a module there must be for it to be measured at all."""

Trial = tuple[tuple[Flip, ...], Inlining]


@dataclass
class ModuleSearch:
    """Looks for what makes one module smaller.

    What it gives is the best whole module that it has made: what is measured on parts of it only says what
    is worth putting together.

    Args:
        code: the module, unoptimised.
        passes: what it begins with.
        objective: what is made less.
        spending: what it may use.
        told: is given what the functions are expected to cost, now and then.
        kept: is given that too, and how the module is made so.
        before: the search that was made before; None: there was none.

    Attributes:
        tried: see `Known`.
    """

    code: str | bytes
    passes: str
    objective: str
    spending: EvaluationBudget
    told: Callable[[int], None]
    kept: Callable[[int, Callable[[], ModuleRecipe]], None]
    before: Known | None = None
    tried: int = field(init=False, default=0)
    _whole: Whole | None = None
    _took: float = 0.0
    _trier: Trier = field(init=False)

    def __post_init__(self) -> None:
        self._trier = Trier(self.objective)

    def run(self) -> Whole | None:
        """Search; None where the module cannot be begun."""
        began = time.process_time()
        with closing(single(whole_backend().parse(self.code))) as module:
            reading = time.process_time() - began
            if not self._begin_any(module, self.spending.left() > reading * _MEASURING):
                return None
            if self._whole and self._whole.total and self.spending.left() > 0:
                self._search_inlining(module)
        if self._whole and self._whole.total and self.spending.left() > 0:
            recipe = self.before.recipe if self.before else None
            # With other inlining it is another module, on which nothing was tried yet.
            same = self.before is not None and self.before.recipe.inlining == self._whole.recipe.inlining
            behind = self.before.tried if self.before and same else 0
            given = self.spending, self.told, self.kept, recipe, behind
            search = ListSearch(self._whole, self._trier, *given)
            if found := search.run():
                self._keep(found)
            self.tried = search.tried
        return self._whole

    def _begin_any(self, module: CModule, measured: bool) -> bool:
        """Begin as it was done before, or as LLVM inlines by itself."""
        before = self.before.recipe.inlining if self.before else ()
        return self._begin(module, before, measured) or bool(before and self._begin(module, (), measured))

    def _begin(self, module: CModule, inlining: Inlining, measured: bool = True) -> bool:
        """Make the module with some inlining, and one list; whether that is the best so far."""
        recipe = self._usual(inlining)
        trier = self._trier if measured else None
        began = self.spending.passed
        made = in_child(partial(begin_and_try, module, recipe, trier), Begun | None, LIMITS)
        if made is None or isinstance(made, End):
            return False
        # The first time tells how long a whole module takes: so much is kept back for the end.
        if self._whole is None:
            self._took = self.spending.passed - began
            self.spending.reserve += _RESERVE * made.seconds
        return self._keep(Whole(recipe, made))

    def _usual(self, inlining: Inlining) -> ModuleRecipe:
        return ModuleRecipe(self.passes, ((print_pipeline(shipped_lists().first[0][0]), ()),), LAST, inlining)

    def _keep(self, whole: Whole) -> bool:
        self._trier.known.update(whole.made.tried.texts)
        if self._whole and whole.total >= self._whole.total:
            return False
        self._whole = whole
        return True

    def _search_inlining(self, module: CModule) -> None:
        assert self._whole
        calls, begun = Calls(module.definitions()), self._whole
        sizes, inlining = dict(begun.made.tried.sizes), dict(begun.recipe.inlining)
        found = InliningSearch(calls.callers(), *calls.free(), sizes, inlining)
        # A trial that does not end tells nothing, and lists must have as much time as it takes.
        if self.spending.left() < 2 * self._took:
            return

        def work(item: Trial, watchdog: Watchdog) -> Begun | None:
            watchdog.enter("inlining")
            return begin_and_try(module, self._usual(item[1]), self._trier)

        def hear(over: Done[Trial, Begun | None]) -> None:
            flips, inlining = over.item
            self.spending.done += max(len(flips), 1)
            found.tell(flips, over.answer.tried.sizes if over.answer else None)
            if over.answer:
                whole = Whole(self._usual(inlining), over.answer)
                if self._keep(whole):
                    self.kept(whole.total, lambda: whole.recipe)
            self.told(found.total)

        self.spending.spend(work, Begun, found.next, hear, _ON_INLINING)
        if not found.is_confirmed:
            self._begin(module, found.inlining)
