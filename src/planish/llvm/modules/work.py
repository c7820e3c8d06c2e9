"""What is done to a module within forked children: begin, run lists on functions, measure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from planish.core import TargetError
from planish.llvm.backend import Backend, IRError, Module, PassError, open_backend
from planish.llvm.backend.capi.module import CModule
from planish.llvm.backend.elf import code_bytes, function_bytes
from planish.llvm.modules.result import Inlining, Recipe

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
        begin(module, recipe.inlining, recipe.passes)
        for pipeline, names in recipe.lists:
            run_on(module, pipeline, names)
        module.run(recipe.last)
        if wrong := module.verify():
            raise PassError(f"invalid IR is made: {wrong}")
        return Made(module.bitcode(), *cost(module, objective))


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


def try_inlining(
    module: CModule, inlining: Inlining, passes: str, pipeline: str, objective: str
) -> Made | None:
    """Measure a module that begins with some inlining, with one pipeline on all its functions.

    Gives the module as it was before the pipeline, and what it costs after; None: LLVM refuses it.
    """
    with closing(module.clone()) as copy:
        try:
            begin(copy, inlining, passes)
            bitcode = copy.bitcode()
            copy.run(pipeline)
            return Made(bitcode, *cost(copy, objective))
        except (PassError, IRError):
            return None


@dataclass(frozen=True)
class Tried:
    """What functions cost after a list, and what texts cost that were not known before."""

    sizes: Sizes
    texts: Mapping[str, int]


@dataclass(frozen=True)
class Trier:
    """Tries lists on some functions of a module.

    Args:
        module: as it is when lists begin.
        objective: what is measured.
        known: the texts that functions became, as `_named` names them, and what those cost.
    """

    module: CModule
    objective: str
    known: dict[str, int] = field(default_factory=dict[str, int])

    def __call__(self, pipeline: str, names: Sequence[str]) -> Tried | None:
        """Measure functions after a pipeline; None where LLVM refuses it."""
        with closing(self.module.clone()) as copy:
            try:
                run_on(copy, pipeline, names)
                return None if copy.verify() else self._measured(copy, names)
            except (PassError, IRError):
                return None

    def _measured(self, copy: CModule, names: Sequence[str]) -> Tried:
        definitions = copy.definitions()
        texts = {name: _named(name, definitions.text(name)) for name in names}
        fresh = frozenset(name for name, text in texts.items() if text not in self.known)
        new = dict[str, int]()
        if fresh:
            if self.objective != "instructions":
                definitions.leave_out([name for name in definitions.by_name if name not in fresh])
            _, found = cost(copy, self.objective)
            new = {texts[name]: found[name] for name in fresh if name in found}
        known = {**self.known, **new}
        return Tried({name: known[text] for name, text in texts.items() if text in known}, new)


def _named(name: str, text: str) -> str:
    return hashlib.sha256(f"{name} {text}".encode(errors="surrogateescape")).hexdigest()
