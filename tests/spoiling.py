"""Files that a bad disk has left."""

import struct
from pathlib import Path


def changed(path: Path, place: int, change: int) -> Path:
    """Write a file beside one, which differs in the bits of a byte; the place is counted around."""
    data, damaged = bytearray(path.read_bytes()), path.with_name(f"damaged{path.suffix}")
    data[place % len(data)] ^= change
    damaged.write_bytes(data)
    return damaged


def spoil(path: Path) -> None:
    """Spoil a zip file such that only the reader of what is compressed can see it, and not that of zip."""
    data = bytearray(path.read_bytes())
    data[30 + sum(struct.unpack("<HH", data[26:30]))] = 0xFF  # a block of a type that does not exist
    path.write_bytes(data)
