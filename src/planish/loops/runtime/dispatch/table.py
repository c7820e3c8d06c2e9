"""Tables of plans, and the built-in functions that look calls up in them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.loops.lang.numpy_types import numpy_type
from planish.loops.lang.program import DTYPES
from planish.loops.runtime.arrayspec import ArraySpec
from planish.loops.runtime.dispatch.code import BUCKETS, PLAN, dispatch_address
from planish.loops.runtime.kernels import Job, Kernel

Function = Callable[..., Any]
LONG_S = 1e-5
"""Kernels that take longer let other threads of Python run."""
FLOPS, BYTES = 5e10, 1e10
"""What a core does in a second, roughly."""


class _Words(np.ndarray[Any, Any]):
    """The words of a table, with all that they point to; CPython gives it to the machine code."""

    kept: list[Any]


class Table:
    """Plans by their operands.

    Args:
        fallback: is called with the arguments of a call that no plan fits, or whose plan is in use.
        subscripts: whether the first argument is a text that belongs to the plan.

    Attributes:
        call: the built-in function; the fallback itself where there can be no machine code.
        count: how many plans there are.
    """

    def __init__(self, fallback: Function, *, subscripts: bool = False) -> None:
        self._mask = 255 if subscripts else 0
        self._words = np.zeros(BUCKETS + self._mask + 1, np.int64).view(_Words)
        self._words.kept = [fallback]
        self._words[:BUCKETS] = self._mask, int(subscripts), id(fallback)
        address = dispatch_address()
        self.call = fallback if address is None else _built_in(address, self._words)
        self.count = 0

    def add_kernel(
        self, kernel: Kernel, operands: Sequence[ArraySpec], result: ArraySpec, subscripts: str | None = None
    ) -> None:
        """Let a kernel take calls with such operands; its program has one output, and no ahead part."""
        dtype = numpy_type(result.dtype)
        lanes, owned = kernel.lane_arguments({})
        job = Job(kernel.code.entries, lanes)
        given = [b.name for b in kernel.tree.buffers if b.kind != "temporary"]
        names = (*kernel.program.inputs, kernel.program.outputs[0])
        strides = 0 if result == ArraySpec.row_major(result.shape, result.dtype) else _words(result.strides)
        entries = [word for e in kernel.code.entries for word in (e.address, e.iterations)]
        # The machine code has only addresses: what they point to must live as long as the table.
        self._words.kept += [kernel, owned, lanes, job]
        self._add(
            operands,
            [numpy_type(spec.dtype) for spec in operands],
            subscripts,
            type=dtype,
            dimensions=len(result.shape),
            extents=_words(result.shape),
            strides=strides,
            entries=len(kernel.code.entries),
            entry=_words(entries),
            lanes=len(lanes),
            lane=_words([ctypes.addressof(lane) for lane in lanes]),
            slots=_words([given.index(name) for name in names]),
            long=int(_seconds(kernel) > LONG_S),
            team=job.run_once if job.parallel else 0,
        )

    def add_function(
        self, operands: Sequence[ArraySpec], dtypes: Sequence[np.dtype[Any]], function: Function, *,
        subscripts: str | None = None, skip: int = 0,
    ) -> None:  # fmt: skip
        """Let a function take calls with such operands.

        Args:
            operands: how they lie.
            dtypes: their types, the very objects that arrays have.
            function: is called with the arguments.
            subscripts: the text before the operands.
            skip: how many of the arguments it is not given.
        """
        self._add(operands, dtypes, subscripts, hand=function, skip=skip)

    def _add(
        self,
        operands: Sequence[ArraySpec],
        dtypes: Sequence[np.dtype[Any]],
        subscripts: str | None,
        **words: Any,
    ) -> None:
        records: list[Any] = []
        for spec, dtype in zip(operands, dtypes, strict=True):
            records += [dtype, len(spec.shape), _words(spec.shape), _words(spec.strides)]
        place = BUCKETS + (operands[0].shape[0] & self._mask)
        words |= {"operands": len(operands), "operand": self._record(records)}
        words |= {"subscripts": 0 if subscripts is None else subscripts, "next": int(self._words[place])}
        plan = self._record([words.get(name, 0) for name in PLAN])
        # Last, when the plan is whole: another thread may look up a call at any moment.
        self._words[place] = plan.ctypes.data
        self.count += 1

    def _record(self, values: Sequence[Any]) -> NDArray[Any]:
        """Make words of numbers, records, and Python's objects, and keep all of them."""
        self._words.kept.append(values)
        record = _words([_word(value) for value in values])
        self._words.kept.append(record)
        return record


def _word(value: Any) -> int:
    if isinstance(value, int):
        return value
    return value.ctypes.data if isinstance(value, np.ndarray) else id(value)


def _words(values: Sequence[int]) -> NDArray[Any]:
    return np.array(values, np.int64)


def _seconds(kernel: Kernel) -> float:
    """Guess how long a kernel runs."""
    program = kernel.program
    sizes = [program.type[name] for name in (*program.inputs, *program.outputs)]
    moved = sum(kind.size * DTYPES[kind.dtype] for kind in sizes)
    # Bound by arithmetic or by memory, whichever takes longer.
    return max(program.flops / FLOPS, moved / BYTES)


class _Definition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL = 0x0080


@cache
def _definition(address: int) -> _Definition:
    """Make the definition that all built-in functions of this machine code have in common."""
    definition = _Definition(b"call", address, _FASTCALL, None)
    # CPython looks at it when a function goes, which may be at the very end of the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return definition


def _built_in(address: int, words: _Words) -> Function:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    create = new(("PyCFunction_NewEx", ctypes.pythonapi))
    return create(ctypes.addressof(_definition(address)), words, None)
