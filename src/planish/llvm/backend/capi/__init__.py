"""Modules by LLVM's C API, wherever its functions lie: in a shared library, or inside another one."""

from planish.llvm.backend.capi.backend import CBackend
from planish.llvm.backend.capi.bindings import Address, Functions
from planish.llvm.backend.capi.llvm_session import LlvmSession, Pipelines, version
from planish.llvm.backend.capi.signatures import NAMES, Signatures

__all__ = ["NAMES", "Address", "CBackend", "Functions", "LlvmSession", "Pipelines", "Signatures", "version"]
