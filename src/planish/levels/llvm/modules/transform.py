"""Transformation and measurement of a module's functions.

A recipe is run in three parts: passes on the whole module (preparing it), lists on single functions, and
passes on the whole module again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from planish.core import PlanishError, TargetError
from planish.levels.llvm.bindings.c_module import CBindings, CModule
from planish.levels.llvm.bindings.elf import code_bytes, function_bytes
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, Module, PassError
from planish.levels.llvm.source import reading_directive
from planish.sandbox import ExitStatus
from planish.sandbox.fork_pool import ForkLimits, in_child

Answer = TypeVar("Answer")

CHILD_LIMITS = ForkLimits(seconds=600.0, deaths=1)
"""For making a whole module, of whatever size, in a child: LLVM may crash."""
Inlining = tuple[tuple[str, str], ...]
"""Functions that are inlined otherwise than LLVM would: "noinline" (nowhere) or "alwaysinline"."""


@dataclass(frozen=True)
class ModuleRecipe:
    """Recipe by which a module is made again.

    Args:
        passes: what is run on the whole module first, as `opt -passes=` takes it.
        lists: then on single functions: the pipeline, and the functions that it is run on; all others are
            kept out. One without functions is run on all.
        last: what is run on the whole module at the end.
        inlining: attributes that functions have while `passes` are run, and no longer.
    """

    passes: str
    lists: tuple[tuple[str, tuple[str, ...]], ...]
    last: str
    inlining: Inlining = ()


OZ = "default<Oz>"
LAST = "globaldce,constmerge,cg-profile,rel-lookup-table-converter,strip-dead-prototypes"

_TIDY = "sroa<modify-cfg>,early-cse<memssa>,simplifycfg<switch-range-to-icmp>,instcombine<no-verify-fixpoint>"
_INITIAL_PIPELINE = (
    "annotation2metadata,forceattrs,inferattrs,coro-early,"
    "function<eager-inv>(lower-expect,simplifycfg,sroa<modify-cfg>,early-cse),"
    "openmp-opt,ipsccp,called-value-propagation,globalopt,"
    "function<eager-inv>(mem2reg,instcombine<no-verify-fixpoint>,simplifycfg<switch-range-to-icmp>),"
    "always-inline,require<globals-aa>,function(invalidate<aa>),require<profile-summary>,"
    "cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,"
    f"function<eager-inv;no-rerun>({_TIDY},coro-elide),function-attrs,coro-split,coro-annotation-elide)),"
    "deadargelim,coro-cleanup,globalopt,globaldce,elim-avail-extern,rpo-function-attrs,recompute-globalsaa"
)
AFTER_LISTS = (
    f"require<profile-summary>,cgscc(inline),ipsccp,globalopt,deadargelim,function<eager-inv>({_TIDY})",
    "mergefunc",
)
"""Passes on a whole program that may make it smaller once its functions are simplified."""


def initial_pipeline(bindings: Bindings) -> str:
    """Return the pipeline run on the whole module before lists are run on its functions.

    It is what -Oz does for the whole module, in its order: constants across functions, inlining, dead
    arguments. But functions are only tidied up meanwhile, where -Oz simplifies them thoroughly: lists that
    begin after -Oz find little that is left to choose. An LLVM that refuses this has -Oz itself.
    """
    return _INITIAL_PIPELINE if bindings.runs(_INITIAL_PIPELINE) else OZ


Sizes = Mapping[str, int]
"""A function's name to its cost."""


@dataclass(frozen=True)
class MadeModule:
    """A module that was made, and what it costs.

    Args:
        bitcode: it.
        total: its cost.
        sizes: of its functions.
    """

    bitcode: bytes
    total: int
    sizes: Sizes


def whole_bindings(name: str = "") -> Bindings:
    """Open bindings that can treat functions one by one.

    Args:
        name: of the bindings; empty: the best ones here.

    Raises:
        TargetError: it cannot.
    """
    bindings = open_bindings(name)
    if not bindings.full:
        raise TargetError(f"{bindings.name} cannot treat single functions", "Install LLVM 18 or newer.")
    return bindings


def set_code_options(options: Sequence[str]) -> None:
    """Set options of LLVM for all that this process does from now on; see `CBindings.set_options`."""
    bindings = whole_bindings()
    assert isinstance(bindings, CBindings)
    bindings.set_options(options)


