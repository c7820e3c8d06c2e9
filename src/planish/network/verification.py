"""Verification of a library: its answers beside those of ONNX Runtime without optimizations.

The library runs in a forked child, which is confined, on arrays between pages that cannot be accessed. One
for another processor runs under qemu, as a program that is linked from the library's own sections and needs
no C library: it reads all inputs from its standard input, and writes all outputs, each up to a multiple of
the alignment.

Where the two differ, answers in float64 by ONNX's own implementation of each operator decide which of them is
off: they share no code with planish or ONNX Runtime, and have no rounding that matters.
"""

from __future__ import annotations

import ctypes
import mmap
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import ProgramError, Target
from planish.levels.graph.sessions import RefusedError, SessionSettings
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import read_object
from planish.network.ir import Array, Network
from planish.network.library.arena import ALIGNMENT, align_up
from planish.network.library.assembly import Built
from planish.network.library.dispatch import SYSTEM_CALLS, system_call
from planish.network.library.elf import architecture_name, link
from planish.network.library.header import describe_code
from planish.network.library.runtime import CompiledNetwork, shaped_outputs
from planish.network.timing import Feed
from planish.sandbox.confinement import SandboxPolicy, apply_sandbox, is_confined
from planish.sandbox.fork_pool import ForkLimits, in_child
from planish.sandbox.limits import ExitStatus
from planish.sandbox.scratch import Scratch
from planish.sandbox.tool import run_tool

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

    from planish.network.reader import SourceModel

Answers = Callable[[Sequence[Sequence[Array]]], Sequence[Sequence[Array]]]
"""Runs a library on sets of inputs; returns the outputs of each."""
INPUT_SETS = 3
"""Random inputs on which answers are compared; where they are emulated, it is one input."""
TOLERANCE = 1e-4
"""Largest difference from ONNX Runtime that is accepted, as a share of the largest number of an output."""
MOST_ROUNDING = 4.0
"""Accepted multiple of the difference that ONNX Runtime's own optimizations make."""
RUN_LIMIT_S = 600.0
"""Seconds of the processor that a library may take for its sets of inputs."""


def verify(
    network: Network, model: SourceModel, tolerance: float, answers: Answers, feeds: Sequence[Feed]
) -> float:
    """Compare a library's answers with those of ONNX Runtime without optimizations.

    Args:
        network: what is computed.
        model: the same, as ONNX.
        tolerance: the largest difference that is accepted; from `TOLERANCE` on, a network that amplifies
            rounding may differ by more, as ONNX Runtime's own answers do.
        answers: runs the library.
        feeds: the inputs.

    Returns:
        The largest difference, as a share of the largest number of its output.

    Raises:
        ProgramError: a difference is larger than the tolerance, an output is not a number where it should be,
            or the library cannot be run.
    """
    found = answers([[feed[name] for name in network.inputs] for feed in feeds])
    session, worst = model.open(SessionSettings(), as_it_is=True), 0.0
    names = [name for name in network.outputs if name not in network.shape_outputs.values()]
    for feed, outputs in zip(feeds, found, strict=True):
        try:
            wanted = session.run(feed)
        except RefusedError as error:
            raise ProgramError(f"ONNX Runtime does not run the model: {error.message}") from error
        for index, (name, output, right) in enumerate(zip(names, outputs, wanted, strict=True)):
            apart, limit = difference(output, np.asarray(right)), tolerance
            if not apart <= limit and tolerance >= TOLERANCE:
                # Where a network amplifies rounding, ONNX Runtime's optimizations change its answers too.
                optimized = model.open(SessionSettings()).run(feed)
                other = difference(np.asarray(optimized[index]), np.asarray(right))
                limit = max(limit, MOST_ROUNDING * other) if np.isfinite(other) else limit
            if not apart <= limit and tolerance >= TOLERANCE:
                # Of a model in float16, ONNX Runtime's answers are rounded in each layer.
                apart, limit = _against_float64(
                    model, feed, index, (output, np.asarray(right)), (apart, limit)
                )
            if not apart <= limit and tolerance >= TOLERANCE:
                error = _quantization_error(model, feed, index, np.asarray(right))
                limit = max(limit, MOST_ROUNDING * error)
            if not apart <= limit:
                inf = "its shape, or which elements are finite"
                seen = f"{apart:.2g} of its largest number" if np.isfinite(apart) else inf
                what = f"output '{name}' differs from ONNX Runtime's: {seen}; the tolerance is {tolerance:g}"
                raise ProgramError(what, "Nothing was written. Report it as a defect, with the model.")
            worst = max(worst, apart)
    return worst


