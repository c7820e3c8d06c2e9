"""A module's definitions one by one: which of them passes may change, and of which code is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from ctypes import byref, c_size_t, string_at
from dataclasses import dataclass
from functools import cached_property

from planish.llvm.backend.capi.bindings import Functions
from planish.llvm.backend.capi.counting import InstructionCounter

WITHOUT = "elim-avail-extern"
"""The pass that makes declarations of what was left out."""
FUNCTION = 0xFFFFFFFF  # LLVMAttributeFunctionIndex
_AVAILABLE_EXTERNALLY = 1  # LLVMAvailableExternallyLinkage
_KEPT_OUT = ("optnone", "noinline")
"""LLVM runs passes on no function that is `optnone`, and wants it to be `noinline`."""
_BODY = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Definitions:
    """The functions that a module defines.

    Args:
        functions: LLVM's.
        module: its handle.
        context: its context's.
        count: counts instructions.
    """

    functions: Functions
    module: int
    context: int
    count: InstructionCounter

    @cached_property
    def by_name(self) -> Mapping[str, int]:
        """Name to handle, in the module's order; functions without a name are left out."""
        found = ((self._name(handle), handle) for handle in self._all("Function"))
        return {name: handle for name, handle in found if name and not self._is_declared(handle)}

    def keep_out(self, names: Collection[str]) -> None:
        """Have passes leave these as they are; none of them may be kept out already."""
        for attribute in _KEPT_OUT:
            self.mark(names, attribute)

    def let_in(self, names: Collection[str], noinline: Collection[str]) -> None:
        """Undo what `keep_out` did.

        Args:
            names: those that were kept out.
            noinline: those that were `noinline` before.
        """
        self.unmark(names, "optnone")
        self.unmark([name for name in names if name not in noinline], "noinline")

    def mark(self, names: Iterable[str], attribute: str) -> None:
        """Give functions an attribute."""
        made = self.functions.LLVMCreateEnumAttribute(self.context, self._kind(attribute), 0)
        for name in names:
            self.functions.LLVMAddAttributeAtIndex(self.by_name[name], FUNCTION, made)

    def unmark(self, names: Iterable[str], attribute: str) -> None:
        """Take an attribute away from those of some functions that are still defined."""
        kind = self._kind(attribute)
        for name in names:
            if name in self.by_name:
                self.functions.LLVMRemoveEnumAttributeAtIndex(self.by_name[name], FUNCTION, kind)

    def having(self, attribute: str) -> frozenset[str]:
        """Name the definitions that have an attribute."""
        kind = self._kind(attribute)
        has = self.functions.LLVMGetEnumAttributeAtIndex
        return frozenset(name for name, handle in self.by_name.items() if has(handle, FUNCTION, kind))

    def instructions(self) -> dict[str, int]:
        """Count the instructions of each, as of a module."""
        counts = self.count.of_each(self.module, self.by_name.values())
        return {name: counts[handle] for name, handle in self.by_name.items()}

    def texts(self) -> dict[str, str]:
        """Print each; numbers in it may be other ones in another module.

        Printing one by one would have LLVM number the whole module each time.
        """
        text = self.functions.take(self.functions.LLVMPrintModuleToString(self.module))
        handles = [handle for handle in self._all("Function") if not self._is_declared(handle)]
        return {self._name(handle): body for handle, body in zip(handles, _BODY.findall(text), strict=True)}

    def leave_out(self, names: Collection[str]) -> None:
        """Mark these as another module's; aliases need theirs. `WITHOUT` then removes their bodies."""
        needed = self._aliased()
        for name in names:
            if (handle := self.by_name[name]) not in needed:
                # LLVM's verifier refuses an available_externally function in a comdat.
                self.functions.LLVMSetComdat(handle, None)
                self.functions.LLVMSetLinkage(handle, _AVAILABLE_EXTERNALLY)

    def _kind(self, attribute: str) -> int:
        name = attribute.encode()
        kind: int = self.functions.LLVMGetEnumAttributeKindForName(name, len(name))
        return kind

    def _aliased(self) -> frozenset[int]:
        aliases = map(self.functions.LLVMAliasGetAliasee, self._all("GlobalAlias"))
        resolvers = map(self.functions.LLVMGetGlobalIFuncResolver, self._all("GlobalIFunc"))
        return frozenset((*aliases, *resolvers))

    def _all(self, kind: str) -> Iterator[int]:
        first: Callable[[int], int] = getattr(self.functions, f"LLVMGetFirst{kind}")
        following: Callable[[int], int] = getattr(self.functions, f"LLVMGetNext{kind}")
        handle = first(self.module)
        while handle:
            yield handle
            handle = following(handle)

    def _is_declared(self, handle: int) -> bool:
        return bool(self.functions.LLVMIsDeclaration(handle))

    def _name(self, handle: int) -> str:
        length = c_size_t()
        start = self.functions.LLVMGetValueName2(handle, byref(length))
        return string_at(start, length.value).decode("utf-8", "surrogateescape")
