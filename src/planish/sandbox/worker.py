"""Worker process: `python -m planish.sandbox.worker COMMANDS REPLIES DIAL LIFELINE`.

The arguments are the descriptors that the parent opened for it. Standard output and error belong to the
evaluated code, so that nothing it prints can be taken for a reply.
"""

import mmap
import os
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace

from planish.core import Evaluator, Failed, HasNotes, PlanishError, TargetError
from planish.sandbox.confinement import apply_sandbox, cap_memory, die_with_parent, settle
from planish.sandbox.plain_data import DataError, ErrorData, write_all
from planish.sandbox.protocol import (
    STAGE_CLOCK_BYTES,
    Answer,
    Chunk,
    Made,
    Make,
    Setup,
    StageClockShm,
    WorkerClock,
    encode_reply,
    evaluate_one,
    receive_command,
)


def main(descriptors: Sequence[int]) -> None:
    """Serve until the parent closes the pipe."""
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    commands, replies, memory, lifeline = descriptors
    die_with_parent(lifeline)
    settle()
    setup = receive_command(commands)
    assert isinstance(setup, Setup)
    # The parent's own, so that plug-ins and files beside a script are found here, too.
    sys.path[:] = setup.import_path
    cap_memory(setup.memory_bytes)
    _serve(commands, replies, setup.clock(StageClockShm(memoryview(mmap.mmap(memory, STAGE_CLOCK_BYTES)))))
    # Python would take 0.1 s to take its libraries down; the parent ends and removes whatever is left.
    os._exit(0)


def _serve(commands: int, replies: int, clock: WorkerClock) -> None:
    evaluator: Evaluator | None = None
    serial = 0
    while True:
        try:
            message = receive_command(commands)
        except EOFError:
            return
        except Exception as error:  # noqa: BLE001  (the parent raises it)
            write_all(replies, encode_reply(_broken(serial, error)))
            return
        if isinstance(message, Make):
            serial = message.serial
            del evaluator  # before the next one is made: it may hold much memory
            evaluator = _make(message, replies, clock)
        elif isinstance(message, Chunk) and evaluator is not None:
            _evaluate(evaluator, message, replies, clock)


def _make(message: Make, replies: int, clock: WorkerClock) -> Evaluator | None:
    try:
        lacking = apply_sandbox(message.sandbox, clock.folders()) if message.sandbox else ()
        evaluator: Evaluator = pickle.loads(message.spec)()  # made by the executor itself, as all commands
        notes = tuple(map(str, evaluator.notes)) if isinstance(evaluator, HasNotes) else ()
    except Exception as error:  # noqa: BLE001  (the parent raises it)
        write_all(replies, encode_reply(_broken(message.serial, error)))
        return None
    write_all(replies, encode_reply(Made(message.serial, (*lacking, *notes))))
    return evaluator


def _evaluate(evaluator: Evaluator, chunk: Chunk, replies: int, clock: WorkerClock) -> None:
    myself = os.getpid()
    for position, candidate in zip(chunk.positions, chunk.candidates, strict=True):
        outcome, seconds = evaluate_one(evaluator, candidate, clock)
        if os.getpid() != myself:
            os._exit(0)  # the evaluated code forked, and this is the child
        write_all(replies, _encoded(Answer(position, outcome, seconds)))


def _encoded(reply: Answer) -> bytes:
    """Encode an answer; one whose values are not of their types is a failure of its candidate."""
    try:
        return encode_reply(reply)
    except DataError as error:
        outcome = Failed("worker", "no outcome", f"what the evaluator gave cannot be sent: {error}")
        return encode_reply(Answer(reply.position, outcome, reply.seconds))


def _broken(serial: int, error: Exception) -> Made:
    """Return the reply that there is no evaluator, and why; an error made for the user stays as it is."""
    data = ErrorData.of(error)
    if isinstance(error, PlanishError):
        return Made(serial, error=data)
    if isinstance(error, MemoryError):
        what = f"a worker may not have as much memory as this takes: {error}".removesuffix(": ")
        shown: PlanishError = TargetError(what, "Give smaller sizes.")
    else:
        shown = PlanishError(
            f"a worker cannot make its evaluator: {type(error).__name__}: {error}",
            "What is sent to workers must be importable there: not of __main__, no lambda, no closure.",
        )
    return Made(serial, error=replace(ErrorData.of(shown), traceback=data.traceback))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]])
