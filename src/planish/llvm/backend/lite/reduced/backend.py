"""The back end by llvmlite's public interface alone."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from planish.core import PlanishError, TargetError
from planish.llvm.backend.lite.reduced.context import Context
from planish.llvm.backend.lite.reduced.elements import elements
from planish.llvm.backend.lite.reduced.module import ReducedModule
from planish.llvm.backend.protocol import IRError, PassError
from planish.llvm.backend.reader_errors import invalid, unreadable
from planish.llvm.backend.target_line import is_bitcode, processor, target_line

_HEADLINE = "parsing error\n"
_READER = "<string>"
_SOURCE = re.compile(rb"^source_filename =", re.MULTILINE)
_ESCAPED = re.compile(rb"[^ !#-\[\]-~]")


class ReducedBackend:
    """A back end that runs only what `runs` says; see the protocol `Backend`.

    Here LLVM prints what it warns of, and ends the process on an error of its code generator.
    """

    name = "llvmlite-reduced"
    full = False

    def __init__(self, lifetime: int | None) -> None:
        self.lifetime = lifetime
        self.version = ".".join(map(str, llvm.llvm_version_info))
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        llvm.initialize_native_asmparser()

    def runs(self, pipeline: str) -> bool:
        try:
            elements(pipeline)
        except PassError:
            return False
        return True

    def parse(self, ir: str | bytes, name: str = "module") -> ReducedModule:
        data = ir.encode("utf-8", "surrogateescape") if isinstance(ir, str) else ir
        lines = _source_line(data, name) + target_line(data, _target_text)
        context = Context()
        try:
            module = _read(lines + data, context.ref)
        except UnicodeEncodeError as error:
            context.release()
            what = f"{name} is no UTF-8, and llvmlite's public interface reads nothing else"
            raise IRError(what, "Install LLVM's shared library: apt-get install libllvm22.") from error
        except RuntimeError as error:
            context.release()
            said = str(error).partition(_HEADLINE)[2].replace(_READER, name, 1)
            raise unreadable(name, data, said, self.version, lines.count(b"\n")) from error
        return self._checked(module, context, data, name)

    def _checked(self, module: Any, context: Context, data: bytes, name: str) -> ReducedModule:
        try:
            parsed = ReducedModule(module, _aim(module), context)
            if told := parsed.verify():
                raise invalid(name, data, told, self.version)
        except PlanishError:
            module.close()
            context.release()
            raise
        return parsed


def _source_line(data: bytes, name: str) -> bytes:
    """Name a text that does not name its source, as LLVM's C API does: this reader would write <string>."""
    if is_bitcode(data) or _SOURCE.search(data):
        return b""
    plain = _ESCAPED.sub(lambda found: b"\\%02X" % found[0][0], name.encode("utf-8", "surrogateescape"))
    return b'source_filename = "%b"\n' % plain


def _read(data: bytes, context: Any) -> Any:
    if is_bitcode(data):
        return llvm.parse_bitcode(data, context)
    return llvm.parse_assembly(data.decode("utf-8", "surrogateescape"), context)


def _aim(module: Any) -> Any:
    triple = (module.triple or llvm.get_default_triple()).encode()
    machine = _machine(triple)
    module.triple = triple.decode()
    if not module.data_layout:
        module.data_layout = str(machine.target_data)
    return machine


def _target_text(triple: bytes) -> tuple[bytes, bytes]:
    triple = triple or llvm.get_default_triple().encode()
    return triple, str(_machine(triple).target_data).encode()


@cache
def _machine(triple: bytes) -> Any:
    try:
        target = llvm.Target.from_triple(triple.decode())
    except RuntimeError as error:
        raise TargetError(f"LLVM makes no code for {triple.decode()}: {error}") from error
    return target.create_target_machine(
        cpu=processor(triple).decode(), opt=2, reloc="pic", codemodel="default"
    )