def _quantization_error(model: SourceModel, feed: Feed, index: int, right: Array) -> float:
    """Return how far an output is from that of the model without rounding to steps; 0 where it has none.

    The last bits of a number that is halfway between two steps decide which of them it is rounded to.
    """
    from planish.network.onnx.quantized import without_rounding

    made = without_rounding(model.proto)
    if made is None:
        return 0.0
    try:
        found = replace(model, proto=made).open(SessionSettings(), as_it_is=True).run(feed)[index]
    except RefusedError:
        return 0.0
    apart = difference(np.asarray(found), right)
    return apart if np.isfinite(apart) else 0.0


def _against_float64(
    model: SourceModel, feed: Feed, index: int, outputs: tuple[Array, Array], otherwise: tuple[float, float]
) -> tuple[float, float]:
    """Return the difference of an output from a run in float64, and what is accepted.

    Args:
        model: what is computed.
        feed: its inputs.
        index: of the output.
        outputs: it, and that of ONNX Runtime.
        otherwise: what is returned where there is no such run.
    """
    exact = float64_answers(model.proto, feed) if model.folder is None else None
    if exact is None:
        return otherwise
    ours, theirs = (difference(output, exact[index]) for output in outputs)
    return ours, max(otherwise[1], MOST_ROUNDING * theirs) if np.isfinite(theirs) else otherwise[1]


def difference(found: Array, right: Array) -> float:
    """Return the largest difference as a share of the largest finite number; infinite where NaN differ."""
    if found.shape != right.shape:
        return np.inf
    right = right.astype(np.float64)
    finite = np.isfinite(right)
    with np.errstate(invalid="ignore"):
        same = np.array_equal(np.where(finite, 0, right), np.where(finite, 0, found), equal_nan=True)
    largest = float(np.max(np.abs(right[finite]), initial=0.0)) or 1.0
    apart = float(np.max(np.abs(found[finite] - right[finite]), initial=0.0)) / largest
    return apart if same and not np.isnan(apart) else np.inf


# On this machine

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_CHANGED = -1


class GuardedMemory:
    """Memory between two pages that cannot be accessed.

    Args:
        size: in bytes.
        at_end: whether it ends where the page after it begins; else it begins where the page before it ends.
    """

    def __init__(self, size: int, *, at_end: bool) -> None:
        inner = max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE
        self._pages = mmap.mmap(-1, inner + 2 * mmap.PAGESIZE)
        # What is not written must not look like an answer: all bits set are a NaN.
        self._pages.write(b"\xff" * len(self._pages))
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        for page in (start, start + mmap.PAGESIZE + inner):
            if _libc.mprotect(page, mmap.PAGESIZE, 0):
                raise OSError(ctypes.get_errno(), "the system does not let memory become inaccessible")
        self.address = start + mmap.PAGESIZE + (inner - size if at_end else 0)
        self.bytes: Array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.address))

    def array(self, port: Mapping[str, Any]) -> Array:
        """Return it as an array of a port's shape and type."""
        return self.bytes.view(port["dtype"]).reshape(port["shape"])


def answers_here(folder: Path, manifest: Mapping[str, Any], variant: int = 0) -> Answers:
    """Return what runs a library on this machine.

    Args:
        folder: with the library.
        manifest: of the library, or of the variant.
        variant: its number.
    """

    def answers(feeds: Sequence[Sequence[Array]]) -> Sequence[Sequence[Array]]:
        found = [[_shared(port) for port in manifest["outputs"]] for _ in feeds]

        def work() -> int:
            if not is_confined():
                apply_sandbox(SandboxPolicy.for_code())
            library = CompiledNetwork(folder, variant)
            for number, (feed, outputs) in enumerate(zip(feeds, found, strict=True)):
                if code := _run(library, feed, outputs, at_end=number % 2 == 0):
                    return code
            return 0

        code = in_child(work, int, ForkLimits(RUN_LIMIT_S, 0))
        if isinstance(code, ExitStatus):
            what = f"the library ends its process, as by accesses beyond its arrays: {code.detail}"
            raise ProgramError(what, "Nothing was written. Report it as a defect, with the model.")
        if code:
            why = "an input is changed" if code == _CHANGED else describe_code(code)
            raise ProgramError(f"the library cannot be run: {why}", "Report it as a defect, with the model.")
        return [shaped_outputs(manifest["outputs"], each) for each in found]

    return answers


