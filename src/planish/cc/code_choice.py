"""Choice of how code is made of a file or program: passes on the module, and options of code generation.

Each choice is made, and a program is linked with it; the size decides. What clang makes at either level, with
the machine outliner and without, is always tried. Options change the best choices, one after the other: all
combinations would be many times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from planish.cc.code_options import CLANGS, REPEATED, RISCV, SWITCHES, CodeGenerator, CodeOptions
from planish.cc.object_cache import digest
from planish.cc.settings import CompileSettings, SearchError
from planish.cc.size_search import FLASH, SIZE, SmallerModule
from planish.core import PlanishError
from planish.levels.llvm.bindings.elf import code_bytes, function_bytes, loaded_bytes, machine
from planish.levels.llvm.function_steps import FunctionPlan
from planish.levels.llvm.modules.evaluator import make_planned
from planish.levels.llvm.modules.function_costs import Attributes, best_attributes
from planish.levels.llvm.modules.transform import (
    AFTER_LISTS,
    LAST,
    Level,
    initial_pipeline,
    make_by_level,
    set_code_options,
    survived,
    whole_bindings,
)
from planish.levels.llvm.passes.pipeline import parse_pipeline

if TYPE_CHECKING:
    from planish.cc.lock import Result


@dataclass(frozen=True)
class Choice:
    """An object, and how it is made.

    Args:
        result: "passes", "-Os", "-Oz" or "clang", as in a lock file.
        plan: what is run on the module, for "passes".
        options: of code generation.
        end: passes on the whole module after those of the plan.
        bitcode: the module of which code is made; empty where clang makes the object of the source.
        code: the object; empty until it is made.
    """

    result: Result
    plan: FunctionPlan | None = None
    options: CodeOptions = CLANGS
    end: str = LAST
    bitcode: bytes = b""
    code: bytes = b""

    @property
    def passes(self) -> Mapping[str, tuple[str, ...]]:
        """The lists that functions have of their own, and changes of their attributes."""
        if self.result in ("-Os", "-Oz"):
            return {name: (self.result, *self.options.of(name)) for name in function_bytes(self.code)}
        lists = self.plan.lists if self.plan else ()
        found = {name: parse_pipeline(pipeline) for pipeline, names in lists for name in names}
        changed = {name for _, names in self.options.attributes for name in names}
        return {name: (*found.get(name, ()), *self.options.of(name)) for name in {*found, *changed}}

    def to_json(self) -> dict[str, object]:
        """Return how it is made, as `CompileJob.enter_in_lock` reads it."""
        options = {"attributes": self.options.attributes, "llvm": self.options.llvm}
        if self.plan is None:
            return {"result": self.result, **options}
        begin = initial_pipeline(whole_bindings())
        described = {"result": self.result, "begin": begin, "end": self.end}
        return {**described, "inlining": self.plan.inlining, "lists": self.plan.lists, **options}


def searched(found: SmallerModule) -> tuple[Choice, ...]:
    """Return the choice that a search found, with the options that it measured functions with, if any."""
    options = CodeOptions(llvm=found.options)
    return (Choice("passes", found.plan, options, bitcode=found.bitcode),) if found.plan else ()


Rank = tuple[bool, int, int]
"""Order of objects or programs, the best first."""


def rank(made: bytes, own: bytes, *, for_flash: bool) -> Rank:
    """Return the rank of an object or program.

    Args:
        made: it.
        own: clang's.
        for_flash: whether all that is loaded decides: code, constants, initialized data and unwind tables.
            Else code does, but what has more of either than clang's comes after that.
    """
    (text, loaded), before = ((code_bytes(each), loaded_bytes(each)) for each in (made, own))
    if for_flash:
        return False, loaded, text
    # Smaller code with more data is not a gain.
    return text > before[0] or loaded > before[1], text, loaded


def is_smaller(made: bytes, own: bytes, *, for_flash: bool) -> bool:
    """Return whether an object or program is smaller than clang's; see `rank`."""
    return rank(made, own, for_flash=for_flash) < rank(own, own, for_flash=for_flash)


def cost_of(settings: CompileSettings) -> str:
    """Return the objective that a search minimizes."""
    return FLASH if settings.for_flash else SIZE


@dataclass(frozen=True, order=True)
class Tried:
    """A choice whose object was made, and the rank of that, or of the program that it is linked into."""

    rank: Rank
    choice: Choice = field(compare=False)


