"""Work in a forked child, so that what LLVM does there (crash, exit, hang, leak) ends the child alone."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from planish.isolation.confinement import cap_memory

_OURS = 70  # EX_SOFTWARE: an exception in our own code
_SAID = 2000


@dataclass(frozen=True)
class Ended:
    """A child that ended before its work was done.

    Args:
        hung: whether its time was up.
        why: the signal or exit code, and the last that it said.
    """

    hung: bool
    why: str


def in_child(work: Callable[[], str], folder: Path, seconds: int, memory_bytes: int) -> str | Ended:
    """Do work in a forked child; this process must have no other threads that matter to it.

    Args:
        work: gives what the child answers.
        folder: where the answer, and what the child says, are kept.
        seconds: of the processor, after which the child is killed.
        memory_bytes: that the child may have beyond this process's.

    Raises:
        RuntimeError: the work raised an exception.
    """
    answer, said = folder / "answer", folder / "said"
    with warnings.catch_warnings():
        # With other threads, a fork may find a lock held for ever; LLVM's work takes none of theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _work_and_exit(work, answer, said, seconds, memory_bytes)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0 and answer.exists():
        text = answer.read_text()
        answer.unlink()
        return text
    told = said.read_text(errors="replace")[-_SAID:].strip()
    if code == _OURS:
        raise RuntimeError(f"in a child: {told}")
    ending = signal.strsignal(-code) if code < 0 else f"exit code {code}"
    return Ended(code in (-signal.SIGXCPU, -signal.SIGKILL), f"{ending}: {told}" if told else str(ending))


def _work_and_exit(
    work: Callable[[], str], answer: Path, said: Path, seconds: int, memory_bytes: int
) -> NoReturn:
    code = _OURS
    try:
        _confine(said, seconds, memory_bytes)
        answer.write_text(work())
        code = 0
    finally:
        if code:
            traceback.print_exc(file=sys.__stderr__)
        os._exit(code)


def _confine(said: Path, seconds: int, memory_bytes: int) -> None:
    """Say everything into a file, and live within limits; the kernel keeps them, whatever LLVM does."""
    faulthandler.disable()
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    cap_memory(memory_bytes)
