"""Search for a smaller module: first what to inline, then a list for each function.

`ModuleSearch` is the search; `make_smaller` runs it and remembers what it found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from planish.levels.llvm.backend.c_definitions import Calls
from planish.levels.llvm.backend.c_module import CModule
from planish.levels.llvm.modules.budget import LIMITS, EvaluationBudget
from planish.levels.llvm.modules.function_lists import ListSearch, ModuleCandidate
from planish.levels.llvm.modules.inlining import Flip, InliningSearch
from planish.levels.llvm.modules.results import (
    CachedResult,
    Checkpoint,
    Inlining,
    Memory,
    ModuleRecipe,
    key_of,
    read_known,
)
from planish.levels.llvm.modules.space import Passes, shipped_lists
from planish.levels.llvm.modules.transform import (
    LAST,
    FunctionCosts,
    MadeModule,
    PreparedModule,
    begin_and_try,
    loose_start,
    remake,
    single,
    whole_backend,
)
from planish.levels.llvm.passes import parse_pipeline, print_pipeline
from planish.sandbox import Done, ExitStatus, Watchdog, in_child

_ON_INLINING = 0.45
"""Share of the time that inlining may take."""
_RESERVE = 2.0
"""How often the time of ending a whole module is kept back for putting together, which has more lists."""
_LEAST_READINGS = 35.0
"""How often the time for reading a module there must be for it to be measured at all."""

_OBJECTIVE = "text_bytes"

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
        kept: is given what the functions are expected to cost, now and then, and how the module is made so.
        before: the search that was made before; None: there was none.

    Attributes:
        tried: see `CachedResult`.
    """

    code: str | bytes
    passes: str
    objective: str
    spending: EvaluationBudget
    kept: Callable[[int, Callable[[], ModuleRecipe]], None]
    before: CachedResult | None = None
    tried: int = field(init=False, default=0)
    _whole: ModuleCandidate | None = None
    _took: float = 0.0
    _trier: FunctionCosts = field(init=False)

    def __post_init__(self) -> None:
        self._trier = FunctionCosts(self.objective)

    def run(self) -> ModuleCandidate | None:
        """Search; None where the module cannot be begun."""
        began = time.process_time()
        with closing(single(whole_backend().parse(self.code))) as module:
            reading = time.process_time() - began
            if not self._begin_any(module, self.spending.left() > reading * _LEAST_READINGS):
                return None
            if self._whole and self._whole.total and self.spending.left() > 0:
                self._search_inlining(module)
        if self._whole and self._whole.total and self.spending.left() > 0:
            recipe = self.before.recipe if self.before else None
            # With other inlining it is another module, on which nothing was tried yet.
            same = self.before is not None and self.before.recipe.inlining == self._whole.recipe.inlining
            behind = self.before.tried if self.before and same else 0
            given = self.spending, self.kept, recipe, behind
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
        made = in_child(partial(begin_and_try, module, recipe, trier), PreparedModule | None, LIMITS)
        if made is None or isinstance(made, ExitStatus):
            return False
        # The first time shows how long a whole module takes: so much is kept back for the end.
        if self._whole is None:
            self._took = self.spending.passed - began
            self.spending.reserve += _RESERVE * made.seconds
        return self._keep(ModuleCandidate(recipe, made))

    def _usual(self, inlining: Inlining) -> ModuleRecipe:
        return ModuleRecipe(self.passes, ((print_pipeline(shipped_lists().first[0][0]), ()),), LAST, inlining)

    def _keep(self, whole: ModuleCandidate) -> bool:
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
        # A trial that does not end shows nothing, and lists must have as much time as it takes.
        if self.spending.left() < 2 * self._took:
            return

        def work(item: Trial, watchdog: Watchdog) -> PreparedModule | None:
            watchdog.enter("inlining")
            return begin_and_try(module, self._usual(item[1]), self._trier)

        def hear(over: Done[Trial, PreparedModule | None]) -> None:
            flips, inlining = over.item
            self.spending.done += max(len(flips), 1)
            found.tell(flips, over.answer.tried.sizes if over.answer else None)
            if over.answer:
                whole = ModuleCandidate(self._usual(inlining), over.answer)
                if self._keep(whole):
                    self.kept(whole.total, lambda: whole.recipe)

        self.spending.spend(work, PreparedModule, found.next, hear, _ON_INLINING)
        if not found.is_confirmed:
            self._begin(module, found.inlining)


@dataclass(frozen=True)
class SearchedModule:
    """Result of a search that was not compared with -Oz.

    Args:
        bitcode: the module.
        recipe: how it is made again.
        evaluations: lists that were run on functions.
        seconds: that were spent on it by now; fewer than were asked for where load cut the search short.
    """

    bitcode: bytes
    recipe: ModuleRecipe
    evaluations: int
    seconds: float

    def passes(self) -> dict[str, Passes]:
        """Return the list of each function that has one of its own."""
        return {name: parse_pipeline(pipeline) for pipeline, names in self.recipe.lists for name in names}


def make_smaller(
    code: bytes, seconds: float, evaluations: int | None = None, remember: Memory | None = None
) -> SearchedModule | None:
    """Make the code of a module smaller, and leave it to the caller whether it is smaller than -Oz makes it.

    Args:
        code: bitcode or text, unoptimised, of functions that are `minsize optsize`: what
            `clang -Oz -Xclang -disable-llvm-passes -emit-llvm` writes.
        seconds: of the processor, to search; making the module once is done even where that takes longer.
        evaluations: lists that may be run on functions, counted for each function; None: no limit.
        remember: keeps what is found for modules.

    Returns:
        None where the module cannot be made otherwise than by -Oz.

    Raises:
        IRError: the module is malformed.
        TargetError: no LLVM here can treat single functions.
    """
    # From where a search with less to spend has come; one that had as much is not done again.
    spending = EvaluationBudget(seconds, evaluations, 1, of_processor=True)
    backend = whole_backend()
    key = key_of(backend.version, _OBJECTIVE, code)
    known = read_known(remember.get(key)) if remember is not None else None
    if known and known.is_enough(spending):
        return _again(code, known)
    least = (known and known.total) or inf
    interim = Checkpoint(remember, key, spending, least)
    start = loose_start(backend)
    search = ModuleSearch(code, start, _OBJECTIVE, spending, interim.keep, known)
    whole = search.run()
    if whole is None:
        return None
    had = spending.had
    if known and had < spending.seconds:  # load may last: builds add up what they have
        had = min(known.seconds + had, spending.seconds)
    found, total = SearchedModule(whole.made.ended, whole.recipe, spending.done, had), whole.total
    tried = search.tried
    # A later search may be unlucky: more time must never make a module larger.
    if known and 0 < known.total <= total and (old := _again(code, known)):
        found, total, tried = replace(old, evaluations=spending.done, seconds=had), known.total, known.tried
    if remember is not None:
        remember.put(key, CachedResult(found.recipe, total, had, spending.evaluations, tried).to_json())
    return found


def _again(code: bytes, known: CachedResult) -> SearchedModule | None:
    """Make a module as it was made before."""
    made = in_child(partial(remake, code, known.recipe, _OBJECTIVE), MadeModule, LIMITS)
    return (
        None if isinstance(made, ExitStatus) else SearchedModule(made.bitcode, known.recipe, 0, known.seconds)
    )
