"""Making a module smaller: each function by the list that suits it best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from planish.core import PlanishError, unknown
from planish.isolation import End, in_child
from planish.llvm.modules.evaluation_budget import LIMITS, EvaluationBudget
from planish.llvm.modules.forked_work import MadeModule, measured, remake, whole_backend
from planish.llvm.modules.function_lists import Passes
from planish.llvm.modules.module_result import FunctionGain, Improved, Memory, ModuleProgress, ModuleRecipe
from planish.llvm.modules.module_search import ModuleSearch
from planish.llvm.modules.remembered import Interim, Known, key_of, read_known
from planish.llvm.modules.start import LAST, OZ, loose_start
from planish.llvm.passes import parse_pipeline

OBJECTIVES = ("text_bytes", "instructions")
_MEASURING = 0.5
"""Share of the time that -Oz takes with measuring which measuring alone takes."""


@dataclass(frozen=True)
class Smaller:
    """What a search gave, without asking what -Oz gives.

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
        """Give the list of each function that has one of its own."""
        return {name: parse_pipeline(pipeline) for pipeline, names in self.recipe.lists for name in names}


def improve_module(
    code: str | bytes,
    objective: str = "text_bytes",
    seconds: float = 2.0,
    evaluations: int | None = None,
    remember: Memory | None = None,
    cores: int = 1,
    progress: Callable[[ModuleProgress], None] | None = None,
    afterwards: float = 0.0,
) -> Improved:
    """Make a module smaller than -Oz does.

    Args:
        code: bitcode or text, unoptimised, of functions that are `minsize optsize`: what
            `clang -Oz -Xclang -disable-llvm-passes -emit-llvm` writes.
        objective: `text_bytes`, of the code that is generated, or `instructions`.
        seconds: to search, with all that belongs to it; -Oz itself and putting together are done even where
            they alone take longer.
        evaluations: lists that may be run on functions, counted for each function; None: no limit.
        remember: keeps what is found for modules.
        cores: that are used.
        progress: is told now and then how far it has come.
        afterwards: how many times as long as -Oz the caller works on the result, within `seconds`.

    Returns:
        The module; that of -Oz where nothing smaller is found.

    Raises:
        PlanishError: there is no such objective, or LLVM crashes on the module at -Oz.
        IRError: the module is malformed.
        TargetError: no LLVM here can treat single functions.
    """
    spending = EvaluationBudget(seconds, evaluations, cores)
    _check(objective)
    oz = ModuleRecipe(OZ, (), LAST)
    base = in_child(partial(remake, code, oz, objective), MadeModule, LIMITS)
    if isinstance(base, End):
        raise PlanishError(f"LLVM does not survive -Oz: {base.detail}")
    spending.reserve = (_MEASURING + afterwards) * spending.passed
    apart = base.total - sum(base.sizes.values())

    def told(functions: int) -> None:
        if progress:
            # Never more than -Oz: that is what is given where nothing is better.
            total = min(base.total, functions + apart)
            progress(ModuleProgress(spending.passed, spending.done, base.total, total))

    found = (
        _searched(code, objective, spending, remember, told) if spending.left() > spending.passed else None
    )
    made = in_child(partial(measured, found.bitcode, objective), MadeModule, LIMITS) if found else base
    # By the whole module: the sum of its functions leaves out what lies between them.
    if found is None or isinstance(made, End) or made.total >= base.total:
        found, made = Smaller(base.bitcode, oz, spending.done, spending.seconds), base
    if progress:
        progress(ModuleProgress(spending.passed, spending.done, base.total, made.total))
    gains = _gains(base, made, found)
    totals = base.total, made.total
    spent = found.evaluations, spending.passed
    return Improved(made.bitcode, *totals, gains, *spent, (), found.recipe, base.bitcode)


def make_smaller(
    code: bytes, seconds: float, evaluations: int | None = None, remember: Memory | None = None
) -> Smaller | None:
    """Make the code of a module smaller, and leave it to the caller whether it is smaller than -Oz makes it.

    Args:
        code: as of `improve_module`.
        seconds: of the processor, to search; making the module once is done even where that takes longer.
        evaluations: as of `improve_module`.
        remember: keeps what is found for modules.

    Returns:
        None where the module cannot be made otherwise than by -Oz.

    Raises:
        IRError: the module is malformed.
        TargetError: no LLVM here can treat single functions.
    """
    spending = EvaluationBudget(seconds, evaluations, 1, of_processor=True)
    return _searched(code, "text_bytes", spending, remember, _tell_nobody)


def _tell_nobody(total: int) -> None:
    del total


def _check(objective: str) -> None:
    if objective not in OBJECTIVES:
        raise unknown("modules have no objective", objective, OBJECTIVES)


def _searched(
    code: str | bytes,
    objective: str,
    spending: EvaluationBudget,
    remember: Memory | None,
    told: Callable[[int], None],
) -> Smaller | None:
    """Search, from where a search with less to spend has come; one that had as much is not done again."""
    backend = whole_backend()
    key = key_of(backend.version, objective, code)
    known = read_known(remember.get(key)) if remember is not None else None
    if known and known.is_enough(spending):
        return _again(code, objective, known)
    least = (known and known.total) or inf
    interim = Interim(remember, key, spending, least)
    start = loose_start(backend)
    search = ModuleSearch(code, start, objective, spending, told, interim.keep, known)
    whole = search.run()
    if whole is None:
        return None
    had = spending.had
    if known and had < spending.seconds:  # load may last: builds add up what they have
        had = min(known.seconds + had, spending.seconds)
    found, total = Smaller(whole.made.ended, whole.recipe, spending.done, had), whole.total
    tried = search.tried
    # A later search may be unlucky: more time must never make a module larger.
    if known and 0 < known.total <= total and (old := _again(code, objective, known)):
        found, total, tried = replace(old, evaluations=spending.done, seconds=had), known.total, known.tried
    if remember is not None:
        remember.put(key, Known(found.recipe, total, had, spending.evaluations, tried).to_json())
    return found


def _again(code: str | bytes, objective: str, known: Known) -> Smaller | None:
    """Make a module as it was made before."""
    made = in_child(partial(remake, code, known.recipe, objective), MadeModule, LIMITS)
    return None if isinstance(made, End) else Smaller(made.bitcode, known.recipe, 0, known.seconds)


def _gains(base: MadeModule, made: MadeModule, found: Smaller) -> tuple[FunctionGain, ...]:
    lists = found.passes()
    gains = [
        FunctionGain(name, lists.get(name, ()), size, made.sizes.get(name, 0))
        for name, size in {**dict.fromkeys(made.sizes, 0), **base.sizes}.items()
        if made.sizes.get(name, 0) != size
    ]
    return tuple(sorted(gains, key=lambda gain: gain.after - gain.before))
