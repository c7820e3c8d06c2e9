"""What a child is at: noted where its parent can read it, and ended when it takes too long."""

from __future__ import annotations

import hashlib
import mmap
import signal
from collections.abc import Collection

_NOTE_BYTES = 8192
_LENGTH_BYTES = 4
_MOST_BYTES = _NOTE_BYTES - _LENGTH_BYTES
_PATIENCE = 50
"""How many seconds by the clock one of the processor may take."""


def noted(text: str) -> str:
    """Give a text as a note holds it: a long one is cut, and ends with a digest of the whole."""
    data = text.encode()
    if len(data) <= _MOST_BYTES:
        return text
    digest = hashlib.sha256(data).hexdigest()
    return f"{data[: _MOST_BYTES - len(digest) - 1].decode(errors='ignore')} {digest}"


class Note:
    """A text in memory that a parent and its forked children share, as `noted`."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NOTE_BYTES)

    def write(self, text: str) -> None:
        """Replace the text."""
        data = noted(text).encode()
        self._memory[: len(data) + _LENGTH_BYTES] = len(data).to_bytes(_LENGTH_BYTES, "little") + data

    def read(self) -> str:
        """Give the text."""
        end = _LENGTH_BYTES + int.from_bytes(self._memory[:_LENGTH_BYTES], "little")
        return self._memory[_LENGTH_BYTES:end].decode(errors="replace")


class Watchdog:
    """Guards the parts of one piece of work, within a child.

    Before each part the child notes what it is about to do, and sets the timers that kill it. What ended
    a child before is not to be done again.

    Args:
        note: shared with the parent.
        refused: what ended a child at this work, as it was noted.
        seconds: of the processor, for one part; by the clock it may be 50 times as many.
    """

    def __init__(self, note: Note, refused: Collection[str], seconds: float) -> None:
        self._note, self._refused, self._seconds = note, frozenset(refused), seconds

    def enter(self, text: str) -> bool:
        """Note what is done now; False if it must not be."""
        if noted(text) in self._refused:
            return False
        # Before the timers: whatever ends the child now finds the right note.
        self._note.write(text)
        self._limit(self._seconds)
        return True

    def leave(self) -> None:
        """Stop the timers."""
        self._limit(0)

    def _limit(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor: a busy machine refuses nothing
        signal.setitimer(signal.ITIMER_REAL, seconds * _PATIENCE)
