"""What levels may offer to whoever has a result, and to the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from planish.core.step import Candidate
from planish.core.task import Task


@runtime_checkable
class CanCall(Protocol):
    """A level whose candidates can be called from Python, some of them only so.

    Offered by `loops`, some of whose candidates are calls of a library, which have no files, and the example
    of a level; used by results, which are called, and `planish export`.
    """

    def function(self, task: Task, candidate: Candidate) -> Callable[..., Any]:
        """Make what is called with the program's inputs, in their order, and gives its outputs.

        Raises:
            PlanishError: the machine lacks what the candidate needs.
        """
        ...

    def exportable(self, candidate: Candidate) -> bool:
        """Whether `export` writes it."""
        ...


@runtime_checkable
class HasFiles(Protocol):
    """A level whose programs refer to files.

    Offered by `hlo` and `graph`; used by `--file` of `planish validate`, `show` and `export`.
    """

    def digest(self, path: Path) -> str:
        """Name a file or folder by its content, as the level's programs do.

        Raises:
            ProgramError: it cannot be read.
        """
        ...


@runtime_checkable
class ShowsWinners(Protocol):
    """A level that says what a user sees of the winner at the end of a run, and finds in the folder.

    Offered by `llvm`, `hlo` and `graph`, whose winners are files; used by `planish tune`.
    """

    @property
    def telling(self) -> Sequence[str]:
        """The titles of `describe` that tell the most."""
        ...

    def deliver(self, task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write what `planish tune` leaves in the folder where it is run, unless `--export` names another.

        Returns:
            The files; none where winners are nothing that people go on with.

        Raises:
            OSError: a file cannot be written.
        """
        ...


@runtime_checkable
class KnowsMachine(Protocol):
    """A level that knows more of this machine than its processor.

    Offered by `loops`, `llvm`, `hlo` and `graph`; used by `planish targets`.
    """

    def machine(self) -> Mapping[str, str]:
        """Tell what it knows: name to fact."""
        ...
