"""Verification of a library: its answers beside those of ONNX Runtime without optimizations.

The library runs in a forked child, which is confined, on arrays between pages that cannot be accessed. One
for another processor is run by qemu (`planish.network.emulation`).
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import ProgramError
from planish.network.measuring import Feed, session_of
from planish.network.model import Array, Network
from planish.network.plan import ALIGNMENT
from planish.network.runtime import CompiledNetwork, describe_code
from planish.sandbox.confinement import SandboxPolicy, apply_sandbox, is_confined
from planish.sandbox.fork_pool import ForkLimits, in_child
from planish.sandbox.limits import ExitStatus

if TYPE_CHECKING:
    from onnx import ModelProto

Answers = Callable[[Sequence[Sequence[Array]]], Sequence[Sequence[Array]]]
"""Runs a library on sets of inputs; returns the outputs of each."""
INPUT_SETS = 3
"""Random inputs on which answers are compared; where they are emulated, it is one input."""
TOLERANCE = 1e-4
"""Largest difference from ONNX Runtime that is accepted, as a share of the largest number of an output."""
MOST_ROUNDING = 4.0
"""How often the difference is accepted that ONNX Runtime's own optimizations make."""
MOST_S = 600.0
"""Seconds of the processor that a library may take for its sets of inputs."""


def verify(
    network: Network, model: ModelProto, tolerance: float, answers: Answers, feeds: Sequence[Feed]
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
        ProgramError: a difference is larger than the tolerance, an output is no number where it should be, or
            the library cannot be run.
    """
    found = answers([[feed[name] for name in network.inputs] for feed in feeds])
    session, worst = session_of(model.SerializeToString(), optimized=False), 0.0
    for feed, outputs in zip(feeds, found, strict=True):
        try:
            wanted = session.run(None, dict(feed))
        except Exception as error:  # the runtime has an own class for each status
            first = str(error).strip().partition("\n")[0]
            raise ProgramError(f"ONNX Runtime does not run the model on random inputs: {first}") from error
        for name, output, right in zip(network.outputs, outputs, wanted, strict=True):
            apart, limit = difference(output, np.asarray(right)), tolerance
            if not apart <= limit and tolerance >= TOLERANCE:
                # Where a network amplifies rounding, ONNX Runtime's optimizations change its answers too.
                optimized = session_of(model.SerializeToString(), optimized=True)
                other = difference(np.asarray(optimized.run([name], dict(feed))[0]), np.asarray(right))
                limit = max(limit, MOST_ROUNDING * other) if np.isfinite(other) else limit
            if not apart <= limit:
                inf = "its shape, or which elements are no finite numbers"
                seen = f"{apart:.2g} of its largest number" if np.isfinite(apart) else inf
                what = f"output '{name}' differs from ONNX Runtime's: {seen}; the tolerance is {tolerance:g}"
                raise ProgramError(what, "Nothing was written. Report it as a defect, with the model.")
            worst = max(worst, apart)
    return worst


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
        at_end: whether it ends where the page behind it begins; else it begins where the page before it ends.
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

        code = in_child(work, int, ForkLimits(MOST_S, 0))
        if isinstance(code, ExitStatus):
            what = f"the library ends its process, as by accesses beyond its arrays: {code.detail}"
            raise ProgramError(what, "Nothing was written. Report it as a defect, with the model.")
        if code:
            why = "an input is changed" if code == _CHANGED else describe_code(code)
            raise ProgramError(f"the library cannot be run: {why}", "Report it as a defect, with the model.")
        return found

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
