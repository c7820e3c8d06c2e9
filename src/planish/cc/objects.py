"""How large an ELF object is: of either byte order, with 32 or 64 bits, for whatever processor."""

from __future__ import annotations

import struct

_MAGIC = b"\x7fELF"
_NO_BITS, _ALLOCATED, _CODE = 8, 2, 4
_CLASSES = {1: ("IIIIHHHHHH", "IIIIII"), 2: ("QQQIHHHHHH", "IIQQQQ")}
"""By class: the header after its first 24 bytes, and the beginning of a section's entry."""


class FormatError(Exception):
    """It is no ELF object."""


def sizes(data: bytes) -> tuple[int, int]:
    """Add up the sections of an object.

    Returns:
        Bytes of code, and of all that is loaded: code, constants and initialised data.

    Raises:
        FormatError: it is no ELF object.
    """
    if data[:4] != _MAGIC or len(data) < 52 or data[4] not in _CLASSES:
        raise FormatError("the object is no ELF file")
    order = "<" if data[5] == 1 else ">"
    head, entry = (struct.Struct(order + form) for form in _CLASSES[data[4]])
    _, _, start, _, _, _, _, width, count, _ = head.unpack_from(data, 24)
    if start and not count:  # too many for the header: the first section's size tells
        count = entry.unpack_from(data, start)[5]
    code = loaded = 0
    for i in range(count):
        _, kind, flags, _, _, size = entry.unpack_from(data, start + i * width)
        if flags & _ALLOCATED and kind != _NO_BITS:
            loaded += size
            code += size if flags & _CODE else 0
    return code, loaded
