"""The last part of the search within one module: a list for each function of the module as it was begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial

from planish.isolation import Done, End, Watchdog, in_child
from planish.llvm.modules.chunks import cut
from planish.llvm.modules.evaluation_budget import LIMITS, EvaluationBudget
from planish.llvm.modules.forked_work import Begun, finish, single, whole_backend
from planish.llvm.modules.function_lists import Passes, shipped_lists
from planish.llvm.modules.module_result import ModuleRecipe
from planish.llvm.modules.next_jobs import ListJob, jobs
from planish.llvm.modules.trying import TriedLists, Trier
from planish.llvm.passes import parse_pipeline, print_pipeline


@dataclass(frozen=True)
class Whole:
    """A whole module that was made.

    Args:
        recipe: how.
        made: what came of it.
    """

    recipe: ModuleRecipe
    made: Begun

    @property
    def total(self) -> int:
        """What its functions cost; 0 where that was not measured."""
        return sum(self.made.tried.sizes.values())


@dataclass
class ListSearch:
    """Looks for the best list of each function.

    Args:
        whole: the module as it was begun, with one list for all functions, and measured.
        trier: measures functions.
        spending: what it may use.
        told: is given what the functions are expected to cost, now and then.
        kept: is given that too, and how the module is made so.
        before: how the module was made at its best before; its lists are tried first. None: it was not.
        tried: pairs of a list and a part of the module that were tried before; it goes on behind them, and
            counts its own.
    """

    whole: Whole
    trier: Trier
    spending: EvaluationBudget
    told: Callable[[int], None]
    kept: Callable[[int, Callable[[], ModuleRecipe]], None]
    before: ModuleRecipe | None = None
    tried: int = 0
    _best: dict[str, tuple[int, Passes]] = field(init=False, default_factory=dict[str, tuple[int, Passes]])

    def run(self) -> Whole | None:
        """Try lists, and put the best ones together; None: one list is the best for all, or LLVM refuses."""
        self._try_lists()
        return self._put_together()

    def _try_lists(self) -> None:
        usual = shipped_lists().first[0][0]
        self._best = {name: (size, usual) for name, size in self.whole.made.tried.sizes.items()}
        known = [parse_pipeline(pipeline) for pipeline, _ in self.before.lists] if self.before else []
        with ExitStack() as held:
            module = held.enter_context(closing(single(whole_backend().parse(self.whole.made.begun))))
            counts = module.definitions().instructions()
            wanted = {name: count for name, count in counts.items() if name in self._best}
            again = [passes for passes in known if passes != usual]
            chunks = cut(module, wanted, held)
            items = jobs(chunks, again, self.tried)
            left = len(again) * len(chunks)

            def work(item: ListJob, watchdog: Watchdog) -> TriedLists | None:
                watchdog.enter("list")
                return self.trier.try_list(item.chunk.module, print_pipeline(item.passes))

            def hear(over: Done[ListJob, TriedLists | None]) -> None:
                nonlocal left
                self.spending.done += len(over.item.chunk.names)
                self.tried += left <= 0
                left -= 1
                if over.answer:
                    self.trier.known.update(over.answer.texts)
                    self._take(over.item, over.answer)

            self.spending.spend(work, TriedLists, lambda: next(items, None), hear)

    def _take(self, job: ListJob, tried: TriedLists) -> None:
        for name in job.chunk.names:
            if name in tried.sizes and tried.sizes[name] < self._best[name][0]:
                self._best[name] = tried.sizes[name], job.passes
        total = sum(size for size, _ in self._best.values())
        self.told(total)
        self.kept(total, self._together)

    def _put_together(self) -> Whole | None:
        recipe = self._together()
        # One list for all is what the module was made with already.
        if len(recipe.lists) < 2:
            return None
        made = in_child(partial(finish, self.whole.made.begun, recipe, self.trier), Begun | None, LIMITS)
        return None if made is None or isinstance(made, End) else Whole(recipe, made)

    def _together(self) -> ModuleRecipe:
        return replace(self.whole.recipe, lists=tuple(self._groups()))

    def _groups(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Give each list that is run, as a pipeline, and on which functions."""
        groups: dict[Passes, list[str]] = {}
        for name, (_, passes) in self._best.items():
            groups.setdefault(passes, []).append(name)
        for passes, names in groups.items():
            yield print_pipeline(passes), tuple(names)
