"""Worker process: `python -m planish.sandbox.worker COMMANDS REPLIES CLOCK LIFELINE`.

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
from planish.sandbox.limits import UNUSABLE
from planish.sandbox.plain_data import DataError, ErrorData, write_all
from planish.sandbox.protocol import (
    DEVICE_LOST,
    STAGE_CLOCK_BYTES,
    Chunk,
    CreateEvaluator,
    EvaluationReply,
    EvaluatorReady,
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
            write_all(replies, encode_reply(_creation_failed(serial, error)))
            return
        if isinstance(message, CreateEvaluator):
            serial = message.serial
            del evaluator  # before the next one is made: it may hold much memory
            evaluator = _create(message, replies, clock)
        elif isinstance(message, Chunk) and evaluator is not None:
            _evaluate(evaluator, message, replies, clock)


def _create(message: CreateEvaluator, replies: int, clock: WorkerClock) -> Evaluator | None:
    try:
        unenforced = apply_sandbox(message.sandbox, clock.folders()) if message.sandbox else ()
        evaluator: Evaluator = pickle.loads(message.spec)()  # made by the executor itself, as all commands
        notes = tuple(map(str, evaluator.notes)) if isinstance(evaluator, HasNotes) else ()
    except Exception as error:  # noqa: BLE001  (the parent raises it)
        write_all(replies, encode_reply(_creation_failed(message.serial, error)))
        return None
    write_all(replies, encode_reply(EvaluatorReady(message.serial, (*unenforced, *notes))))
    return evaluator


def _evaluate(evaluator: Evaluator, chunk: Chunk, replies: int, clock: WorkerClock) -> None:
    myself = os.getpid()
    for position, candidate in zip(chunk.positions, chunk.candidates, strict=True):
        outcome, seconds = evaluate_one(evaluator, candidate, clock)
        if os.getpid() != myself:
            os._exit(0)  # the evaluated code forked, and this is the child
        write_all(replies, _encoded(EvaluationReply(position, outcome, seconds)))
        if isinstance(outcome, Failed) and outcome.reason == DEVICE_LOST:
            os._exit(UNUSABLE)


def _encoded(reply: EvaluationReply) -> bytes:
    """Encode a reply; values of the wrong types become a failure of the candidate."""
    try:
        return encode_reply(reply)
    except DataError as error:
        outcome = Failed("worker", "no outcome", f"what the evaluator gave cannot be sent: {error}")
        return encode_reply(EvaluationReply(reply.position, outcome, reply.seconds))


def _creation_failed(serial: int, error: Exception) -> EvaluatorReady:
    """Return the reply that creating the evaluator failed; a `PlanishError` is sent unchanged."""
    data = ErrorData.of(error)
    if isinstance(error, PlanishError):
        return EvaluatorReady(serial, error=data)
    if isinstance(error, MemoryError):
        what = f"a worker may not have as much memory as this takes: {error}".removesuffix(": ")
        shown: PlanishError = TargetError(what, "Give smaller sizes.")
    else:
        shown = PlanishError(
            f"a worker cannot make its evaluator: {type(error).__name__}: {error}",
            "What is sent to workers must be importable there: not of __main__, no lambda, no closure.",
        )
    return EvaluatorReady(serial, error=replace(ErrorData.of(shown), traceback=data.traceback))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]])
