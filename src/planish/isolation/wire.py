"""What an executor and its workers say to each other: pickles, each after its length."""

import os
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from planish.core import Candidate, PlanishError
from planish.isolation.cage import Cage
from planish.isolation.dial import Dial
from planish.isolation.guard import Answer, WorkerClock

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Setup:
    """The first message to a worker: how it shall live.

    Args:
        import_path: where it finds modules.
        memory_bytes: what it may have beyond its start.
        clock: makes the clock that its evaluators are given.
    """

    import_path: Sequence[str]
    memory_bytes: int
    clock: Callable[[Dial], WorkerClock]


@dataclass(frozen=True)
class Make:
    """Make an evaluator from its pickled spec, in a cage, and drop the one before.

    The cage comes apart: to read a spec loads libraries, whose threads could not be confined later.
    """

    serial: int
    spec: bytes
    cage: Cage | None = None


@dataclass(frozen=True)
class Chunk:
    """Evaluate these, in this order."""

    positions: Sequence[int]
    candidates: Sequence[Candidate]


@dataclass(frozen=True)
class Made:
    """The evaluator of this serial number is there, or could not be made.

    Args:
        serial: as in `Make`.
        notes: what the evaluator has to tell the user.
        error: why there is none.
        traceback: of the error.
    """

    serial: int
    notes: tuple[str, ...] = ()
    error: PlanishError | None = None
    traceback: str = ""


Reply = Made | Answer


def encode(message: Any) -> bytes:
    """Write a message as it goes over a pipe."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


def send(descriptor: int, frame: bytes) -> None:
    """Write all of an encoded message."""
    view = memoryview(frame)
    while view:
        # A pipe takes what fits, 64 KiB by default, and tells how much.
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> Any:
    """Wait for the next message and read it.

    Raises:
        EOFError: the other side is gone.
    """
    (length,) = _LENGTH.unpack(_exactly(descriptor, _LENGTH.size))
    return pickle.loads(_exactly(descriptor, length))


def _exactly(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


class Decoder:
    """Takes bytes as they come, and gives the messages that are complete."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Add bytes; give each message that they complete."""
        self._data += data
        while len(self._data) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._data)[0]
            # The rest comes with a later read: a pipe knows no messages.
            if len(self._data) < end:
                return
            body = bytes(self._data[_LENGTH.size : end])
            del self._data[:end]
            yield pickle.loads(body)
