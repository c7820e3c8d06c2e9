"""Which function calls which, and what may be inlined on request."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from ctypes import byref, c_uint, string_at
from dataclasses import dataclass

from planish.llvm.backend.capi.definitions import FUNCTION, Definitions

_EXTERNAL, _LOCAL = 0, (8, 9)  # LLVMExternalLinkage; LLVMInternalLinkage, LLVMPrivateLinkage
_ALIKE = ("target-cpu", "target-features", "tune-cpu")
_APART = (
    "optnone", "noinline", "alwaysinline", "strictfp", "naked", "presplitcoroutine", "sanitize_address",
    "sanitize_thread", "sanitize_memory", "sanitize_hwaddress", "safestack", "shadowcallstack",
)  # fmt: skip


@dataclass(frozen=True)
class Calls:
    """The direct calls among a module's definitions.

    Args:
        definitions: of the module.
    """

    definitions: Definitions

    def callers(self) -> Mapping[str, Tally[str]]:
        """Give for each definition who calls it, and how often."""
        names = {handle: name for name, handle in self.definitions.by_name.items()}
        return {
            name: Tally(self._callers(handle, names)) for name, handle in self.definitions.by_name.items()
        }

    def free(self) -> tuple[frozenset[str], frozenset[str]]:
        """Name those that may be told not to be inlined, and those that may be told to be.

        The second are none that another module may replace, and none where functions of the module are for
        different processors, since LLVM inlines on request without looking.
        """
        apart = [self.definitions.having(attribute) for attribute in _APART]
        plain = frozenset(self.definitions.by_name).difference(*apart)
        kinds = {self._processor(handle) for handle in self.definitions.by_name.values()}
        if len(kinds) > 1 or any(apart[3:]) or self._is_replaceable():
            return plain, frozenset()
        return plain, frozenset(name for name in plain if self._is_final(name))

    def _callers(self, callee: int, names: Mapping[int, str]) -> Iterator[str]:
        functions = self.definitions.functions
        use = functions.LLVMGetFirstUse(callee)
        while use:
            user = functions.LLVMGetUser(use)
            if _is_call(functions.LLVMIsACallInst, functions.LLVMIsAInvokeInst, user) and (
                # A call may use a function as an argument, too, which is no call of it.
                functions.LLVMGetCalledValue(user) == callee
            ):
                block = functions.LLVMGetInstructionParent(user)
                if (caller := functions.LLVMGetBasicBlockParent(block)) in names:
                    yield names[caller]
            use = functions.LLVMGetNextUse(use)

    def _is_final(self, name: str) -> bool:
        linkage: int = self.definitions.functions.LLVMGetLinkage(self.definitions.by_name[name])
        return linkage == _EXTERNAL or linkage in _LOCAL

    def _is_replaceable(self) -> bool:
        key = b"SemanticInterposition"
        return bool(self.definitions.functions.LLVMGetModuleFlag(self.definitions.module, key, len(key)))

    def _processor(self, handle: int) -> tuple[bytes, ...]:
        return tuple(self._text(handle, key.encode()) for key in _ALIKE)

    def _text(self, handle: int, key: bytes) -> bytes:
        functions, length = self.definitions.functions, c_uint()
        attribute = functions.LLVMGetStringAttributeAtIndex(handle, FUNCTION, key, len(key))
        if not attribute:
            return b""
        return string_at(functions.LLVMGetStringAttributeValue(attribute, byref(length)), length.value)


def _is_call(call: Callable[[int], int], invoke: Callable[[int], int], user: int) -> bool:
    return bool(call(user) or invoke(user))
