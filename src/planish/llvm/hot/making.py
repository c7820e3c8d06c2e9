"""Making versions of a program: in children, since LLVM may crash."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from planish.core import PlanishError
from planish.core.canonical import content_hash
from planish.isolation import End, ForkLimits, in_child
from planish.llvm.backend import IRError, PassError
from planish.llvm.hot.o3_lists import BEGIN
from planish.llvm.modules.forked_work import begin, end, single, whole_backend
from planish.llvm.modules.module_result import ModuleRecipe
from planish.llvm.modules.trying import plain_text

_LIMITS = ForkLimits(seconds=60.0)
_PROCESSOR = re.compile(r'"target-(?:cpu|features)"="[^"]*"')


Lists = tuple[tuple[str, tuple[str, ...]], ...]
"""Pipelines, and the functions that each is run on."""


@dataclass(frozen=True)
class HotBuild:
    """What a recipe makes: an object, and the module that it is made of."""

    code: bytes
    bitcode: bytes


@dataclass(frozen=True)
class HotBegun:
    """A module after what -O3 runs on the whole of it.

    Args:
        bitcode: it.
        identities: of the functions that it defines: name to a hash of what it is, and for which processor.
    """

    bitcode: bytes
    identities: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Name the functions that it defines."""
        return tuple(self.identities)

    @staticmethod
    def of(ir: str | bytes) -> HotBegun:
        """Begin a module.

        Raises:
            PlanishError: LLVM does not survive it.
        """
        made = in_child(partial(_begun, ir), tuple[bytes, dict[str, str]], _LIMITS)
        if isinstance(made, End):
            raise PlanishError(f"LLVM does not survive what -O3 begins with: {made.detail}")
        return HotBegun(*made)

    def after(self, lists: Lists) -> HotBegun | None:
        """Run lists on functions; None where LLVM refuses it."""
        made = in_child(partial(_after, self.bitcode, ModuleRecipe("", lists, "")), bytes | None, _LIMITS)
        return None if isinstance(made, End) or made is None else HotBegun(made, self.identities)

    def finished(self, recipe: ModuleRecipe) -> HotBuild | None:
        """Do what a recipe says after the beginning; None where LLVM refuses it."""
        made = in_child(partial(_finished, self.bitcode, recipe), HotBuild | None, _LIMITS)
        return None if isinstance(made, End) else made


def make(ir: str, recipe: ModuleRecipe) -> HotBuild:
    """Make a module by a recipe.

    Raises:
        PlanishError: LLVM does not survive it.
    """
    made = in_child(partial(_made, ir, recipe), HotBuild, _LIMITS)
    if isinstance(made, End):
        raise PlanishError(f"LLVM does not survive {recipe.passes or 'making code'}: {made.detail}")
    return made


def _begun(ir: str | bytes) -> tuple[bytes, dict[str, str]]:
    with closing(single(whole_backend().parse(ir))) as module:
        begin(module, (), BEGIN)
        texts, processors = module.definitions().texts(), sorted(set(_PROCESSOR.findall(module.text())))
        identities = {name: content_hash(f"{processors} {plain_text(text)}") for name, text in texts.items()}
        return module.bitcode(), {name: identity for name, identity in identities.items() if name}


def _after(begun: bytes, recipe: ModuleRecipe) -> bytes | None:
    with closing(single(whole_backend().parse(begun))) as module:
        try:
            end(module, recipe)
            return module.bitcode()
        except (PassError, IRError):
            return None


def _finished(begun: bytes, recipe: ModuleRecipe) -> HotBuild | None:
    with closing(single(whole_backend().parse(begun))) as module:
        try:
            end(module, recipe)
            return HotBuild(module.object_code(), module.bitcode())
        except (PassError, IRError):
            return None


def _made(ir: str, recipe: ModuleRecipe) -> HotBuild:
    with closing(single(whole_backend().parse(ir))) as module:
        begin(module, (), recipe.passes)
        end(module, recipe)
        return HotBuild(module.object_code(), module.bitcode())
