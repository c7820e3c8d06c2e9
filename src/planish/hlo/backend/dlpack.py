"""Arrays by DLPack, those of bfloat16 among them, which NumPy does not read from it."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

_CPU = 1
_UNSIGNED, _BFLOAT = 1, 4


class _Tensor(ctypes.Structure):
    """The beginning of DLPack's `DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
    ]


class _Exchanged:
    """A capsule in the form that NumPy asks for."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_asked: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)


def array_of(capsule: Any) -> NDArray[Any]:
    """Give the array of a DLPack capsule on the CPU; its memory is shared, and not to be written to."""
    tensor = _tensor(capsule)
    if tensor.code != _BFLOAT:
        return np.from_dlpack(_Exchanged(capsule))
    tensor.code = _UNSIGNED  # the same bits, of a type that NumPy knows
    return np.from_dlpack(_Exchanged(capsule)).view(ml_dtypes.bfloat16)


def _tensor(capsule: Any) -> _Tensor:
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return _Tensor.from_address(read(capsule, b"dltensor"))
