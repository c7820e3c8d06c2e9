"""Optional interfaces of levels: for a run, for its result, and for the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from planish.core.errors import StoreError
from planish.core.protocols import Executor, Level, Tried
from planish.core.step import Candidate
from planish.core.task import Objective, Task
from planish.core.verdicts import Review

NO_FIGURES: Mapping[str, Any] = MappingProxyType({})
"""What was measured for a description where nothing was."""
NOTES = "notes"
"""Among figures, what the run has to tell of how it measured."""


@runtime_checkable
class SuitsObjectives(Protocol):
    """A level whose programs and objectives depend on each other.

    Clang tells the passes of -O3 more of a C file than it tells those of -Oz; and where a module may answer
    otherwise than before, its error is an objective. Offered by `llvm` and `hlo`; used by `tune`, where the
    task is made.
    """

    def usual_objectives(self, program: Any) -> Sequence[str]:
        """Name the objectives of a program where none is asked for, the first of which leads."""
        ...

    def suited(self, program: Any, objectives: Sequence[Objective]) -> Any:
        """Return the form of a program that is tuned for these objectives, the first of which leads."""
        ...


@runtime_checkable
class SuitsSpaces(Protocol):
    """A level of which one space is searched in another way than the rest.

    One level alone has a space that repeats a paper, which is searched as the paper does. Offered by `hlo`;
    used by `tune`, where no searcher is asked for.
    """

    def usual_searcher(self, task: Any, space: str) -> str:
        """Name the searcher of a task's space; an empty name is the level's default."""
        ...


@runtime_checkable
class KnowsPrograms(Protocol):
    """A level that knows what kind of program it has, and what did well on others like it.

    One level alone has classes of programs, and what it learns is stored with the run: a space, which is made
    anew when the run goes on, could not. Offered by `graph`; used by the loop and its display, and by
    `planish.models.transfer`, at the beginning of a run.
    """

    def introduction(self, task: Task) -> Sequence[str]:
        """List what is known of a task's program by now, in lines; it finds out nothing that takes time.

        It is asked when a run begins, and again while the search goes on: lines are added, and none changes.
        """
        ...

    def learn(self, task: Task, tried: Tried) -> Sequence[Candidate]:
        """Learn for a task from other programs.

        Args:
            task: what is to be tuned.
            tried: canonical text of another program to what was tried on it.

        Returns:
            What a search for the task begins with, the best first; the level keeps nothing of it.
        """
        ...


@runtime_checkable
class CanReplaceBaseline(Protocol):
    """A level whose baseline may answer wrongly, since a compiler's defaults are wrong for a program.

    One level alone has a reference that is no candidate: the runtime without any optimisation. Offered by
    `graph`; used by the loop, where the verification of the baseline fails, and by what is exported.
    """

    def sound(self, task: Task, executor: Executor) -> Any:
        """Find a form of a task's program whose baseline answers rightly; None where there is none.

        Args:
            task: its baseline is wrong.
            executor: has nothing under way, and evaluates the task's candidates.
        """
        ...


Identity = str | int
"""What a candidate makes: a name, or a count where the task asks for that alone and less of it is better."""


@runtime_checkable
class CanIdentify(Protocol):
    """A level that can tell, without measuring, whether two candidates make the same.

    Offered by `graph`, `llvm` and the example of a level; used by the end of a run, which drops steps that do
    nothing.
    """

    def identities(self, task: Task) -> AbstractContextManager[Callable[[Candidate], Identity]]:
        """Return what names a candidate by what it makes of a task's program; it is used within the block.

        Equal names mean that the task's objectives cannot tell the two apart.
        """
        ...


@runtime_checkable
class HasReview(Protocol):
    """A level that looks at finalists once more than by measuring them again.

    Offered by `hlo`, whose candidates may change what a program means, and `graph`; used by the end of a run.
    """

    def review(self, task: Task) -> Review:
        """Return what is done for a task's finalists; it does nothing of it yet."""
        ...


@runtime_checkable
class HasFigures(Level, Protocol):
    """A level that measures what the parts of a candidate do, so that `describe` need not.

    Offered by `llvm` and `graph`; used by the end of a run, which stores the figures, and `planish passes`.
    """

    def figures(self, task: Task, candidate: Candidate, executor: Executor) -> Mapping[str, Any]:
        """Measure, as long as there is patience, and by the deadline in any case.

        Args:
            task: what was tuned, on this machine.
            candidate: what is to be described.
            executor: has nothing under way; it is served other evaluators than it had.

        Returns:
            What `describe` takes, as JSON.
        """
        ...

    def describe(
        self, task: Task, candidate: Candidate, figures: Mapping[str, Any] = NO_FIGURES
    ) -> Mapping[str, str]:
        """Do as `Level.describe`, with figures, and the run's notes; where there are none, a word says so."""
        ...


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
        """Return whether `export` writes it."""
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
        """Return what it knows: name to fact."""
        ...


def describe(
    level: Level,
    task: Task,
    candidate: Candidate,
    figures: Mapping[str, Any],
    notes: Sequence[str] | None = None,
) -> Mapping[str, str]:
    """Show what a candidate does: title to text.

    Args:
        level: of the task.
        task: what was tuned.
        candidate: what is shown.
        figures: what its run measured for that; empty where it did not.
        notes: how its run measured, in sentences; None where that is not known.

    Raises:
        StoreError: the figures are no such figures: they are from a store that is damaged.
    """
    if not isinstance(level, HasFigures):
        return level.describe(task, candidate)
    try:
        return level.describe(task, candidate, figures if notes is None else {**figures, NOTES: [*notes]})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if not figures:
            raise
        told = f"the figures of a finalist cannot be read: {type(error).__name__}: {error}"
        raise StoreError(told, "Tune again.") from error
