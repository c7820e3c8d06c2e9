"""Dispatch: calls of compiled kernels from Python that cost a fraction of a microsecond.

Machine code finds the kernel. It is made by LLVM once in a process, on first use. CPython calls it as a
built-in function. It reads NumPy's arrays where NumPy's C interface has them, and looks for a plan whose
operands are of the same class, type, shape and strides. A plan is run by machine code, or handed to another
function with the same arguments. Where there is no plan, or the memory of its kernel is in use by another
thread, the call goes to the table's fallback.

A table is a record of 64-bit words: [mask, index of the first operand, fallback, buckets...]; where the first
operand is at 1, the subscripts are at 0. A plan is a record too, see `PLAN`; plans in one bucket are a list.
An operand is [type, dimensions, address of the extents, address of the strides].
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import DTYPES, TensorType
from planish.levels.loops.reference.inputs import aligned
from planish.levels.loops.runtime.kernels import Kernel, LaunchRecord

# Arrays

Array = NDArray[Any]


@dataclass(frozen=True)
class ArraySpec:
    """Shape, element type and strides of an array without gaps, its dimensions in any order.

    Args:
        shape: the extents as the caller sees them.
        strides: bytes between neighbors along each dimension.
        dtype: the element type's name.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @staticmethod
    def of(array: Array) -> ArraySpec:
        """Describe an array.

        Raises:
            ProgramError: its elements do not fill a block of memory, each once.
        """
        spec = ArraySpec(array.shape, array.strides, array.dtype.name)
        if not array.transpose(spec.order).flags.c_contiguous:
            raise ProgramError(f"an array of strides {array.strides}", "Supported: arrays without gaps.")
        return spec

    @staticmethod
    def row_major(shape: tuple[int, ...], dtype: str) -> ArraySpec:
        """Describe a row-major array."""
        return ArraySpec(shape, tuple(DTYPES[dtype] * s for s in TensorType(shape).strides()), dtype)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The dimensions from the slowest to the fastest: transposed so, the array is row-major."""
        wide = [d for d, extent in enumerate(self.shape) if extent > 1]
        slowest_first = sorted(wide, key=lambda d: -self.strides[d])
        if slowest_first == wide:
            return tuple(range(len(self.shape)))
        # An extent of 1 may have any stride, so these come first, where they change nothing.
        return (*(d for d in range(len(self.shape)) if d not in wide), *slowest_first)

    @property
    def tensor(self) -> TensorType:
        """The row-major tensor that it is."""
        return TensorType(tuple(self.shape[d] for d in self.order), self.dtype)

    def empty(self) -> Array:
        """Allocate an array of this kind."""
        rows = np.empty([self.shape[d] for d in self.order], numpy_type(self.dtype))
        return rows.transpose(sorted(range(len(self.order)), key=self.order.__getitem__))

    def fits(self, array: object) -> bool:
        """Return whether something is an array of this kind; strides along extents of 1 do not matter."""
        return (
            # No subclass: its operators may mean something else.
            type(array) is np.ndarray
            and array.shape == self.shape
            and array.dtype == numpy_type(self.dtype)
            and array.dtype.isnative
            and array.flags.aligned
            and all(n == 1 or s == t for n, s, t in zip(self.shape, array.strides, self.strides, strict=True))
        )

    def __str__(self) -> str:
        return f"{numpy_type(self.dtype)}{list(self.shape)} of strides {list(self.strides)}"


# Memory of NumPy's arrays

ARRAY_FIELDS: Mapping[str, int] = {
    "data": 16,
    "nd": 24,
    "extents": 32,
    "strides": 40,
    "descr": 56,
    "flags": 64,
}
"""Offsets of the fields of an array in NumPy's C interface, in bytes."""
ALIGNED = 0x0100
"""The flag of an array whose elements are where the processor likes them."""

_ABI = 0x2000000
_TYPE, _RETURN, _NEW_FROM_DESCR = 2, 76, 94
"""Places in NumPy's table of C functions; extension modules are compiled with them."""
_PYTHONS = (
    "PyObject_Vectorcall", "PyObject_CallNoArgs", "PyUnicode_Compare", "PyEval_SaveThread",
    "PyEval_RestoreThread", "Py_IncRef", "Py_DecRef",
)  # fmt: skip


def addresses() -> Mapping[str, int] | None:
    """Find the functions and classes that the machine code uses.

    Returns:
        Name to address; None where this Python or NumPy may keep objects in another way.
    """
    # Without the GIL objects are laid out in another way, and `busy` would not be a guard.
    usual = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    # With other numbers in each field, so that none can be taken for another.
    arrays = np.zeros((3, 5, 7))[:, 1:, ::2], np.zeros(4, np.float32)
    if not usual or ctypes.sizeof(ctypes.c_void_p) != 8 or not all(map(_is_known, arrays)):
        return None
    table = _numpys()
    if table is None:
        return None
    found: dict[str, int] = {"ARRAY_TYPE": id(np.ndarray), "TEXT_TYPE": id(str)}
    found["PyArray_NewFromDescr"], found["PyArray_Return"] = table[_NEW_FROM_DESCR], table[_RETURN]
    for name in _PYTHONS:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        assert address is not None
        found[name] = address
    return found


