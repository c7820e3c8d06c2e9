"""Where Python and NumPy keep what the machine code reads, and whether they do so here."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIELDS: Mapping[str, int] = {"data": 16, "nd": 24, "extents": 32, "strides": 40, "descr": 56, "flags": 64}
"""Where NumPy's C interface has the fields of an array, in bytes."""
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
    # Without the GIL objects are laid out in another way, and `busy` would be no guard.
    usual = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    if not usual or ctypes.sizeof(ctypes.c_void_p) != 8 or not _is_layout_known():
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


def _is_layout_known() -> bool:
    # With other numbers in each field, so that none can be taken for another.
    return all(_is_known(a) for a in (np.zeros((3, 5, 7))[:, 1:, ::2], np.zeros(4, np.float32)))


def _is_known(array: NDArray[Any]) -> bool:
    """Whether an array has its fields where NumPy's C interface says."""
    start = id(array)

    def word(field: str) -> int:
        return ctypes.c_int64.from_address(start + FIELDS[field]).value

    nd = ctypes.c_int32.from_address(start + FIELDS["nd"]).value
    flags = ctypes.c_int32.from_address(start + FIELDS["flags"]).value
    known = (array.ctypes.data, id(array.dtype), array.ndim, array.flags.num)
    if (word("data"), word("descr"), nd, flags) != known:
        return False
    words = ctypes.c_int64 * nd
    placed = tuple(tuple(words.from_address(word(f))) for f in ("extents", "strides"))
    return placed == (array.shape, array.strides)
