"""Functions of a module one by one, by LLVM's C API: instruction counts, attributes, linkage and calls."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from ctypes import byref, c_size_t, c_uint, c_void_p, string_at
from dataclasses import dataclass
from functools import cached_property

from planish.levels.llvm.bindings.c_api import COUNT, COUNT_OF_ONE, Functions

_FEATURES = b"target-features"
_UNCOUNTED = (
    b"llvm.lifetime.start",
    b"llvm.lifetime.end",
    b"llvm.assume",
    b"llvm.experimental.noalias.scope.decl",
)


class InstructionCounter:
    """Counts the instructions of modules.

    LLVM counts all but debug intrinsics, in one call. The calls that make no code are then taken away:
    an intrinsic is only ever called, so each use of its declaration is one such call.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._all = functions.bind(COUNT, (c_uint, c_void_p))
        self._of_one = functions.bind(COUNT_OF_ONE, (c_uint, c_void_p))
        self._uncounted = {functions.LLVMLookupIntrinsicID(name, len(name)) for name in _UNCOUNTED}

    def __call__(self, module: int) -> int:
        """Count the instructions of a module's definitions."""
        return self._all(module) - sum(1 for _ in self._calls(module))

    def of_each(self, module: int, definitions: Iterable[int]) -> dict[int, int]:
        """Count the instructions of each of some definitions of a module."""
        found = {handle: self._of_one(handle) for handle in definitions}
        for use in self._calls(module):
            block = self._functions.LLVMGetInstructionParent(self._functions.LLVMGetUser(use))
            function: int = self._functions.LLVMGetBasicBlockParent(block)
            if function in found:
                found[function] -= 1
        return found

    def _calls(self, module: int) -> Iterator[int]:
        """Yield the uses that are calls of what makes no code."""
        functions = self._functions
        for function in _chain(functions.LLVMGetFirstFunction(module), functions.LLVMGetNextFunction):
            if functions.LLVMGetIntrinsicID(function) in self._uncounted:
                yield from _chain(functions.LLVMGetFirstUse(function), functions.LLVMGetNextUse)


def _chain(first: int, following: Callable[[int], int]) -> Iterator[int]:
    """Yield what LLVM lists by its first, and by what follows each."""
    while first:
        yield first
        first = following(first)


WITHOUT = "elim-avail-extern"
"""The pass that makes declarations of what was left out."""
FUNCTION = 0xFFFFFFFF  # LLVMAttributeFunctionIndex
_AVAILABLE_EXTERNALLY = 1  # LLVMAvailableExternallyLinkage
_OWN = (_AVAILABLE_EXTERNALLY, 8, 9)  # and LLVMInternalLinkage, LLVMPrivateLinkage
_BODY = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)


