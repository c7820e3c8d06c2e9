"""Making a module smaller: each function by the list that suits it best."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, astuple
from functools import partial

from planish.core import PlanishError, unknown
from planish.core.canonical import content_hash
from planish.isolation import End, in_child
from planish.llvm.modules.result import FunctionGain, Improved, Memory, Progress, Recipe, read_recipe
from planish.llvm.modules.search import ModuleSearch
from planish.llvm.modules.spending import LIMITS, Spending
from planish.llvm.modules.start import LAST, OZ, loose_start
from planish.llvm.modules.work import Made, remake, whole_backend
from planish.llvm.passes import parse_pipeline

OBJECTIVES = ("text_bytes", "instructions")


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
    spending = Spending(time.monotonic(), seconds, evaluations, cores)
    backend = whole_backend()
    key = content_hash(f"{backend.version} {objective} {seconds} {evaluations} {_hashed(code)}")
    if remember and (known := remember.get(key)):
        return _again(code, objective, known, spending)
    base = _apart(partial(remake, code, Recipe(OZ, (), LAST), objective))
    if isinstance(base, End):
        raise PlanishError(f"LLVM does not survive -Oz: {base.detail}")
    recipe, made = _searched(code, objective, base, spending, progress)
    improved = _improved(base, made, recipe, spending)
    if remember:
        remember.put(key, _to_json(improved))
    return improved


def _searched(
    code: str | bytes,
    objective: str,
    base: Made,
    spending: Spending,
    progress: Callable[[Progress], None] | None,
) -> tuple[Recipe, Made]:
    apart = base.total - sum(base.sizes.values())

    def told(functions: int) -> None:
        if progress:
            total = min(base.total, functions + apart)
            progress(Progress(spending.passed, spending.done, base.total, total))

    recipe = None
    if spending.left() > spending.passed:
        search = ModuleSearch(code, loose_start(whole_backend()), objective, spending, told)
        recipe = search.run()
    if recipe:
        made = _apart(partial(remake, code, recipe, objective))
        if not isinstance(made, End) and made.total < base.total:
            return recipe, made
    return Recipe(OZ, (), LAST), base


def _improved(base: Made, made: Made, recipe: Recipe, spending: Spending) -> Improved:
    lists = {name: parse_pipeline(pipeline) for pipeline, names in recipe.lists for name in names}
    gains = [
        FunctionGain(name, lists.get(name, ()), size, made.sizes.get(name, 0))
        for name, size in {**dict.fromkeys(made.sizes, 0), **base.sizes}.items()
        if made.sizes.get(name, 0) != size
    ]
    gains.sort(key=lambda gain: gain.after - gain.before)
    return Improved(
        made.bitcode, base.total, made.total, tuple(gains), spending.done, spending.passed, (), recipe
    )


def _apart(work: Callable[[], Made]) -> Made | End:
    """Do work in a child, since LLVM may crash."""
    return in_child(work, LIMITS)


def _hashed(code: str | bytes) -> str:
    return hashlib.sha256(
        code.encode(errors="surrogateescape") if isinstance(code, str) else code
    ).hexdigest()


def _to_json(improved: Improved) -> str:
    kept = {"baseline": improved.baseline, "total": improved.total, "recipe": asdict(improved.recipe)}
    return json.dumps({**kept, "functions": [astuple(gain) for gain in improved.functions]})


def _again(code: str | bytes, objective: str, known: str, spending: Spending) -> Improved:
    """Make a module as it was made before."""
    data = json.loads(known)
    recipe = read_recipe(data["recipe"])
    made = _apart(partial(remake, code, recipe, objective))
    if isinstance(made, End):
        raise PlanishError(f"LLVM does not survive what it did before: {made.detail}")
    gains = tuple(FunctionGain(name, tuple(p), before, after) for name, p, before, after in data["functions"])
    return Improved(made.bitcode, data["baseline"], made.total, gains, 0, spending.passed, (), recipe)
