"""The standard streams, where whoever started the process closed some."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open those that are closed, on nothing.

    Python has no stream where `planish show >&-` closed one, and the next file to be opened would take its
    number: what a library prints would go into the store then.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        _open_on_nothing(number)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _open_on_nothing(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)  # our own processes have these streams too