def _numpys() -> Any:
    """Find NumPy's table of C functions; None where it is another than the one that is known."""
    try:
        capsule: Any = import_module("numpy._core._multiarray_umath")._ARRAY_API
    except (ImportError, AttributeError):
        return None
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    table = (ctypes.c_void_p * (_NEW_FROM_DESCR + 1)).from_address(address)
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(table[0])()
    # The type is looked up as a check of the whole table: it is the one entry whose value is known otherwise.
    return table if version == _ABI and table[_TYPE] == id(np.ndarray) else None


def _is_known(array: NDArray[Any]) -> bool:
    """Return whether an array has its fields where NumPy's C interface says."""
    start = id(array)

    def word(field: str) -> int:
        return ctypes.c_int64.from_address(start + ARRAY_FIELDS[field]).value

    nd = ctypes.c_int32.from_address(start + ARRAY_FIELDS["nd"]).value
    flags = ctypes.c_int32.from_address(start + ARRAY_FIELDS["flags"]).value
    known = (array.ctypes.data, id(array.dtype), array.ndim, array.flags.num)
    if (word("data"), word("descr"), nd, flags) != known:
        return False
    words = ctypes.c_int64 * nd
    found = tuple(tuple(words.from_address(word(f))) for f in ("extents", "strides"))
    return found == (array.shape, array.strides)


# Machine code

BUCKETS = 3
"""Words of a table before its buckets."""
PLAN = (
    "next",  # the next plan of the bucket, or 0; must be the first
    "subscripts",  # Python's string; 0 for none
    "operands",  # how many
    "operand",  # the first one's record; the others follow
    "hand",  # a function to hand the call to; 0 for a kernel
    "skip",  # how many of the arguments that one does not get
    "type",  # of the result
    "dimensions",
    "extents",
    "strides",  # 0 where the result is row-major
    "entries",
    "entry",  # the first one's address and iterations; the others follow
    "lanes",
    "lane",  # the addresses of the lanes' arguments
    "slots",  # for each operand, and then for the result, its index in the arguments
    "busy",  # whether the memory of the kernel is in use
    "long",  # whether other threads of Python may run meanwhile
    "team",  # a function that runs the entries with other threads; 0 to run them here
)
"""The words of a plan."""


@cache
def dispatch_address() -> int | None:
    """Make the function, and return its address; None where Python or NumPy are not as it needs them."""
    found = addresses()
    if found is None:
        return None
    from planish.levels.loops.codegen.llvm.jit import host_machine, load

    text = Path(__file__).with_name("dispatch.ll").read_text()
    numbers = {f"plan.{name}": index for index, name in enumerate(PLAN)} | dict(ARRAY_FIELDS)
    numbers |= {"ALIGNED": ALIGNED, "BUCKETS": BUCKETS}
    numbers |= {name: found[name] for name in ("ARRAY_TYPE", "TEXT_TYPE")}
    for name, number in numbers.items():
        text = text.replace(f"@{name}@", str(number))
    for name, address in found.items():
        text = text.replace(f"@{name}@", f"inttoptr (i64 {address} to ptr)")
    owner, (address,) = load(text, ["dispatch"], host_machine())
    # Built-in functions made of it may be called until the very end of the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    return address


# Tables