def survived(work: Callable[[], Answer], kind: Any, what: str = "what it did before") -> Answer:
    """Do work in a child, since LLVM may crash.

    Args:
        work: what is done.
        kind: the type of its answer.
        what: LLVM does not survive, where it crashes.

    Raises:
        PlanishError: it crashes, or whatever the work raises.
    """
    answer = in_child(work, kind, CHILD_LIMITS)
    if isinstance(answer, ExitStatus):
        raise PlanishError(f"LLVM does not survive {what}: {answer.detail}")
    return answer


def single(module: Module) -> CModule:
    """Return a module of bindings that can treat functions one by one."""
    assert isinstance(module, CModule)
    return module


def reading_directive_of(code: str | bytes) -> str:
    """Return a directive of a module's assembly that may read a file; empty where none does.

    Raises:
        IRError: the module is malformed.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        return reading_directive(module.text())


_INCIDENTAL = re.compile(
    r'^; ModuleID = .*\n|^source_filename = .*\n|"[^"\n]*clang version [^"\n]*"', re.MULTILINE
)


def module_digest(code: str | bytes) -> str:
    """Name a module by its content, without debug information, the source's path and the compiler's version.

    Raises:
        IRError: the module is malformed.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        module.strip_debug_info()
        text = _INCIDENTAL.sub("", module.text())
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def make(code: str | bytes, recipe: ModuleRecipe, objective: str) -> MadeModule:
    """Make a module by a recipe.

    Raises:
        IRError: the module is malformed, or no code is made of it.
        PassError: LLVM refuses a pipeline, or what is made is invalid.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        begin(module, recipe.inlining, recipe.passes)
        begun = module.bitcode()
    with closing(single(whole_bindings().parse(begun))) as module:
        end(module, recipe)
        return MadeModule(module.bitcode(), *cost(module, objective))


Level = Literal["-Os", "-Oz"]


def make_by_level(code: str | bytes, level: Level) -> bytes:
    """Optimize a whole program as clang does with -flto; return its bitcode.

    Args:
        code: its modules as one, unoptimized, of functions that are `minsize optsize`.
        level: "-Os": they are no longer `minsize`.

    Raises:
        IRError: the module is malformed.
        PassError: LLVM refuses the pipeline.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        definitions = module.definitions()
        if level == "-Os":
            definitions.unmark(tuple(definitions.by_name), "minsize")
        name = level[1:]
        module.run(f"lto-pre-link<{name}>,lto<{name}>")
        return module.bitcode()


def end(module: CModule, recipe: ModuleRecipe) -> None:
    """Run a recipe's lists on a module that was begun, and what comes last.

    It was written and read since it was begun: that changes the order of uses, and so what passes do.
    A list without names is run on all functions.

    Raises:
        PassError: LLVM refuses a pipeline, or what is made is invalid.
    """
    for pipeline, names in recipe.lists:
        run_on(module, pipeline, names or tuple(module.definitions().by_name))
    module.run(recipe.last)
    # Passes can make invalid IR, of which code would still be made.
    if wrong := module.verify():
        raise PassError(f"invalid IR is made: {wrong}")


def begin(module: CModule, inlining: Inlining, passes: str) -> None:
    """Run passes on the whole module, in which some functions are inlined everywhere or nowhere."""
    wanted = {"noinline": list[str](), "alwaysinline": list[str]()}
    for name, attribute in inlining:
        wanted[attribute].append(name)
    definitions = module.definitions()
    for attribute, names in wanted.items():
        definitions.mark(names, attribute)
    module.run(passes)
    left = module.definitions()
    for attribute, names in wanted.items():
        left.unmark(names, attribute)


def run_on(module: CModule, pipeline: str, names: Collection[str]) -> None:
    """Run a pipeline of function passes on some functions of a module."""
    definitions, chosen = module.definitions(), frozenset(names)
    before = definitions.having("optnone")
    # What was kept out already stays so afterwards: it is the source's own wish.
    others = [name for name in definitions.by_name if name not in chosen and name not in before]
    never = definitions.having("noinline")
    # LLVM runs passes on no function that is `optnone`, and wants it to be `noinline`.
    for attribute in ("optnone", "noinline"):
        definitions.mark(others, attribute)
    module.run(pipeline)
    definitions.unmark(others, "optnone")
    definitions.unmark([name for name in others if name not in never], "noinline")


def cost(module: CModule, objective: str) -> tuple[int, Sizes]:
    """Measure a module, and its functions."""
    if objective == "instructions":
        return module.instructions(), module.definitions().instructions()
    code = module.object_code()
    found = function_bytes(code)
    # Aliases are symbols too, of code that is counted already.
    return code_bytes(code), {name: found[name] for name in module.definitions().by_name if name in found}