@dataclass(frozen=True)
class Chooser:
    """Tries choices, and changes of their options of code generation.

    Args:
        own: clang's object or program.
        generate: makes code of modules.
        settings: what is made less.
        compile: makes the object of a choice without a module; raises SearchError where clang makes none.
        link: makes a program of an object; raises SearchError where it cannot. None: the object is compared.
    """

    own: bytes
    generate: CodeGenerator
    settings: CompileSettings
    compile: Callable[[Choice], bytes] | None = None
    link: Callable[[bytes], bytes] | None = None
    _ranks: dict[str, Rank] = field(default_factory=dict[str, "Rank"])

    def tried(self, choice: Choice) -> Tried:
        """Make the object of a choice, which may be equal to another's, and rank it.

        Raises:
            SearchError: clang makes no code of it, or it cannot be linked.
            PlanishError: LLVM refuses the module.
        """
        code = choice.code or (
            self.compile(choice)
            if self.compile and not choice.bitcode
            else self.generate(choice.bitcode, choice.options)
        )
        if (name := digest(code)) not in self._ranks:
            made = self.link(code) if self.link else code
            self._ranks[name] = rank(made, self.own, for_flash=self.settings.for_flash)
        return Tried(self._ranks[name], replace(choice, code=code))

    def with_outliners(self, choice: Choice) -> list[Tried]:
        """Try a choice with the machine outliner as clang runs it, and the opposite; raises as `tried`."""
        outliners = self.generate.outliners(self.own, choice.result)
        changed = (replace(choice, options=choice.options.with_outliner(each)) for each in outliners)
        return [self.tried(each) for each in changed]

    def improved(self, best: Tried, seconds: float) -> Tried:
        """Change the options of a choice one after the other, each if that makes it better.

        Args:
            best: the choice.
            seconds: by the clock, after which no more options of LLVM are tried.
        """
        until = monotonic() + seconds
        if len(self.generate.outliners(self.own)) > 1:
            best = self._better(best, best.choice.options.with_outliner(REPEATED))
        for switch in SWITCHES:
            if monotonic() > until:
                break
            with suppress(SearchError):  # an older LLVM may not have it
                best = self._better(best, best.choice.options.toggled(switch))
        return self._with_attributes(best) if best.choice.bitcode else best

    def _with_attributes(self, best: Tried) -> Tried:
        is_program_for_riscv = self.link and machine(self.own) == RISCV
        for with_runtime in (False, True) if is_program_for_riscv else (False,):
            attributes = self._attributes(best.choice, with_runtime=with_runtime)
            try:
                best = self._better(best, replace(best.choice.options, attributes=attributes))
            except SearchError:
                if not with_runtime:  # a library that does not have the functions is not an error
                    raise
        return best

    def _attributes(self, choice: Choice, *, with_runtime: bool) -> Attributes:
        """Return the changes of attributes by which functions become smaller; none where LLVM crashes."""

        def find() -> Attributes:
            set_code_options(choice.options.switches)
            return best_attributes(choice.bitcode, cost_of(self.settings), with_runtime=with_runtime)

        try:
            return survived(find, Attributes)
        except PlanishError:
            return ()

    def _better(self, best: Tried, options: CodeOptions) -> Tried:
        """Return the better one of a choice and the same with other options."""
        if options == best.choice.options:
            return best
        return min(best, self.tried(replace(best.choice, options=options, code=b"")))


@dataclass(frozen=True)
class ProgramChoice:
    """Finds the choice by which a program is smallest.

    Passes on the whole module change the best choice of the search. Options then change that, and the best
    one of clang's levels: the smallest of them need not be the one of which the least code can be made.

    Args:
        start: the program's module, unoptimized.
        chooser: tries choices.
    """

    start: bytes
    chooser: Chooser

    def best(self, found: SmallerModule, levels: Collection[Level]) -> Choice:
        """Return the best choice.

        Args:
            found: by the search on the program's functions.
            levels: clang's that are tried besides.

        Raises:
            SearchError: the program cannot be linked.
            PlanishError: LLVM refuses the module.
        """
        is_smallest, chooser = "-Oz" in levels, self.chooser

        def best_of(choices: Iterable[Choice]) -> Tried:
            if not is_smallest:
                return min(map(chooser.tried, choices))
            return min(each for choice in choices for each in chooser.with_outliners(choice))

        # Whatever the search finds, clang's passes at either level may be better.
        starts = [best_of(Choice(level, bitcode=by_level(self.start, level)) for level in levels)]
        if choices := searched(found):
            starts.append(self._with_other_passes(best_of(choices)))
        if is_smallest:
            seconds = float("inf") if chooser.settings.budget else chooser.settings.program_seconds
            starts = [chooser.improved(each, seconds / len(starts)) for each in starts]
        return min(starts).choice

    def _with_other_passes(self, best: Tried) -> Tried:
        """Return the best program with more passes on the whole module after the lists of functions."""
        for passes in AFTER_LISTS:
            with suppress(SearchError, PlanishError):  # LLVM may crash, or rename what others need
                best = min(best, self.chooser.tried(self._ended(best.choice, f"{passes},{best.choice.end}")))
        return best

    def _ended(self, choice: Choice, end: str) -> Choice:
        assert choice.plan
        make = partial(make_planned, self.start, choice.plan, initial_pipeline(whole_bindings()), end)
        return replace(choice, bitcode=survived(make, bytes), end=end, code=b"")


def by_level(start: bytes, level: Level) -> bytes:
    """Optimize a program as clang does with -flto, in a child, since LLVM may crash.

    Args:
        start: its module, unoptimized.
        level: "-Os" or "-Oz".
    """
    return survived(partial(make_by_level, start, level), bytes)
