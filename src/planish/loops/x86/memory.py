"""Executable memory that is never writable and executable at once."""

import ctypes
import mmap

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value


class ExecutableMemory:
    """Machine code, mapped for execution until this object goes.

    The pages are written first and made read-execute then (W^X).

    Args:
        code: position-independent machine code.

    Raises:
        OSError: the system refuses the mapping.
    """

    def __init__(self, code: bytes) -> None:
        self.size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        address = _libc.mmap(None, self.size, writable, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if address is None or address == _FAILED:
            raise OSError(ctypes.get_errno(), "no memory for machine code")
        self.address: int = address
        ctypes.memmove(address, code, len(code))
        if _libc.mprotect(address, self.size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "the system does not let memory become executable")

    def __del__(self) -> None:
        if hasattr(self, "address"):
            _libc.munmap(self.address, self.size)
