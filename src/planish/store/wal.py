"""SQLite's write-ahead log: is it as it was left?

Where a process was killed, its log is left behind, and the next one to open the store goes through it.
SQLite takes a frame whose checksum is wrong for the log's end, since a crash may tear the last one. So a byte
that is damaged in the midst would cut off all that was committed after it, and nobody would know.
The format is in https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from planish.store.checksums import damaged

_HEADER = Struct(">8I")  # magic, version, page size, checkpoints, two salts, two sums
_FRAME = Struct(">6I")  # page, pages after a commit (else 0), two salts, two sums
_MAGIC, _BIG = 0x377F0682, 0x377F0683
_PAUSE_S = 0.05

_Sums = tuple[int, int]


@dataclass(frozen=True)
class _Log:
    """A log's contents, and what its header says of them."""

    content: bytes
    order: str
    salts: _Sums
    sums: _Sums
    page: int

    def frames(self) -> Iterator[tuple[int, bool, bool, _Sums]]:
        """Give of each frame where it begins, whether it is of this log, whether it commits, and its sums."""
        for start in range(
            _HEADER.size, len(self.content) - _FRAME.size - self.page + 1, _FRAME.size + self.page
        ):
            _, commits, *salts, one, other = _FRAME.unpack_from(self.content, start)
            yield start, tuple(salts) == self.salts, commits > 0, (one, other)

    def summed(self, start: int, before: _Sums) -> _Sums:
        """Give the sums that a frame should have, from those of the one before."""
        sums = _summed(self.content[start : start + 8], self.order, before)
        data = start + _FRAME.size
        return _summed(self.content[data : data + self.page], self.order, sums)


def check_log(log: Path, label: str) -> None:
    """See that a log that was left behind ends where its writer ended it, or in a frame that is torn.

    Args:
        log: the file; it may be missing.
        label: the store, as it is named to people.

    Raises:
        StoreError: something in the midst is damaged, and what was committed after it would be lost.
    """
    content = _read(log)
    while (what := _damage(content)) is not None:
        time.sleep(_PAUSE_S)  # a process that writes just now has written on by then
        before, content = content, _read(log)
        if content == before:
            raise damaged(label, f"{what} of its log {log.name}")


def _read(log: Path) -> bytes:
    try:
        return log.read_bytes()
    except FileNotFoundError:
        return b""


def _damage(content: bytes) -> str | None:
    """Name what is damaged; None where nothing is, or nothing would be lost."""
    if len(content) <= _HEADER.size + _FRAME.size:
        return None
    magic, _, page, _, salt, other_salt, *sums = _HEADER.unpack_from(content)
    order = ">" if magic == _BIG else "<"
    if magic not in (_MAGIC, _BIG) or list(_summed(content[:24], order, (0, 0))) != sums:
        return "the header"
    log = _Log(content, order, (salt, other_salt), (sums[0], sums[1]), page)
    return _cut(log)


def _cut(log: _Log) -> str | None:
    """Name the frame that SQLite would take for the end, where a commit that is whole comes after it."""
    end, before = "", {log.sums}
    for number, (start, ours, commits, sums) in enumerate(log.frames(), 1):
        should_be = {log.summed(start, each) for each in before} if ours or not end else set[_Sums]()
        whole = ours and sums in should_be
        if end and whole and commits:
            return end
        before = {sums}
        if not whole and not end:
            end = f"frame {number}"
            before |= should_be  # it may be its sums that are damaged
    return None


def _summed(data: bytes, order: str, sums: _Sums) -> _Sums:
    one, other = sums
    words = iter(Struct(f"{order}{len(data) // 4}I").unpack(data))
    # Two words at a time, each sum taking in the other, as the file format has it.
    for even, odd in zip(words, words, strict=True):
        one = (one + even + other) & 0xFFFFFFFF
        other = (other + odd + one) & 0xFFFFFFFF
    return one, other
