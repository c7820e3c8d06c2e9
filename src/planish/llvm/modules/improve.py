"""Making a module smaller: each function by the list that suits it best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

from planish.core import PlanishError, unknown
from planish.isolation import End, ForkLimits, ForkPool, Watchdog, in_child
from planish.llvm.modules.lists import function_lists
from planish.llvm.modules.result import FunctionGain, Improved, Memory, Progress, Recipe
from planish.llvm.modules.work import Made, Sizes, Trying, remake, single, whole_backend
from planish.llvm.passes import print_pipeline

OBJECTIVES = ("text_bytes", "instructions")
_WHOLE, _LAST = "default<Oz>", "globaldce,strip-dead-prototypes"
_WAIT_S = 0.1
_RESERVE = 0.25
"""Share of the time that putting together may need."""

Passes = tuple[str, ...]


def improve_module(
    code: str | bytes,
    objective: str = "text_bytes",
    seconds: float = 2.0,
    evaluations: int | None = None,
    remember: Memory | None = None,
    cores: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Improved:
    """Make a module smaller than -Oz does.

    Args:
        code: bitcode or text, unoptimised, of functions that are `minsize optsize`: what
            `clang -Oz -Xclang -disable-llvm-passes -emit-llvm` writes.
        objective: `text_bytes`, of the code that is generated, or `instructions`.
        seconds: to search, with all that belongs to it; -Oz itself and putting together are done even where
            they alone take longer.
        evaluations: lists that may be run on functions, counted for each function; None: no limit.
        remember: keeps what is found for functions.
        cores: that are used.
        progress: is told now and then how far it has come.

    Returns:
        The module; that of -Oz where nothing smaller is found.

    Raises:
        PlanishError: there is no such objective, or LLVM crashes on the module at -Oz.
        IRError: the module is malformed.
        TargetError: no LLVM here can treat single functions.
    """
    if objective not in OBJECTIVES:
        raise unknown("modules have no objective", objective, OBJECTIVES)
    search = _Search(objective, time.monotonic(), seconds, evaluations, cores, progress)
    return search.run(code, remember)


@dataclass
class _Search:
    objective: str
    began: float
    seconds: float
    evaluations: int | None
    cores: int
    progress: Callable[[Progress], None] | None
    done: int = 0
    tried: dict[str, list[tuple[int, Passes]]] = field(default_factory=dict[str, list[tuple[int, Passes]]])

    def run(self, code: str | bytes, remember: Memory | None) -> Improved:
        del remember
        base = _apart(partial(remake, code, Recipe(_WHOLE, (), _LAST), self.objective))
        if isinstance(base, End):
            raise PlanishError(f"LLVM does not survive -Oz: {base.detail}")
        self._search(base)
        return self._put_together(code, base)

    def _search(self, base: Made) -> None:
        with closing(single(whole_backend().parse(base.bitcode))) as module:
            names = tuple(name for name in module.definitions().by_name if name in base.sizes)
            trying = Trying(module, self.objective)

            def work(item: Passes, watchdog: Watchdog) -> Sizes | None:
                watchdog.enter("work")
                return trying(print_pipeline(item), names)

            limits = ForkLimits(max(5.0, self.seconds), deaths=1)
            with closing(ForkPool(work, self.cores, limits=limits)) as pool:
                pool.add(self._affordable(len(names)))
                while pool.busy and (left := self._left()) > 0:
                    for over in pool.over(min(left, _WAIT_S)):
                        self._hear(over.item, over.answer or {}, base)

    def _affordable(self, functions: int) -> Iterator[Passes]:
        lists = function_lists(self.objective)
        rounds = len(lists) if self.evaluations is None else self.evaluations // max(functions, 1)
        yield from lists[:rounds]

    def _left(self) -> float:
        return self.began + self.seconds * (1 - _RESERVE) - time.monotonic()

    def _hear(self, passes: Passes, sizes: Mapping[str, int], base: Made) -> None:
        self.done += len(sizes)
        for name, size in sizes.items():
            self.tried.setdefault(name, [(base.sizes[name], ())]).append((size, passes))
        if self.progress:
            told = self._best()
            total = base.total - sum(base.sizes[name] - size for name, (size, _) in told.items())
            self.progress(Progress(time.monotonic() - self.began, self.done, base.total, total))

    def _best(self) -> dict[str, tuple[int, Passes]]:
        """Give for each function what is less than -Oz."""
        best = {name: min(tried, key=itemgetter(0)) for name, tried in self.tried.items()}
        return {name: found for name, found in best.items() if found[1]}

    def _put_together(self, code: str | bytes, base: Made) -> Improved:
        best = self._best()
        recipe = Recipe(_WHOLE, tuple(_groups(best)), _LAST)
        made = _apart(partial(remake, code, recipe, self.objective)) if best else base
        if isinstance(made, End) or made.total >= base.total:
            return self._result(base, Recipe(_WHOLE, (), _LAST), {}, base)
        return self._result(made, recipe, best, base)

    def _result(
        self, made: Made, recipe: Recipe, best: Mapping[str, tuple[int, Passes]], base: Made
    ) -> Improved:
        gains = [
            FunctionGain(name, passes, base.sizes[name], made.sizes[name])
            for name, (_, passes) in best.items()
        ]
        gains.sort(key=lambda gain: gain.after - gain.before)
        took = time.monotonic() - self.began
        return Improved(made.bitcode, base.total, made.total, tuple(gains), self.done, took, (), recipe)


def _groups(best: Mapping[str, tuple[int, Passes]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give each list that is run, as a pipeline, and on which functions."""
    groups: dict[Passes, list[str]] = {}
    for name, (_, passes) in best.items():
        groups.setdefault(passes, []).append(name)
    for passes, names in groups.items():
        yield print_pipeline(passes), tuple(names)


def _apart(work: Callable[[], Made]) -> Made | End:
    """Do work in a child, since LLVM may crash."""
    return in_child(work, ForkLimits(seconds=600.0))
