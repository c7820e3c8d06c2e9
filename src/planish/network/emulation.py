"""Programs that run a library once, for another processor: qemu emulates it.

The program is linked from the library's own sections and needs no C library. It reads all inputs from its
standard input, and writes all outputs, each up to a multiple of the alignment.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from planish.core import ProgramError, Target
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import read_object
from planish.network.dispatch import SYSTEM_CALLS, system_call
from planish.network.elf import architecture_name, link
from planish.network.library import Built
from planish.network.model import Array
from planish.network.plan import rounded
from planish.network.runtime import describe_code
from planish.network.verification import Answers
from planish.sandbox.tool import run_tool

MOST_S = 600.0
"""Seconds that qemu may take for one call."""

_TEXT = """
declare hidden i64 @model_syscall(i64, i64, i64, i64, i64, i64) nounwind
declare hidden i32 @model_run(ptr, ptr, ptr) nounwind

; Reads or writes all bytes; ends the process where that fails.
define internal void @transfer(i64 %call, i64 %descriptor, ptr %memory, i64 %size) nounwind {
start:
  br label %look
look:
  %done = phi i64 [0, %start], [%sum, %moved]
  %left = sub i64 %size, %done
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %move, label %over
move:
  %place = getelementptr i8, ptr %memory, i64 %done
  %address = ptrtoint ptr %place to i64
  %count = call i64 @model_syscall(i64 %call, i64 %descriptor, i64 %address, i64 %left, i64 0, i64 0)
  %works = icmp sgt i64 %count, 0
  br i1 %works, label %moved, label %fails
moved:
  %sum = add i64 %done, %count
  br label %look
fails:
  %exit = call i64 @model_syscall(i64 @SYS_EXIT@, i64 100, i64 0, i64 0, i64 0, i64 0)
  unreachable
over:
  ret void
}

define void @_start() nounwind "stackrealign" {
  %inputs = alloca [@INPUTS@ x ptr]
  %outputs = alloca [@OUTPUTS@ x ptr]
  %end = call i64 @model_syscall(i64 @SYS_BRK@, i64 0, i64 0, i64 0, i64 0, i64 0)
  %up = add i64 %end, 63
  %begin = and i64 %up, -64
  %wanted = add i64 %begin, @BYTES@
  %given = call i64 @model_syscall(i64 @SYS_BRK@, i64 %wanted, i64 0, i64 0, i64 0, i64 0)
  %memory = inttoptr i64 %begin to ptr
@ADDRESSES@
  %workspace = getelementptr i8, ptr %memory, i64 @WORKSPACE@
  %results = getelementptr i8, ptr %memory, i64 @INPUT_BYTES@
  call void @transfer(i64 @SYS_READ@, i64 0, ptr %memory, i64 @INPUT_BYTES@)
  %code = call i32 @model_run(ptr %inputs, ptr %outputs, ptr %workspace)
  %wide = zext i32 %code to i64
  %ran = icmp eq i32 %code, 0
  br i1 %ran, label %write, label %exit
write:
  call void @transfer(i64 @SYS_WRITE@, i64 1, ptr %results, i64 @OUTPUT_BYTES@)
  br label %exit
exit:
  %never = call i64 @model_syscall(i64 @SYS_EXIT@, i64 %wide, i64 0, i64 0, i64 0, i64 0)
  unreachable
}
"""


def emulator(target: Target) -> str | None:
    """Return the program that runs programs of another processor; None where none is installed, or can."""
    if target.processor == "x86-64-v4":
        return None  # qemu has no AVX-512
    return shutil.which(f"qemu-{architecture_name(target.toolchain['triple'])}")


def emulated_answers(built: Built, qemu: str) -> Answers:
    """Return what runs a library on another processor's emulation.

    Args:
        built: the library.
        qemu: the program that emulates.
    """

    def answers(feeds: Sequence[Sequence[Array]]) -> Sequence[Sequence[Array]]:
        with tempfile.TemporaryDirectory(prefix="planish-network-") as folder:
            program = Path(folder) / "run"
            with program.open("wb") as file:
                file.writelines(_linked(built))
            program.chmod(0o700)
            return [_answer(built.manifest["outputs"], [qemu, "-cpu", "max", str(program)], f) for f in feeds]

    return answers


def _answer(ports: Sequence[Mapping[str, Any]], command: Sequence[str], feed: Sequence[Array]) -> list[Array]:
    given = b"".join(array.tobytes().ljust(rounded(array.nbytes), b"\0") for array in feed)
    try:
        ran = run_tool(command, seconds=MOST_S, given=given)
    except (OSError, TimeoutError) as error:
        raise ProgramError(f"the library cannot be emulated: {error}") from error
    size = sum(map(_bytes, ports))
    if ran.code or len(ran.output) != size:
        why = describe_code(ran.code) if ran.code > 0 else ran.message.strip() or f"it ends with {ran.code}"
        raise ProgramError(f"the emulated library cannot be run: {why}", "Report it as a defect.")
    found, offset = list[Array](), 0
    for port in ports:
        count = prod(port["shape"])
        array = np.frombuffer(ran.output, port["dtype"], count, offset)
        found.append(array.reshape(port["shape"]))
        offset += _bytes(port)
    return found


def _bytes(port: Mapping[str, Any]) -> int:
    return rounded(prod(port["shape"]) * np.dtype(port["dtype"]).itemsize)


def _linked(built: Built) -> list[bytes]:
    """Link a program of a library's sections."""
    numbers = SYSTEM_CALLS[architecture_name(built.machine.triple)]
    rows, offset, sizes = list[str](), 0, list[int]()
    for kind in ("inputs", "outputs"):
        start = offset
        for index, port in enumerate(built.manifest[kind]):
            name = f"%{kind}{index}"
            rows += [
                f"  {name} = getelementptr i8, ptr %memory, i64 {offset}",
                f"  {name}_ = getelementptr ptr, ptr %{kind}, i64 {index}",
                f"  store ptr {name}, ptr {name}_",
            ]
            offset += _bytes(port)
        sizes.append(offset - start)
    values: dict[str, object] = {f"SYS_{name}": number for name, number in numbers.items()}
    values |= {"INPUTS": max(1, len(built.manifest["inputs"])), "OUTPUTS": len(built.manifest["outputs"])}
    values |= {"INPUT_BYTES": sizes[0], "OUTPUT_BYTES": sizes[1], "WORKSPACE": offset}
    values |= {"BYTES": offset + rounded(built.arena.size) + 64, "ADDRESSES": "\n".join(rows)}
    text = _TEXT
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    sections = [*built.sections, *read_object(jit.object_code(text, built.machine), "run")]
    if not any(symbol.name == "model_syscall" for section in sections for symbol in section.symbols):
        sections.append(system_call(built.machine))
    return link(sections, built.weights, built.architecture, "run", ["_start"], entry="_start")
