"""What the level asks of a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

Held = Any
"""An array where the back end keeps it; of no use to another one."""


class BackendError(Exception):
    """A compiler refused a module, or a run of it ended with an error.

    Args:
        message: in one line.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Executable(Protocol):
    """A compiled function."""

    def run(self, arguments: Sequence[Held]) -> Sequence[Held]:
        """Run it, and wait for its end.

        Shapes and types of the arguments are not looked at: XLA checks the bytes alone, and would take others
        of the same number. `planish.hlo.backend.compute` does.

        Raises:
            BackendError: it failed.
        """
        ...


class Backend(Protocol):
    """Compiles and runs, in this process, which it may crash or let hang."""

    @property
    def name(self) -> str:
        """As in `backend=NAME`."""
        ...

    def compile(self, text: str) -> Executable:
        """Compile the `main` of a module; raises BackendError where it is refused."""
        ...

    def put(self, array: NDArray[Any]) -> Held:
        """Copy an array to the back end."""
        ...

    def get(self, held: Held) -> NDArray[Any]:
        """Give an array of the back end, not to be written to."""
        ...
