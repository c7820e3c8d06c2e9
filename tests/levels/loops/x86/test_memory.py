"""Machine code lies in memory that is never writable and executable at once, also where it is used again."""

import ctypes
import platform
from pathlib import Path

import pytest

from planish.levels.loops.codegen.x86.compile import ExecutableMemory

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or not Path("/proc/self/maps").exists(),
    reason="x86-64 machine code on Linux",
)


def returning(number: int) -> bytes:
    """Write a function that returns a number."""
    return b"\xb8" + number.to_bytes(4, "little") + b"\xc3"


def call(memory: ExecutableMemory) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int)(memory.address)()


def access(address: int) -> str:
    """Find what the process may do with a page, by the system's own account."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, mode, *_ = line.split()
        first, end = (int(word, 16) for word in area.split("-"))
        if first <= address < end:
            return mode
    raise AssertionError(f"no page at {address:x}")


def test_code_runs_and_cannot_be_written() -> None:
    memory = ExecutableMemory(returning(42))
    assert call(memory) == 42
    assert access(memory.address) == "r-xp"


def test_memory_that_is_used_again_holds_the_new_code_alone() -> None:
    first = ExecutableMemory(returning(1) + b"\xcc" * 100)
    address = first.address
    del first
    second = ExecutableMemory(returning(2))
    assert second.address == address
    assert call(second) == 2
    assert access(address) == "r-xp"
    assert ctypes.string_at(address, second.size) == returning(2).ljust(second.size, b"\0")


def test_code_in_use_keeps_its_memory() -> None:
    kept = [ExecutableMemory(returning(i)) for i in range(40)]
    assert len({memory.address for memory in kept}) == 40
    assert [call(memory) for memory in kept] == list(range(40))
    addresses = [memory.address for memory in kept]
    del kept
    again = [ExecutableMemory(returning(100 + i)) for i in range(40)]
    assert set(addresses) & {memory.address for memory in again}
    assert [call(memory) for memory in again] == list(range(100, 140))
