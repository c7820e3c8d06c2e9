"""Memory between two pages that must not be touched."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = mmap.PAGESIZE
_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@dataclass
class Block:
    """Some bytes at the end of their pages, or at the start; what is left of the pages must stay as it is.

    Args:
        pages: all bytes between the guards.
        start: of those in use.
        size: how many are in use.
    """

    pages: NDArray[np.uint8]
    start: int
    size: int

    @property
    def address(self) -> int:
        """Where the bytes in use are."""
        return self.pages.ctypes.data + self.start

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The bytes in use."""
        return self.pages[self.start : self.start + self.size]

    def around(self) -> bytes:
        """The bytes that are not in use."""
        return self.pages[: self.start].tobytes() + self.pages[self.start + self.size :].tobytes()


@dataclass
class Arena:
    """Gives blocks, each between two guard pages; after `clear` it gives the same ones again."""

    _free: dict[int, list[NDArray[np.uint8]]] = field(default_factory=dict[int, list[Any]])
    _used: list[NDArray[np.uint8]] = field(default_factory=list[Any])

    def block(self, size: int, *, at_end: bool, align: int, fill: NDArray[np.uint8]) -> Block:
        """Return a block.

        Args:
            size: in bytes.
            at_end: whether it ends at a guard page, as nearly as its alignment lets it.
            align: its address is a multiple of this.
            fill: what its pages hold, repeated.
        """
        count = max(1, -(-size // PAGE))
        known = self._free.setdefault(count, [])
        pages = known.pop() if known else _mapped(count)
        self._used.append(pages)
        pages[:] = np.resize(fill, pages.size)
        start = (pages.size - size) // align * align if at_end else 0
        return Block(pages, start, size)

    def clear(self) -> None:
        """Take all blocks back."""
        for pages in self._used:
            self._free[pages.size // PAGE].append(pages)
        self._used.clear()


def _mapped(count: int) -> NDArray[np.uint8]:
    size = (count + 2) * PAGE
    access = mmap.PROT_READ | mmap.PROT_WRITE
    address = _libc.mmap(None, size, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert address is not None
    assert address != _FAILED, "no memory"
    for guard in (address, address + size - PAGE):
        assert _libc.mprotect(guard, PAGE, 0) == 0
    memory = (ctypes.c_uint8 * (count * PAGE)).from_address(address + PAGE)
    return np.ctypeslib.as_array(memory)
