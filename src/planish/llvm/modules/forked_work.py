"""What is done to a module within forked children: begin, run lists on functions, measure."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass

from planish.core import TargetError
from planish.llvm.assembly import reading_directive
from planish.llvm.backend import Backend, IRError, Module, PassError, open_backend
from planish.llvm.backend.capi.module import CModule
from planish.llvm.backend.elf import code_bytes, function_bytes
from planish.llvm.modules.module_result import Inlining, ModuleRecipe
from planish.llvm.modules.trying import Sizes, TriedLists, Trier


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


def whole_backend() -> Backend:
    """Open a back end that can treat functions one by one.

    Raises:
        TargetError: there is none here.
    """
    backend = open_backend()
    if not backend.full:
        raise TargetError(f"{backend.name} cannot treat single functions", "Install LLVM 18 or newer.")
    return backend


def single(module: Module) -> CModule:
    """Give a module of a back end that can treat functions one by one."""
    assert isinstance(module, CModule)
    return module


def reading_directive_of(code: str | bytes) -> str:
    """Return a directive of a module's assembly that may read a file; empty where none does.

    Raises:
        IRError: the module is malformed.
    """
    with closing(single(whole_backend().parse(code))) as module:
        return reading_directive(module.text())


def remake(code: str | bytes, recipe: ModuleRecipe, objective: str) -> MadeModule:
    """Make a module by a recipe.

    Raises:
        IRError: the module is malformed, or no code is made of it.
        PassError: LLVM refuses a pipeline, or what is made is invalid.
    """
    with closing(single(whole_backend().parse(code))) as module:
        begin(module, recipe.inlining, recipe.passes)
        begun = module.bitcode()
    with closing(single(whole_backend().parse(begun))) as module:
        end(module, recipe)
        return MadeModule(module.bitcode(), *cost(module, objective))


def measured(bitcode: bytes, objective: str) -> MadeModule:
    """Measure a module that was made.

    Raises:
        IRError: no code is made of it.
    """
    with closing(single(whole_backend().parse(bitcode))) as module:
        return MadeModule(bitcode, *cost(module, objective))


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
    definitions.keep_out(others)
    module.run(pipeline)
    definitions.let_in(others, never)


def cost(module: CModule, objective: str) -> tuple[int, Sizes]:
    """Measure a module, and its functions."""
    if objective == "instructions":
        return module.instructions(), module.definitions().instructions()
    code = module.object_code()
    found = function_bytes(code)
    # Aliases are symbols too, of code that is counted already.
    return code_bytes(code), {name: found[name] for name in module.definitions().by_name if name in found}


@dataclass(frozen=True)
class Begun:
    """A module that was begun and ended.

    Args:
        begun: its bitcode before lists are run.
        ended: after them, and after what comes last.
        seconds: of the processor that ending it took, without measuring.
        tried: what its functions cost.
    """

    begun: bytes
    ended: bytes
    seconds: float
    tried: TriedLists


def begin_and_try(module: CModule, recipe: ModuleRecipe, trier: Trier | None) -> Begun | None:
    """Make a module by a recipe, from an unoptimised one that stays as it is; None: LLVM refuses it.

    Args:
        module: unoptimised.
        recipe: how.
        trier: measures functions; None: nothing is measured.
    """
    with closing(module.clone()) as copy:
        try:
            begin(copy, recipe.inlining, recipe.passes)
        except (PassError, IRError):
            return None
        begun = copy.bitcode()
    return finish(begun, recipe, trier)


def finish(begun: bytes, recipe: ModuleRecipe, trier: Trier | None) -> Begun | None:
    """Do what a recipe says after the beginning; see `begin_and_try`."""
    began = time.process_time()
    with closing(single(whole_backend().parse(begun))) as module:
        try:
            end(module, recipe)
            ended, seconds = module.bitcode(), time.process_time() - began
            return Begun(begun, ended, seconds, trier.measure(module) if trier else TriedLists({}, {}))
        except (PassError, IRError):
            return None
