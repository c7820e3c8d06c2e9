"""Protocol between an executor and its workers: messages with a length in front, over pipes.

Commands are pickles: the executor itself writes them, they hold any spec, candidate and clock, and the worker
that reads them runs code for the executor anyway. Replies come from a process that runs what is evaluated. So
they are plain data (`planish.isolation.plain_data`), which is checked when it is read.
"""

import os
import pickle
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from planish.core import Candidate, Failed, Measured
from planish.core.checked_outcome import checked
from planish.isolation.cage import Cage
from planish.isolation.dial import Dial
from planish.isolation.guard import Answer, WorkerClock
from planish.isolation.plain_data import DataError, ErrorData, dumps, framed, loads

REPLY_BYTES = 16 << 20
"""Size limit of a reply, in bytes."""
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
    """

    serial: int
    notes: tuple[str, ...] = ()
    error: ErrorData | None = None


Reply = Made | Answer


def encode_command(message: Setup | Make | Chunk) -> bytes:
    """Write a message to a worker as it goes over the pipe."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)  # see the module's docstring
    return _LENGTH.pack(len(body)) + body


def encode_reply(reply: Reply) -> bytes:
    """Write a message of a worker as it goes over the pipe.

    Raises:
        DataError: it holds something else than its types say.
    """
    return framed(dumps(reply, Reply))


def decode_reply(body: bytes) -> Reply:
    """Read a message of a worker.

    Raises:
        DataError: it is malformed, or holds numbers that are not finite, or seconds that are negative.
    """
    reply: Reply = loads(body, Reply)
    if isinstance(reply, Answer):
        # A comparison with NaN is false, and an integer may be larger than any float.
        if not all(0 <= seconds <= sys.float_info.max for seconds in reply.seconds.values()):
            raise DataError("seconds that are negative or not finite")
        if isinstance(reply.outcome, Measured) and isinstance(bad := checked(reply.outcome), Failed):
            raise DataError(f"{bad.reason}: {bad.detail:.100}")
    return reply


def send(descriptor: int, frame: bytes) -> None:
    """Write all of an encoded message."""
    view = memoryview(frame)
    while view:
        # A pipe takes what fits, 64 KiB by default, and tells how much.
        view = view[os.write(descriptor, view) :]


def receive_command(descriptor: int) -> Any:
    """Wait for the next message to a worker and read it.

    Raises:
        EOFError: the executor is gone.
    """
    (length,) = _LENGTH.unpack(_exactly(descriptor, _LENGTH.size))
    return pickle.loads(_exactly(descriptor, length))  # see the module's docstring


def _exactly(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
