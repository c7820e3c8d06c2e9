"""What is done to a module within forked children: optimise, measure, put together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from planish.core import TargetError
from planish.llvm.backend import Backend, IRError, Module, PassError, open_backend
from planish.llvm.backend.capi.module import CModule
from planish.llvm.backend.elf import code_bytes, function_bytes
from planish.llvm.modules.result import Recipe

Sizes = Mapping[str, int]
"""A function's name to its cost."""


@dataclass(frozen=True)
class Made:
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


def remake(code: str | bytes, recipe: Recipe, objective: str) -> Made:
    """Make a module by a recipe.

    Raises:
        IRError: the module is malformed, or no code is made of it.
        PassError: LLVM refuses a pipeline, or what is made is invalid.
    """
    with closing(single(whole_backend().parse(code))) as module:
        module.run(recipe.passes)
        for pipeline, names in recipe.lists:
            run_on(module, pipeline, names)
        module.run(recipe.last)
        if wrong := module.verify():
            raise PassError(f"invalid IR is made: {wrong}")
        return Made(module.bitcode(), *cost(module, objective))


def run_on(module: CModule, pipeline: str, names: Collection[str]) -> None:
    """Run a pipeline of function passes on some functions of a module."""
    definitions = module.definitions()
    before = definitions.having("optnone")
    others = [name for name in definitions.by_name if name not in names and name not in before]
    never = definitions.having("noinline")
    definitions.keep_out(others)
    module.run(pipeline)
    definitions.let_in(others, never)


def cost(module: CModule, objective: str) -> tuple[int, Sizes]:
    """Measure a module, and its functions where code tells them apart."""
    if objective == "instructions":
        return module.instructions(), module.definitions().instructions()
    code = module.object_code()
    return code_bytes(code), function_bytes(code)


@dataclass(frozen=True)
class Trying:
    """Runs lists on some functions of a module.

    Args:
        module: with everything done that is done for the whole.
        objective: what is measured.
    """

    module: CModule
    objective: str

    def __call__(self, pipeline: str, names: Sequence[str]) -> Sizes | None:
        """Give what the functions cost after a pipeline; None where LLVM refuses it."""
        with closing(self.module.clone()) as copy:
            try:
                run_on(copy, pipeline, names)
                if copy.verify():
                    return None
                if self.objective != "instructions":
                    definitions = copy.definitions()
                    definitions.leave_out([name for name in definitions.by_name if name not in names])
                _, found = cost(copy, self.objective)
            except (PassError, IRError):
                return None
        return {name: found[name] for name in names if name in found}