def _shared(port: Mapping[str, Any]) -> Array:
    """Make an array that a forked child can write."""
    size = prod(port["shape"]) * np.dtype(port["dtype"]).itemsize
    memory = np.frombuffer(mmap.mmap(-1, max(1, size)), np.uint8)
    return memory[:size].view(port["dtype"]).reshape(port["shape"])


def _run(library: CompiledNetwork, feed: Sequence[Array], outputs: Sequence[Array], *, at_end: bool) -> int:
    """Run a library on guarded memory; return its code."""
    given = [GuardedMemory(array.nbytes, at_end=at_end) for array in feed]
    for memory, array in zip(given, feed, strict=True):
        memory.bytes[:] = np.frombuffer(array.tobytes(), np.uint8)
    targets = [GuardedMemory(array.nbytes, at_end=at_end) for array in outputs]
    size = -(-library.manifest["workspace_bytes"] // ALIGNMENT) * ALIGNMENT
    workspace = GuardedMemory(size, at_end=at_end)
    addresses = [memory.address for memory in given], [memory.address for memory in targets]
    if code := library.run_at(*addresses, workspace.address):
        return code
    if any(memory.bytes.tobytes() != array.tobytes() for memory, array in zip(given, feed, strict=True)):
        return _CHANGED
    for output, memory, port in zip(outputs, targets, library.manifest["outputs"], strict=True):
        output[...] = memory.array(port)
    return 0


EMULATION_LIMIT_S = 600.0
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
        with Scratch() as folder:
            program = folder.path / "run"
            with program.open("wb") as file:
                file.writelines(_linked(built))
            program.chmod(0o700)
            return [_answer(built.manifest["outputs"], [qemu, "-cpu", "max", str(program)], f) for f in feeds]

    return answers


def _answer(ports: Sequence[Mapping[str, Any]], command: Sequence[str], feed: Sequence[Array]) -> list[Array]:
    given = b"".join(array.tobytes().ljust(align_up(array.nbytes), b"\0") for array in feed)
    try:
        ran = run_tool(command, seconds=EMULATION_LIMIT_S, given=given)
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
    return shaped_outputs(ports, found)


def _bytes(port: Mapping[str, Any]) -> int:
    return align_up(prod(port["shape"]) * np.dtype(port["dtype"]).itemsize)


def _linked(built: Built) -> list[bytes | memoryview]:
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
    values |= {"BYTES": offset + align_up(built.arena.size) + 64, "ADDRESSES": "\n".join(rows)}
    text = _TEXT
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    sections = [*built.sections, *read_object(jit.object_code(text, built.machine), "run")]
    if not any(symbol.name == "model_syscall" for section in sections for symbol in section.symbols):
        sections.append(system_call(built.machine))
    return link(sections, built.weights, built.architecture, "run", ["_start"], entry="_start")


# In float64

_NARROW = ("FLOAT", "FLOAT16")
"""Types of ONNX that are computed in float64."""


def float64_answers(model: ModelProto, feed: Mapping[str, Array]) -> Sequence[Array] | None:
    """Compute a model in float64; None where ONNX's reference does not cover one of its operators.

    Args:
        model: with its weights.
        feed: inputs by name.
    """
    from onnx.reference import ReferenceEvaluator

    wide = {
        name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in feed.items()
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ReferenceEvaluator(_widen(model)).run(None, wide)
    except Exception:  # noqa: BLE001 (the reference of an operator raises whatever it likes)
        return None
    return [np.asarray(each) for each in found]


def _widen(model: ModelProto) -> ModelProto:
    """Return a model whose floats are float64."""
    from onnx import TensorProto

    narrow = {getattr(TensorProto, name) for name in _NARROW}
    wide = deepcopy(model)
    del wide.graph.value_info[:]
    for port in (*wide.graph.input, *wide.graph.output):
        if port.type.tensor_type.elem_type in narrow:
            port.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in wide.graph.initializer:
        _widen_tensor(tensor, narrow)
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensor(attribute.t, narrow)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i in narrow:
                attribute.i = TensorProto.DOUBLE
    return wide


def _widen_tensor(tensor: TensorProto, narrow: set[Any]) -> None:
    from onnx import numpy_helper

    if tensor.data_type in narrow:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
