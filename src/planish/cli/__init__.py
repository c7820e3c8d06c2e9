"""The command line: `planish COMMAND`; one file for each command, and nothing heavy until one runs."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all this
if TYPE_CHECKING:
    from typing import Any

    from planish.cli.commands import app

__all__ = ["app", "main"]


_COMPILERS = {"cc": False, "c++": True}


def main() -> None:
    """Run the command that the process was started with."""
    if len(sys.argv) > 1 and sys.argv[1] in _COMPILERS:
        from planish.cc.command import leave

        leave(sys.argv[2:], plus=_COMPILERS[sys.argv[1]])
    _main()


def _main() -> None:
    from planish.cli.signals import leave_at_once

    leave_at_once()  # first of all: a signal may come while the commands are imported
    import gc

    gc.disable()  # what is imported is no garbage
    from planish.cli.commands import app

    gc.freeze()
    gc.enable()
    try:
        app()
    finally:
        gc.freeze()  # the interpreter's end looks for garbage, which takes longer than some commands


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'planish.cli' has no attribute '{name}'")
    from planish.cli.commands import app

    return app