Function = Callable[..., Any]
LONG_S = 1e-5
"""Kernels that take longer let other threads of Python run."""
FLOPS, BYTES = 5e10, 1e10
"""Arithmetic of a core in a second, roughly."""


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
        """Dispatch calls with such operands to a kernel; its program has one output, and no ahead part."""
        dtype = numpy_type(result.dtype)
        lanes, owned = kernel.thread_arguments({})
        launch = LaunchRecord(kernel.code.entries, lanes)
        given = [b.name for b in kernel.tree.buffers if b.kind != "temporary"]
        names = (*kernel.program.inputs, kernel.program.outputs[0])
        strides = 0 if result == ArraySpec.row_major(result.shape, result.dtype) else _words(result.strides)
        entries = [word for e in kernel.code.entries for word in (e.address, e.iterations)]
        program = kernel.program
        kinds = [program.type[name] for name in (*program.inputs, *program.outputs)]
        moved = sum(kind.size * DTYPES[kind.dtype] for kind in kinds)
        # Bound by arithmetic or by memory, whichever takes longer.
        seconds = max(program.flops / FLOPS, moved / BYTES)
        # The machine code has only addresses: what they point to must live as long as the table.
        self._words.kept += [kernel, owned, lanes, launch]
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
            long=int(seconds > LONG_S),
            team=launch.run_once if launch.parallel else 0,
        )

    def add_function(
        self, operands: Sequence[ArraySpec], dtypes: Sequence[np.dtype[Any]], function: Function, *,
        subscripts: str | None = None, skip: int = 0,
    ) -> None:  # fmt: skip
        """Dispatch calls with such operands to a function.

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
        bucket = BUCKETS + (operands[0].shape[0] & self._mask)
        words |= {"operands": len(operands), "operand": self._record(records)}
        words |= {"subscripts": 0 if subscripts is None else subscripts, "next": int(self._words[bucket])}
        plan = self._record([words.get(name, 0) for name in PLAN])
        # Last, when the plan is whole: another thread may look up a call at any moment.
        self._words[bucket] = plan.ctypes.data
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


class CompiledKernel:
    """Computes a program on arrays of fixed shapes, types and strides, with little overhead.

    Calls from several threads at once are safe.

    Args:
        kernel: of a program with one output or more.
        operands: how each input lies, in the program's order; None where all are row-major.
        result: how the output lies; None where it is row-major.

    Attributes:
        kernel: as given.
        operands: how each input lies.
        result: how the first output lies.
    """

    def __init__(
        self, kernel: Kernel, operands: Sequence[ArraySpec] | None = None, result: ArraySpec | None = None
    ) -> None:
        types = kernel.program.type
        rows = {name: ArraySpec.row_major(kind.shape, kind.dtype) for name, kind in types.items()}
        self.kernel = kernel
        self.operands = tuple(operands or (rows[name] for name in kernel.program.inputs))
        self.result = result or rows[kernel.program.outputs[0]]
        self._call = self.generic
        if self.is_direct:
            table = Table(self.generic)
            table.add_kernel(kernel, self.operands, self.result)
            self._call = table.call

    @property
    def is_direct(self) -> bool:
        """Return whether machine code can take calls: there is one output, and nothing is packed ahead."""
        program, code = self.kernel.program, self.kernel.code
        # What is written past the caches must begin at a cache line, and what is packed needs arrays first.
        simple = not code.ahead_entries and not (code.annotated and code.annotated.nontemporal_stores)
        return len(program.outputs) == 1 and simple and bool(self.operands and self.operands[0].shape)

    def __reduce__(self) -> tuple[type[CompiledKernel], tuple[Any, ...]]:
        return CompiledKernel, (self.kernel, self.operands, self.result)

    def __call__(self, *operands: Array) -> Any:
        """Compute the result.

        Args:
            operands: arrays of the kinds that `operands` lists.

        Returns:
            A new array; a scalar where the result has no dimension; a tuple where there are several outputs.

        Raises:
            ProgramError: an operand is not as it must be.
        """
        return self._call(*operands)

    def generic(self, *operands: Array) -> Any:
        """Do the same without machine code that takes the call; it costs some tens of microseconds."""
        check_operands(self.kernel.program.inputs, self.operands, operands)
        program = self.kernel.program
        outputs = {name: aligned(program.type[name]) for name in program.outputs}
        order = self.result.order
        first = outputs[program.outputs[0]].transpose(sorted(range(len(order)), key=order.index))
        inputs = {
            name: array.transpose(spec.order)
            for name, array, spec in zip(program.inputs, operands, self.operands, strict=True)
        }
        self.kernel.bind(inputs, outputs)()
        return results_of([first, *(outputs[name] for name in program.outputs[1:])])


def results_of(outputs: Sequence[Array]) -> Any:
    """Return one output, or a tuple of several; without dimensions as a scalar, as NumPy's reductions do."""
    results = [array[()] for array in outputs]
    return tuple(results) if len(results) > 1 else results[0]


def check_operands(names: Sequence[str], specs: Sequence[ArraySpec], operands: Sequence[object]) -> None:
    """Refuse operands of other kinds than a function was made for.

    Raises:
        ProgramError: there are more or fewer, or one is of another class, shape, type, or strides.
    """
    if len(operands) != len(names):
        raise ProgramError(f"{len(operands)} operands given", f"It takes {len(names)}: {', '.join(names)}.")
    for name, array, spec in zip(names, operands, specs, strict=True):
        if not spec.fits(array):
            message = f"{name} is {_description(array)}; this was made for {spec}"
            raise ProgramError(message, "Convert the array, or make a kernel for such arrays.")


def _description(array: object) -> str:
    if not isinstance(array, np.ndarray):
        return f"of class {type(array).__name__}"
    kind: NDArray[Any] = array
    text = f"{kind.dtype}{list(kind.shape)} of strides {list(kind.strides)}"
    text += "" if kind.flags.aligned else ", not aligned"
    return text if type(array) is np.ndarray else f"a {type(array).__name__} of {text}"
