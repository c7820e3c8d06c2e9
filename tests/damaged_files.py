"""Files with flipped bits, as a bad disk leaves them."""

import struct
from pathlib import Path


def with_flipped_bits(path: Path, place: int, change: int) -> Path:
    """Write a file beside one, which differs in the bits of a byte; the index of the byte wraps around."""
    data, damaged = bytearray(path.read_bytes()), path.with_name(f"damaged{path.suffix}")
    data[place % len(data)] ^= change
    damaged.write_bytes(data)
    return damaged


def damage_zip(path: Path) -> None:
    """Damage the compressed data of a zip file, and not its directory."""
    data = bytearray(path.read_bytes())
    data[30 + sum(struct.unpack("<HH", data[26:30]))] = 0xFF  # a block of a type that does not exist
    path.write_bytes(data)
