"""Programs of candidates that treat hot functions apart: what is run on which function, and the object.

A candidate is a sequence of `FunctionPasses`, one for each function that has a list of its own; all else is
as -O3 makes it. The last step is the one that was tried last: what comes before it is kept, since it is the
same for each list that is tried on one function.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, ProgramError, TargetError
from planish.levels.llvm.bindings.protocol import Bindings, IRError
from planish.levels.llvm.function_steps import FunctionPasses
from planish.levels.llvm.hot.lists import BEGIN, LAST, MORE, SIMPLIFY, USUAL, pipeline
from planish.levels.llvm.modules.transform import ModuleRecipe, begin, end, single
from planish.levels.llvm.passes.catalogue import base_name, elements
from planish.levels.llvm.passes.pipeline import PipelineItem, read_items
from planish.levels.llvm.program import OBJECTS, LinkedObject
from planish.sandbox.tool import run_tool

_PREPARED = 4
"""Modules that are kept of which all but one function is done."""

_COMPILE_S = 60.0
_MANAGERS = frozenset(("function", "loop", "loop-mssa"))
Lists = tuple[tuple[str, tuple[str, ...]], ...]
"""Pipelines, and the functions that each is run on."""


@dataclass(frozen=True)
class ProgramBuild:
    """Module as a candidate compiles it.

    Args:
        code: the object.
        bitcode: the module that it is made of.
    """

    code: bytes
    bitcode: bytes


def compiled(bitcode: bytes, linked: LinkedObject) -> bytes:
    """Compile a module that is a part of a linked program into an object, by the user's compiler.

    Raises:
        IRError: it makes none.
    """
    with tempfile.TemporaryDirectory(prefix="planish-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "module.o"
        words = [str(path) if word == OBJECTS else word for word in linked.compile]
        try:
            ran = run_tool(words, seconds=_COMPILE_S, given=bitcode)
        except TimeoutError as error:
            raise IRError(str(error)) from error
        if ran.code:
            raise IRError(f"the compiler makes no code of the module: {' '.join(ran.message.split())}")
        return path.read_bytes()


def function_lists(candidate: Candidate) -> tuple[FunctionPasses, ...]:
    """Return the steps of a candidate that treats functions apart.

    Raises:
        ProgramError: it has another step, or a pass that is not known: a candidate may come from a store, and
            some of LLVM's passes write files.
    """
    found = list[FunctionPasses]()
    for step in candidate.steps:
        if not isinstance(step, FunctionPasses):
            raise ProgramError(f"'{step}' does not go with lists of single functions")
        _check(read_items(step.pipeline))
        found.append(step)
    return tuple(found)


def _check(items: Sequence[PipelineItem]) -> None:
    for item in items:
        name = base_name(item.text)
        if name not in (_MANAGERS if item.inner is not None else _known()):
            raise ProgramError(f"'{item.text}' is not a pass that runs on a single function")
        _check(item.inner or ())


def _known() -> frozenset[str]:
    ours = (*SIMPLIFY, *USUAL, *(text for texts in MORE for text in texts))
    named = [each for text in ours for each in _leaves(read_items(text))]
    return frozenset(base_name(text) for text in (*named, *elements()))


def _leaves(items: Sequence[PipelineItem]) -> Sequence[str]:
    return [text for item in items for text in (_leaves(item.inner) if item.inner else [item.text])]


def require_bindings(bindings: Bindings) -> None:
    """Raise TargetError where bindings cannot treat single functions as -O3 does."""
    if not bindings.full:
        raise TargetError(f"{bindings.name} cannot treat single functions", "Install LLVM 22.")
    if not bindings.runs(f"{BEGIN},{pipeline(USUAL)}"):
        raise TargetError(f"LLVM {bindings.version} lacks passes of -O3 that this needs", "Install LLVM 22.")


class ProgramBuilder:
    """Builds the programs of candidates from one module.

    Args:
        ir: the module, unoptimized; as text or bitcode.
        bindings: runs the passes.

    Raises:
        IRError: the module is malformed.
        PassError: LLVM refuses what -O3 begins with.
    """

    def __init__(self, ir: str | bytes, bindings: Bindings) -> None:
        self._bindings = bindings
        self._prepared: OrderedDict[tuple[Lists, tuple[str, ...]], bytes] = OrderedDict()
        with closing(single(bindings.parse(ir))) as module:
            begin(module, (), BEGIN)
            self._begun = module.bitcode()
            self._names = tuple(name for name in module.definitions().by_name if name)

    def build(self, candidate: Candidate) -> ProgramBuild:
        """Build the program of a candidate.

        Raises:
            ProgramError: as `function_lists`.
            PassError: LLVM refuses a list, or what it makes is invalid.
            IRError: LLVM makes no code of it.
        """
        *others, last = ((step.pipeline, step.functions) for step in function_lists(candidate))
        with closing(single(self._bindings.parse(self._around(tuple(others), last[1])))) as module:
            end(module, ModuleRecipe("", (last,), LAST))
            return ProgramBuild(module.object_code(), module.bitcode())

    def recipe(self, candidate: Candidate) -> ModuleRecipe:
        """Return how a candidate's program is made of the unoptimized module."""
        *others, last = ((step.pipeline, step.functions) for step in function_lists(candidate))
        return ModuleRecipe(BEGIN, (*self._before(tuple(others), last[1]), last), LAST)

    def _around(self, others: Lists, names: tuple[str, ...]) -> bytes:
        """Return the module in which all but some functions are done."""
        key = others, names
        if key not in self._prepared:
            with closing(single(self._bindings.parse(self._begun))) as module:
                end(module, ModuleRecipe("", self._before(others, names), ""))
                self._prepared[key] = module.bitcode()
            if len(self._prepared) > _PREPARED:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(key)
        return self._prepared[key]

    def _before(self, others: Lists, names: tuple[str, ...]) -> Lists:
        """Return the lists that are run before the last one: the other lists, and those of -O3."""
        apart = {*names, *(name for _, functions in others for name in functions)}
        usual = tuple(name for name in self._names if name not in apart)
        # Without names a list is run on all functions.
        return (*others, (pipeline(USUAL), usual)) if usual else others
