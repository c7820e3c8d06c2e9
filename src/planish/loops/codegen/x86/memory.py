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


_spare: dict[int, list[int]] = {}
"""Size to the addresses of mappings that nobody uses: changing one costs less than a new one."""
_SPARE_MAX = 16
"""How many of a size are kept."""
_SPARE_BYTES = 1 << 16
"""Larger ones are not kept."""


class ExecutableMemory:
    """Machine code, executable until this object goes.

    The pages are written first and made read-execute then (W^X).

    Args:
        code: position-independent machine code.

    Raises:
        OSError: the system refuses the mapping.
    """

    def __init__(self, code: bytes) -> None:
        self.size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.address = _writable(self.size)
        ctypes.memmove(self.address, code.ljust(self.size, b"\0"), self.size)
        if _libc.mprotect(self.address, self.size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "the system does not let memory become executable")

    def __del__(self) -> None:
        # When the interpreter ends, the module's names may be gone already; the system unmaps it then.
        if hasattr(self, "address") and globals().get("_spare") is not None:
            spare = _spare.setdefault(self.size, [])
            if self.size <= _SPARE_BYTES and len(spare) < _SPARE_MAX:
                spare.append(self.address)
            else:
                _libc.munmap(self.address, self.size)


def _writable(size: int) -> int:
    access = mmap.PROT_READ | mmap.PROT_WRITE
    try:
        # Taken without asking first: another thread could take the last one in between.
        address = _spare[size].pop()
    except LookupError:
        address = _libc.mmap(None, size, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if address is None or address == _FAILED:
            raise OSError(ctypes.get_errno(), "no memory for machine code") from None
        return address
    if _libc.mprotect(address, size, access):
        raise OSError(ctypes.get_errno(), "the system does not let memory become writable")
    return address
