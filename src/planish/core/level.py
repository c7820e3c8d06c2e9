"""Level: a kind of program, with all that is particular to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

from planish.core.errors import PlanishError, StoreError
from planish.core.step import Candidate, Step
from planish.core.task import Objective, ProgramT, Target, Task, processor
from planish.core.verdicts import FinalChecks

if TYPE_CHECKING:
    from planish.core.protocols import EvaluatorSpec, Executor, SearchContext, Space

NO_ANALYSIS: Mapping[str, Any] = MappingProxyType({})
"""The analysis of a candidate that was not analyzed."""
NOTES = "notes"
"""The key of an analysis under which `describe` finds the notes of the run, where they are known."""

Analyze = Callable[[Candidate, "Executor"], Mapping[str, Any]]
"""Measures what the parts of a candidate do; returns JSON for `Level.describe`.

The executor has nothing under way, and is served other evaluators than it had. The function ends by the
deadline (`planish.measure.deadline`).
"""
Identity = str | int
"""Product of a candidate: a name, or a count where the task asks for that alone and less of it is better."""
Identify = Callable[[Candidate], Identity]
"""Names a candidate by what it makes of a program, without measuring it."""


class Level(ABC, Generic[ProgramT]):
    """A kind of program.

    A level is written for its own class of programs: one of `SqlProgram` is a `Level[SqlProgram]`, and
    receives a `Task[SqlProgram]`. `Level` alone is a level of an unknown class, as in code that serves all
    levels. The abstract methods must be implemented; the others have defaults.

    Attributes:
        name: as on the command line.
        version: changes whenever code generation or measuring changes; it is part of the store's key.
        objectives: what can be measured, by name; the first is the default.
        spaces: the names of the spaces; the first is the default.
        searchers: the names of searchers that do well on this level; the first is the default.
        summary_sections: the titles of `describe` that `planish tune` prints at the end.
        exports_unverified: whether a candidate may be exported that no comparison has verified again, on
            inputs that the search did not see.
    """

    name: str
    version: str
    objectives: Mapping[str, Objective]
    spaces: Sequence[str]
    searchers: Sequence[str]
    summary_sections: Sequence[str] = ()
    exports_unverified: bool = True

    @property
    @abstractmethod
    def steps(self) -> Mapping[str, type[Step]]:
        """Step name to class, for reading candidates back."""

    @abstractmethod
    def accepts(self, source: str) -> bool:
        """Return whether this source looks like a program of this level."""

    @abstractmethod
    def load(self, source: str, options: Mapping[str, str]) -> ProgramT:
        """Read a program that the user named, a file or a text.

        Args:
            source: as it stands on the command line.
            options: the command line's, by name; what they say of the target goes with the program.
        """

    @abstractmethod
    def read(self, text: str, target: Target) -> ProgramT:
        """Read the canonical text of a program back from a store, with the options that its target has.

        The text is data that may come from anybody: it is never a path, and nothing is executed. Files that
        the program refers to are found by `planish.core.resolve_file`.

        Raises:
            ProgramError: it is not a program's.
        """

    @abstractmethod
    def target(self, program: ProgramT, cores: int) -> Target:
        """Describe this machine as this level sees it, and as the program's options ask.

        Raises:
            TargetError: it lacks what is asked of it.
        """

    def cross_target(self, name: str) -> Target:
        """Describe another processor, for which candidates can be exported; by default there is none.

        Raises:
            PlanishError: the level makes no code for a processor of this name.
        """
        raise PlanishError(f"level '{self.name}' exports nothing for '{name}'", "Export for this machine.")

    @abstractmethod
    def runs_user_code(self, task: Task[ProgramT]) -> bool:
        """Return whether candidates of a task can run arbitrary code with the user's privileges.

        Then a program from a store is run only where the user asks for it. It has no default, because a
        wrong answer is a security hole.
        """

    @abstractmethod
    def space(self, task: Task[ProgramT], name: str) -> Space:
        """Make a space of the task, by name."""

    @abstractmethod
    def evaluator(self, task: Task[ProgramT], *, final: bool = False) -> EvaluatorSpec:
        """Make the spec of the task's evaluator; `final` ones measure longer and cut nothing short."""

    @abstractmethod
    def describe(
        self, task: Task[ProgramT], candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        """Show what a candidate does, without measuring: title to text, the most important first.

        Args:
            task: what was tuned.
            candidate: what is described.
            analysis: what `analyzer` measured of it, with the run's notes under `NOTES`.
        """

    @abstractmethod
    def export(self, task: Task[ProgramT], candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write files that are used without planish into a folder, without measuring; returns the files."""

    def export_as(self, task: Task[ProgramT], candidate: Candidate, path: Path, name: str) -> Sequence[Path]:
        """Write what `export` writes under a name of the user's; levels whose exports have none refuse it."""
        del task, candidate, path, name
        raise PlanishError(f"exports of level '{self.name}' have fixed names", "Leave name= out.")

    def public_text(self, program: ProgramT) -> str:
        """Return the text of a program for clients of a service: without what they could cheat by."""
        return program.text

    def least_seconds(self, task: Task[ProgramT]) -> float | None:
        """Return the seconds that a program takes at least on this machine; None where that is not known."""
        del task
        return None

    def text_format(self, task: Task[ProgramT]) -> str:
        """Return a candidate as text, for `candidate_of_text`; empty where it has no such form."""
        del task
        return ""

    def candidate_of_text(self, task: Task[ProgramT], text: str) -> Candidate:
        """Read a candidate from text that is not trusted: nothing is executed.

        Raises:
            PlanishError: it is none, or candidates of the task have no such form.
        """
        del task, text
        raise PlanishError("candidates of this program are not read from text", "Submit steps.")

    def baseline(self, task: Task[ProgramT]) -> Candidate:
        """Return the baseline: what a user has without planish. Results are reported relative to it."""
        del task
        return Candidate()

    def variants(self, task: Task[ProgramT], candidate: Candidate) -> Sequence[Candidate]:
        """List other ways to build a candidate, which are tried for the best one at the end."""
        del task, candidate
        return ()

    def default_objectives(self, program: ProgramT) -> Sequence[str]:
        """Return the default objectives of a program; the first leads."""
        del program
        return (next(iter(self.objectives)),)

    def specialize(self, program: ProgramT, objectives: Sequence[Objective]) -> ProgramT:
        """Return the form of a program that is tuned for these objectives, the first of which leads."""
        del objectives
        return program

    def default_searcher(self, task: Task[ProgramT], space: str) -> str:
        """Return the name of the default searcher of a task's space."""
        del task, space
        return self.searchers[0]

    def summary(self, task: Task[ProgramT]) -> Sequence[str]:
        """List in lines what is known of a task's program, without spending time on it.

        It is called when a run begins, and again during the search: lines are added, and none changes.
        """
        del task
        return ()

    def warm_start(self, task: Task[ProgramT], context: SearchContext) -> Sequence[Candidate]:
        """Return candidates that did well on other programs, the best first: a search begins with them.

        They are stored with the run, because the space is rebuilt when the run is resumed.

        Args:
            task: what is to be tuned.
            context: reads what is known of other programs, by their canonical text.
        """
        del task, context
        return ()

    def known_beforehand(self) -> Mapping[str, str]:
        """Return the sources besides models that the default search begins with: name to how good each is."""
        return {}

    def usual_task(self) -> Task[ProgramT] | None:
        """Return a small task that is like most on this machine; None where models do not depend on it."""
        return None

    def with_correct_baseline(self, task: Task[ProgramT], executor: Executor) -> ProgramT | None:
        """Find a form of a task's program whose baseline answers correctly; None where there is none.

        Args:
            task: its baseline failed to verify, because a compiler's defaults are wrong for the program.
            executor: has nothing under way, and evaluates the task's candidates.
        """
        del task, executor
        return None

    def functions(self, program: ProgramT) -> Mapping[str, ProgramT]:
        """Return the functions of a program as programs of their own, by name.

        Raises:
            PlanishError: programs of this level have no functions.
        """
        del program
        raise PlanishError(f"programs of level '{self.name}' have no functions", "Tune it as a whole.")

    def identities(self, task: Task[ProgramT]) -> AbstractContextManager[Identify] | None:
        """Return the function that names candidates by the program that they make; None where there is none.

        Equal names mean that the task's objectives cannot distinguish two candidates. Steps that do nothing
        are removed from finalists by it. It is used within the block.
        """
        del task
        return None

    def final_checks(self, task: Task[ProgramT]) -> FinalChecks:
        """Return the checks of a task's finalists besides the repeated measurement."""
        del task
        return FinalChecks()

    def analyzer(self, task: Task[ProgramT]) -> Analyze | None:
        """Return the function that measures the parts of a candidate for `describe`, or None."""
        del task
        return None

    def function(self, task: Task[ProgramT], candidate: Candidate) -> Callable[..., Any]:
        """Return a function that takes the program's inputs, in their order, and returns its outputs.

        Raises:
            PlanishError: programs of this level cannot be called from Python, or the machine lacks what the
                candidate needs.
        """
        del task, candidate
        raise PlanishError(f"results of level '{self.name}' cannot be called", "Export the result.")

    def exportable(self, candidate: Candidate) -> bool:
        """Return whether `export` writes it."""
        del candidate
        return True

    def digest(self, path: Path) -> str:
        """Name a file or folder by its content, as the level's programs do.

        Raises:
            ProgramError: it cannot be read.
            PlanishError: programs of this level refer to no files.
        """
        del path
        raise PlanishError(f"programs of level '{self.name}' refer to no files", "Leave files= out.")

    def write_artifacts(self, task: Task[ProgramT], candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write what `planish tune` leaves in the folder where it is run, unless `--export` names another.

        Returns:
            The files; none where users export results on request.

        Raises:
            OSError: a file cannot be written.
        """
        del task, candidate, path
        return ()

    def missing(self) -> str:
        """Return the software that has to be installed to tune a program; empty if none is missing."""
        return ""

    def machine(self) -> Mapping[str, str]:
        """Return facts about this machine for `planish targets`, by name."""
        return {"processor": processor()}


def describe(
    level: Level,
    task: Task,
    candidate: Candidate,
    analysis: Mapping[str, Any],
    notes: Sequence[str] | None = None,
) -> Mapping[str, str]:
    """Show what a candidate does, from a stored analysis: title to text.

    Args:
        level: of the task.
        task: what was tuned.
        candidate: what is shown.
        analysis: what its run measured for that; empty where it did not.
        notes: how its run measured, in sentences; None where that is not known.

    Raises:
        StoreError: the analysis cannot be read: the store is damaged.
    """
    try:
        return level.describe(task, candidate, analysis if notes is None else {**analysis, NOTES: [*notes]})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if not analysis:
            raise
        what = f"the analysis of a finalist cannot be read: {type(error).__name__}: {error}"
        raise StoreError(what, "Tune again.") from error
