"""Space of whole modules: what is inlined, and a pass list for each function.

The shipped lists are good for most functions, by greedy cover; some targets have lists of their own. Others
are drawn: what -Oz runs, without some of it, and with few passes more.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from planish.core import Candidate, PartGroup, Space
from planish.levels.llvm.function_steps import Attribute, FunctionAttribute, FunctionPasses
from planish.levels.llvm.modules.transform import single, whole_bindings
from planish.levels.llvm.passes.catalogue import drop_unsafe_passes, load_coreset, vary
from planish.levels.llvm.passes.pipeline import print_pipeline

if TYPE_CHECKING:
    from random import Random

Passes = tuple[str, ...]
_KEPT = (0.9, 0.7, 0.5, 0.3)
_MOST_MORE = 3


@dataclass(frozen=True)
class Lists:
    """Pass lists for single functions.

    Args:
        simplify: what -Oz runs on a function, as passes.
        more: passes that are good at other positions too.
        first: lists that are good for most functions, each with the share of the code that it saves in
            addition to those before it.
    """

    simplify: Passes
    more: Passes
    first: tuple[tuple[Passes, float], ...]


@cache
def shipped_lists() -> Lists:
    """Read the lists that come with planish."""
    data = _shipped("lists.json")
    return Lists(tuple(data["simplify"]), tuple(data["more"]), _first_of(data))


_TARGET = re.compile(r'^target triple = "(thumb|riscv32)', re.MULTILINE)


def first_lists(ir: str) -> Sequence[tuple[Passes, float]]:
    """Return the lists that a module's functions are tried with, each with the share that it saves.

    Those for Thumb and RV32 were chosen by the code of these targets (`experiments/within_modules`); for
    others see `in_turns`.
    """
    target = _TARGET.search(ir)
    return _first_of(_shipped(f"lists-{target[1]}.json")) if target else in_turns(shipped_lists().first)


@cache
def _shipped(name: str) -> Mapping[str, Any]:
    return json.loads((files("planish.levels.llvm.modules") / name).read_text(encoding="utf-8"))


def _first_of(data: Mapping[str, Any]) -> tuple[tuple[Passes, float], ...]:
    return tuple((tuple(each["passes"]), float(each["saves"])) for each in data["first"])


@cache
def usual_pipeline() -> str:
    """Return the list that functions have which have none of their own."""
    return print_pipeline(shipped_lists().first[0][0])


def within_modules(passes: Passes) -> Passes:
    """Return a list for single functions as one for functions within modules.

    Pipelines of whole modules become what they run on functions. Passes whose code may differ from run to run
    are left out: what was measured of a list is to be what it makes in the end.
    """
    texts = ("function-simplification<Oz>" if text.startswith("default<") else text for text in passes)
    return tuple(text for text in texts if not vary([text]))


def in_turns(first: Sequence[tuple[Passes, float]]) -> list[tuple[Passes, float]]:
    """Return the usual list, then the coreset of single functions by turns with other lists.

    What a list of the coreset saves beside those before it is not known within modules: it counts as the
    list whose turn is next (`experiments/within_modules/compare_lists.py`).
    """
    usual, *others = first
    found = dict([usual])
    for one, (passes, saves) in zip(load_coreset(), others, strict=False):
        found.setdefault(within_modules(one), saves)
        found.setdefault(passes, saves)
    return [*found.items()]


def drawn_list(random: Random) -> Passes:
    """Draw a list: what -Oz runs on a function, without some of it, and with few passes more."""
    lists = shipped_lists()
    kept = random.choice(_KEPT)
    passes = [text for text in lists.simplify if random.random() < kept]
    for _ in range(random.randint(0, _MOST_MORE)):
        passes.insert(random.randint(0, len(passes)), random.choice(lists.more))
    return tuple(passes)


_BYTES = 4.0
"""Bytes of code that an instruction takes, about."""
_LEAST = 3.0
"""Functions of fewer instructions have nothing to choose."""
_MOST, _MOST_INSTRUCTIONS = 150, 3000
"""Functions and instructions of a group."""
_OVERHEAD = 12.0
"""Instructions for which a trial takes as long as it takes for a function at all."""


def groups_of(costs: Mapping[str, float], objective: str) -> list[PartGroup]:
    """Group the functions of a module, the largest first.

    A list that is tried on a group costs nothing for all other functions.

    Args:
        costs: of the functions by the usual list.
        objective: what the costs are.
    """
    unit = 1.0 if objective == "instructions" else _BYTES
    counts = {name: cost / unit for name, cost in costs.items() if cost >= _LEAST * unit}
    found: list[PartGroup] = []
    group: list[str] = []
    size = 0.0
    for name in sorted(counts, key=lambda name: -counts[name]):
        if group and (len(group) == _MOST or size + counts[name] > _MOST_INSTRUCTIONS):
            found.append(_group(group, size))
            group, size = [], 0.0
        group.append(name)
        size += counts[name]
    return [*found, _group(group, size)] if group else found


def _group(names: Sequence[str], instructions: float) -> PartGroup:
    mean = instructions / len(names)
    return PartGroup(tuple(names), mean / (mean + _OVERHEAD))


_LARGEST = 4000
"""Bytes that inlining one function everywhere may make of it at most, for it to be tried."""


class CallGraph:
    """Calls among a module's definitions, and the functions that may be inlined otherwise than by default.

    Args:
        callers: of each definition, with the number of calls.
        never: functions that may be inlined nowhere.
        always: functions that may be inlined everywhere.
    """

    def __init__(
        self, callers: Mapping[str, Counter[str]], never: Collection[str], always: Collection[str]
    ) -> None:
        self._callers, self._never, self._always = callers, never, always
        self._callees: dict[str, set[str]] = defaultdict(set)
        for callee, names in callers.items():
            for name in names:
                self._callees[name].add(callee)

    def changed_by(self, name: str, kept: Collection[str]) -> frozenset[str]:
        """Name a function and its callers, and the callers of those that are inlined themselves.

        Args:
            name: of the function.
            kept: functions that are not inlined everywhere.
        """
        found, open_ = {name}, [name]
        while open_:
            for caller in self._callers[open_.pop()]:
                if caller not in found:
                    found.add(caller)
                    # A caller that is inlined everywhere is a part of its own callers, which change with it.
                    if caller not in kept:
                        open_.append(caller)
        return frozenset(found)

    def below(self, names: Iterable[str]) -> frozenset[str]:
        """Name what functions call, directly or not: it may be inlined or not as they are."""
        found = set[str]()
        open_ = list(names)
        while open_:
            fresh = self._callees[open_.pop()] - found
            found |= fresh
            open_ += fresh
        return frozenset(found)

    def changes(
        self, settings: Mapping[str, str], costs: Mapping[str, float], largest: float
    ) -> Iterator[tuple[float, tuple[str, str]]]:
        """Yield changes of inlining, each with the cost of the code that it may change."""
        for name, callers in self._callers.items():
            calls = callers.total() - callers[name]
            if not calls:
                continue
            if name in settings:
                yield 0, (name, "default")
            elif name not in costs:
                if name in self._never:
                    yield -calls, (name, "noinline")
            elif name in self._always and costs[name] * calls < largest:
                yield costs[name] * (calls - 1) // 8, (name, "alwaysinline")
            elif name in self._never:
                yield costs[name], (name, "noinline")


class FunctionSpace(Space):
    """Modules with an attribute for inlining on some functions, and a pass list for each.

    A function that LLVM inlined everywhere may be `noinline`, one that it kept `alwaysinline`.

    Args:
        ir: the module, prepared.
        objective: what is to be made less: `text_bytes`, `loaded_bytes` or `instructions`.
        backend: the name of a back end that treats functions one by one.
    """

    def __init__(self, ir: str, objective: str, backend: str = "") -> None:
        self._ir, self._objective, self._backend = ir, objective, backend

    def start(self) -> Candidate:
        """Return LLVM's own inlining, and the usual list for all functions.

        Raises:
            TargetError: the back end cannot treat functions one by one.
        """
        whole_bindings(self._backend)
        return self.combined({}, {})

    def combined(
        self, settings: Mapping[str, str], transformations: Mapping[str, Sequence[str]]
    ) -> Candidate:
        """Return the candidate of some attributes, and pipelines of some functions."""
        marked = (FunctionAttribute(name, cast("Attribute", value)) for name, value in settings.items())
        lists = (FunctionPasses(text, tuple(names)) for text, names in transformations.items())
        return Candidate((*marked, *lists, FunctionPasses(usual_pipeline(), ())))

    def transformations(self) -> Sequence[tuple[str, float]]:
        """List the first lists as pipelines, with the share that each saves; see `first_lists`."""
        found = dict[str, float]()
        for passes, saves in first_lists(self._ir):
            found.setdefault(self._printed(passes), saves)
        return [*found.items()]

    def draw(self, random: Random) -> str:
        """Draw a list; see `drawn_list`."""
        return self._printed(drawn_list(random))

    def groups(self, costs: Mapping[str, float]) -> Sequence[PartGroup]:
        """Group the functions; see `groups_of`."""
        return groups_of(costs, self._objective)

    def changes(self, settings: Mapping[str, str], costs: Mapping[str, float]) -> Sequence[tuple[str, str]]:
        """List functions that may be inlined otherwise, those with the least code at stake first."""
        largest = _LARGEST / (_BYTES if self._objective == "instructions" else 1.0)
        return [change for _, change in sorted(self._calls.changes(settings, costs, largest))]

    def changed_by(self, part: str, present: Collection[str]) -> frozenset[str]:
        """Name a function and its callers, and the callers of those that are inlined themselves."""
        return self._calls.changed_by(part, present)

    def below(self, parts: Iterable[str]) -> frozenset[str]:
        """Name what functions call, directly or not."""
        return self._calls.below(parts)

    def _printed(self, passes: Iterable[str]) -> str:
        # For all functions: a list that breaks one function of a group would be lost for the others too.
        return print_pipeline(drop_unsafe_passes(passes, self._ir))

    @cached_property
    def _calls(self) -> CallGraph:
        with closing(single(whole_bindings(self._backend).parse(self._ir))) as module:
            definitions = module.definitions()
            return CallGraph(definitions.callers(), *definitions.inlinable())
