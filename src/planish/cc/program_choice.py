"""Choice of how code is made of a whole program: passes on the module, and options of code generation.

Each candidate is linked, and the program's size decides. What clang makes of the program at either level,
with the machine outliner and without, is always tried. Passes on the whole module then change the best one of
the search, and options the best of all, one after the other: all combinations would be several times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from planish.cc.code_options import REPEATED, RISCV, SWITCHES, CodeGenerator, CodeOptions
from planish.cc.object_cache import digest
from planish.cc.optimize import Choice, Rank, find_attributes, rank
from planish.cc.settings import CompileSettings, SearchError
from planish.cc.size_search import SmallerModule
from planish.core import PlanishError
from planish.levels.llvm.bindings.elf import machine
from planish.levels.llvm.function_steps import FunctionPlan
from planish.levels.llvm.modules.evaluator import make_planned
from planish.levels.llvm.modules.transform import (
    AFTER_LISTS,
    LAST,
    Level,
    initial_pipeline,
    make_by_level,
    survived,
    whole_bindings,
)

if TYPE_CHECKING:
    from planish.cc.lock import Result


@dataclass(frozen=True)
class _Module:
    """A program's module, of which code is yet to be made, and how it was made; see `Choice`."""

    bitcode: bytes
    result: Result
    plan: FunctionPlan | None = None
    end: str = LAST


@dataclass(frozen=True, order=True)
class _Tried:
    """A program that was linked: its rank, its object, and the module of which that was made."""

    rank: Rank
    choice: Choice = field(compare=False)
    module: _Module = field(compare=False)


@dataclass(frozen=True)
class ProgramChoice:
    """Finds the choice by which a program is smallest.

    Args:
        start: the program's module, unoptimized.
        own: clang's program.
        generate: makes code.
        link: makes the program of an object; raises SearchError where it cannot.
        settings: what is made less.
    """

    start: bytes
    own: bytes
    generate: CodeGenerator
    link: Callable[[bytes], bytes]
    settings: CompileSettings
    _ranks: dict[str, Rank] = field(default_factory=dict[str, "Rank"])

    def best(self, found: SmallerModule, levels: Collection[Level]) -> Choice:
        """Return the best choice.

        Args:
            found: by the search on the program's functions.
            levels: clang's that are tried besides.

        Raises:
            SearchError: the program cannot be linked.
            PlanishError: LLVM refuses the module.
        """
        modules = [_Module(found.bitcode, "passes", found.plan)] if found.plan else []
        # Whatever the search finds, clang's passes at either level may be better.
        modules += [_Module(by_level(self.start, level), level) for level in levels]
        first = [
            (module, CodeOptions(llvm=outliner))
            for module in modules
            for outliner in (self.generate.outliners(self.own, module.result) if "-Oz" in levels else ((),))
        ]
        tried = [self._tried(module, options) for module, options in first]
        starts = [min(each for each in tried if not each.module.plan)]
        if found.plan:
            starts.append(self._with_other_passes(min(each for each in tried if each.module.plan)))
        starts = [self._with_attributes(each) for each in starts]
        if "-Oz" not in levels:
            return min(starts).choice
        if len(first) > len(modules):
            starts = [self._changed(each, llvm=REPEATED) for each in starts]
        # The smallest of them need not be the one of which the least code can be made.
        until = monotonic() + self.settings.program_seconds
        for switch in SWITCHES:
            if monotonic() < until or self.settings.budget:
                starts = [self._with_switch(each, switch) for each in starts]
        return min(starts).choice

    def _with_switch(self, best: _Tried, switch: str) -> _Tried:
        with suppress(SearchError):  # an older LLVM may not have it
            return self._changed(best, llvm=(*best.choice.options.llvm, switch))
        return best

    def _with_other_passes(self, best: _Tried) -> _Tried:
        """Return the best program with more passes on the whole module after the lists of functions."""
        for passes in AFTER_LISTS:
            with suppress(SearchError, PlanishError):  # LLVM may crash, or rename what others need
                module = self._planned(best.module, f"{passes},{best.module.end}")
                best = min(best, self._tried(module, best.choice.options))
        return best

    def _planned(self, module: _Module, end: str) -> _Module:
        assert module.plan
        make = partial(make_planned, self.start, module.plan, initial_pipeline(whole_bindings()), end)
        return replace(module, bitcode=survived(make, bytes), end=end)

    def _with_attributes(self, best: _Tried) -> _Tried:
        for with_runtime in (False, True) if machine(self.own) == RISCV else (False,):
            attributes = find_attributes(best.module.bitcode, self.settings, with_runtime=with_runtime)
            try:
                best = self._changed(best, attributes=attributes)
            except SearchError:
                if not with_runtime:  # a library that does not have the functions is not an error
                    raise
        return best

    def _changed(self, best: _Tried, **changes: Any) -> _Tried:
        """Return the better one of a program and the same with changed options of code generation."""
        options = replace(best.choice.options, **changes)
        return best if options == best.choice.options else min(best, self._tried(best.module, options))

    def _tried(self, module: _Module, options: CodeOptions) -> _Tried:
        """Link the code of a module, which several options may make equal."""
        code = self.generate(module.bitcode, options)
        if (name := digest(code)) not in self._ranks:
            self._ranks[name] = rank(self.link(code), self.own, for_flash=self.settings.for_flash)
        choice = Choice(code, module.result, module.plan, options, module.end)
        return _Tried(self._ranks[name], choice, module)


def by_level(start: bytes, level: Level) -> bytes:
    """Optimize a program as clang does with -flto, in a child, since LLVM may crash.

    Args:
        start: its module, unoptimized.
        level: "-Os" or "-Oz".
    """
    return survived(partial(make_by_level, start, level), bytes)