_FINAL = (0, 8, 9)  # LLVMExternalLinkage, LLVMInternalLinkage, LLVMPrivateLinkage
_ALIKE = (b"target-cpu", b"target-features", b"tune-cpu")
_APART = (
    "optnone", "noinline", "alwaysinline", "strictfp", "naked", "presplitcoroutine", "sanitize_address",
    "sanitize_thread", "sanitize_memory", "sanitize_hwaddress", "safestack", "shadowcallstack",
)  # fmt: skip


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
        found = ((self._name(handle), handle) for handle in self._defined())
        return {name: handle for name, handle in found if name}

    def mark(self, names: Iterable[str], attribute: str) -> None:
        """Add an attribute to functions."""
        made = self.functions.LLVMCreateEnumAttribute(self.context, self._kind(attribute), 0)
        for name in names:
            self.functions.LLVMAddAttributeAtIndex(self.by_name[name], FUNCTION, made)

    def unmark(self, names: Iterable[str], attribute: str) -> None:
        """Take an attribute away from those of some functions that are still defined."""
        kind = self._kind(attribute)
        for name in names:
            if name in self.by_name:
                self.functions.LLVMRemoveEnumAttributeAtIndex(self.by_name[name], FUNCTION, kind)

    def change(self, names: Iterable[str], change: str) -> None:
        """Change an attribute of those of some functions that are defined.

        Args:
            names: of the functions.
            change: `KEY=VALUE` sets an attribute, `-NAME` takes one away, and `+FEATURE` adds a feature of
                the processor.
        """
        if change.startswith("-"):
            self.unmark(names, change[1:])
            return
        key, _, value = change.encode().partition(b"=")
        for handle in (self.by_name[name] for name in names if name in self.by_name):
            if change.startswith("+"):
                features = self._text(handle, _FEATURES)
                self._set(handle, _FEATURES, b",".join([features, key]) if features else key)
            else:
                self._set(handle, key, value)

    def _set(self, handle: int, key: bytes, value: bytes) -> None:
        made = self.functions.LLVMCreateStringAttribute(self.context, key, len(key), value, len(value))
        self.functions.LLVMAddAttributeAtIndex(handle, FUNCTION, made)

    def having(self, attribute: str) -> frozenset[str]:
        """Name the definitions that have an attribute."""
        kind = self._kind(attribute)
        has = self.functions.LLVMGetEnumAttributeAtIndex
        return frozenset(name for name, handle in self.by_name.items() if has(handle, FUNCTION, kind))

    def exported(self) -> frozenset[str]:
        """Name the functions and variables that are defined for other modules, too."""
        functions = self.functions
        variables = (each for each in self._all("Global") if not functions.LLVMIsDeclaration(each))
        found = (*self._defined(), *variables)
        return frozenset(self._name(each) for each in found if functions.LLVMGetLinkage(each) not in _OWN)

    def instructions(self) -> dict[str, int]:
        """Count the instructions of each, as of a module."""
        counts = self.count.of_each(self.module, self.by_name.values())
        return {name: counts[handle] for name, handle in self.by_name.items()}

    def texts(self, module: str = "") -> dict[str, str]:
        """Print each; numbers in it may be other ones in another module.

        Printing one by one would have LLVM number the whole module each time.

        Args:
            module: the module's text, where it is printed already.
        """
        text = module or self.functions.take(self.functions.LLVMPrintModuleToString(self.module))
        bodies = zip(self._defined(), _BODY.findall(text), strict=True)
        return {self._name(handle): body for handle, body in bodies}

    def leave_out(self, names: Collection[str]) -> None:
        """Mark these as another module's; aliases need theirs. `WITHOUT` then removes their bodies."""
        aliases = map(self.functions.LLVMAliasGetAliasee, self._all("GlobalAlias"))
        resolvers = map(self.functions.LLVMGetGlobalIFuncResolver, self._all("GlobalIFunc"))
        needed = frozenset((*aliases, *resolvers))
        for name in names:
            if (handle := self.by_name[name]) not in needed:
                # LLVM's verifier refuses an available_externally function in a comdat.
                self.functions.LLVMSetComdat(handle, None)
                self.functions.LLVMSetLinkage(handle, _AVAILABLE_EXTERNALLY)

    def _kind(self, attribute: str) -> int:
        name = attribute.encode()
        kind: int = self.functions.LLVMGetEnumAttributeKindForName(name, len(name))
        return kind

    def _all(self, kind: str) -> Iterator[int]:
        first, following = (getattr(self.functions, f"LLVMGet{which}{kind}") for which in ("First", "Next"))
        return _chain(first(self.module), following)

    def _defined(self) -> Iterator[int]:
        return (handle for handle in self._all("Function") if not self.functions.LLVMIsDeclaration(handle))

    def _name(self, handle: int) -> str:
        length = c_size_t()
        start = self.functions.LLVMGetValueName2(handle, byref(length))
        return string_at(start, length.value).decode("utf-8", "surrogateescape")

    def callers(self) -> Mapping[str, Tally[str]]:
        """Return for each definition those that call it directly, and how often each does."""
        names = {handle: name for name, handle in self.by_name.items()}
        return {name: Tally(self._callers(handle, names)) for name, handle in self.by_name.items()}

    def inlinable(self) -> tuple[frozenset[str], frozenset[str]]:
        """List the functions that may be marked `noinline`, and those that may be marked `alwaysinline`.

        The second are none that another module may replace, and none where functions of the module are for
        different processors, since LLVM inlines on request without looking.
        """
        functions, by_name = self.functions, self.by_name
        apart = [self.having(attribute) for attribute in _APART]
        plain = frozenset(by_name).difference(*apart)
        kinds = {tuple(self._text(handle, key) for key in _ALIKE) for handle in by_name.values()}
        key = b"SemanticInterposition"
        replaceable = functions.LLVMGetModuleFlag(self.module, key, len(key))
        if len(kinds) > 1 or any(apart[3:]) or replaceable:
            return plain, frozenset()
        return plain, frozenset(name for name in plain if functions.LLVMGetLinkage(by_name[name]) in _FINAL)

    def _callers(self, callee: int, names: Mapping[int, str]) -> Iterator[str]:
        functions = self.functions
        for use in _chain(functions.LLVMGetFirstUse(callee), functions.LLVMGetNextUse):
            user = functions.LLVMGetUser(use)
            is_call = functions.LLVMIsACallInst(user) or functions.LLVMIsAInvokeInst(user)
            # A call may use a function as an argument, too, which is not a call of it.
            if is_call and functions.LLVMGetCalledValue(user) == callee:
                block = functions.LLVMGetInstructionParent(user)
                if (caller := functions.LLVMGetBasicBlockParent(block)) in names:
                    yield names[caller]

    def _text(self, handle: int, key: bytes) -> bytes:
        functions, length = self.functions, c_uint()
        attribute = functions.LLVMGetStringAttributeAtIndex(handle, FUNCTION, key, len(key))
        if not attribute:
            return b""
        return string_at(functions.LLVMGetStringAttributeValue(attribute, byref(length)), length.value)
