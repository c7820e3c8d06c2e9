"""A Python process of ours in a session of its own; with a folder for its temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE

from planish.isolation.scratch import Scratch

__all__ = ["DEVNULL", "PIPE", "ChildProcess"]
_STORE, _SERVER = "PLANISH_STORE", "PG"


def _environment() -> dict[str, str]:
    """Return the environment without the store's location and what reaches a PostgreSQL server."""
    return {
        name: value for name, value in os.environ.items() if name != _STORE and not name.startswith(_SERVER)
    }


class ChildProcess:
    """Runs a module; what it is, what it started and its folder end by `kill`.

    It is given its descriptors as arguments, and a last one, the lifeline: with that it shall call
    `die_with_parent`.

    Args:
        module: by name.
        descriptors: that it inherits.
        stdin, stdout, stderr: `PIPE`, `DEVNULL`, or a descriptor.

    Attributes:
        process: it.
        scratch: the folder.
    """

    def __init__(
        self, module: str, descriptors: Sequence[int] = (), *, stdin: int, stdout: int, stderr: int
    ) -> None:
        self.scratch = Scratch()
        lifeline, self._held = os.pipe()
        inherited = (*descriptors, lifeline)
        self.process = subprocess.Popen(
            # -P: a file in the folder where planish was started must not be imported in place of a module.
            [sys.executable, "-P", "-m", module, *map(str, inherited)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=inherited,
            start_new_session=True,
            env={**_environment(), "TMPDIR": str(self.scratch.path)},
        )
        # The child's end: the lifeline breaks only when no other process holds the parent's.
        os.close(lifeline)

    def kill(self) -> None:
        """End it and all that it started; called once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        # Without it the dead child stays as a zombie.
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what nobody reads any more
                    pipe.close()
        os.close(self._held)
        self.scratch.remove()  # who litters from a session of its own, keeps it
