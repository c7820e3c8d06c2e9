"""Modules by LLVM's C API, wherever its functions lie: in a shared library, or inside another one."""

from planish.llvm.backend.capi.backend import CBackend
from planish.llvm.backend.capi.bindings import Address, Functions
from planish.llvm.backend.capi.llvm_session import Pipelines, Session, version
from planish.llvm.backend.capi.signatures import NAMES, Signatures

__all__ = ["NAMES", "Address", "CBackend", "Functions", "Pipelines", "Session", "Signatures", "version"]
