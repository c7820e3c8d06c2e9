"""What spaces, searchers, evaluators and levels may offer beyond what is asked of each of them.

Whoever wants a capability asks by `isinstance`; a plug-in has the methods of those that make sense for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from planish.core.context import UNTAUGHT, SearchContext, Tried
from planish.core.ending import Opinion, Reference
from planish.core.feature_schema import FeatureSchema
from planish.core.outcome import Outcome
from planish.core.protocols import Evaluator, EvaluatorSpec, Executor, Level, Searcher, Space, Start
from planish.core.step import Candidate, Step
from planish.core.task import Objective, Program, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from planish.isolation import Cage, Limits  # named, never imported: core uses nothing of planish


NO_FIGURES: Mapping[str, Any] = MappingProxyType({})
"""What was measured for a description where nothing was."""


@runtime_checkable
class CanSample(Space, Protocol):
    """A space that draws at random.

    Offered by every space of the four levels; used by `random`, `genetic`, `annealing`, `portfolio`, `nsga2`.
    """

    def sample(self, rng: Generator) -> Candidate:
        """Draw a legal candidate.

        Raises:
            ScheduleError: none was found; a searcher draws again.
        """
        ...


@runtime_checkable
class CanName(Space, Protocol):
    """A space that knows when two candidates are the same program.

    Offered by the cursor space of `loops`, and the spaces of `llvm`, `hlo` and `graph`; used by
    searchers, to propose no program twice, and minimising at the end of a run.
    """

    def state(self, candidate: Candidate) -> str:
        """Name the state that a candidate reaches: equal names mean equal programs and equal next steps."""
        ...


@runtime_checkable
class CanStep(CanName, Protocol):
    """A space that is walked one step at a time.

    Offered by the cursor space of `loops`, and the spaces of `llvm` and `graph`; used by `greedy1`,
    `greedy2`, `beam-dfs`, `beam-bfs`.
    """

    def steps(self, candidate: Candidate) -> Sequence[Step]:
        """List every legal next step; empty at the end of the road."""
        ...

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Apply one of `steps(candidate)`.

        Different ways to the same state may give different candidates; `state` tells.
        """
        ...


@runtime_checkable
class CanEvolve(CanSample, Protocol):
    """A space whose candidates have neighbours and children.

    Offered by the template space of `loops`, and the spaces of `llvm`, `hlo` and `graph`; used by
    `genetic`, `annealing`, `portfolio`, `nsga2`, `model-guided`.
    """

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Give a legal neighbour: one small random change.

        Raises:
            ScheduleError: none was found; a searcher turns elsewhere.
        """
        ...

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Give two legal children of two parents."""
        ...


@runtime_checkable
class CanSeed(CanEvolve, Protocol):
    """A space that knows where to begin, and where to look on.

    Offered by the template space of `loops`, and the spaces of all other levels; used by `portfolio`,
    `genetic` and `nsga2`.
    """

    def seeds(self, context: SearchContext = UNTAUGHT) -> Sequence[Candidate]:
        """List legal candidates that are known to be good for other programs, the best first.

        Args:
            context: what was learned before the search; a space whose level learns takes what was taught.
        """
        ...

    def focused(self, candidates: Sequence[Candidate]) -> CanEvolve:
        """Give a space of the same candidates that draws the steps of these ones more often.

        Where all draws are alike, that is this space.
        """
        ...


@runtime_checkable
class CanShrink(Space, Protocol):
    """A space whose candidates can lose steps.

    Offered by the spaces of `llvm`, `hlo` and `graph`; used by `portfolio`, `random-minimise`, and the end of
    a run, which leaves steps out and measures what each does.
    """

    def selected(self, candidate: Candidate, places: Sequence[int]) -> Candidate | None:
        """Give the candidate of some steps alone, in their order; None where they are not legal alone.

        Args:
            candidate: of this space.
            places: which of its steps, from 0, each once and in order; none of them gives the start.
        """
        ...


@runtime_checkable
class CanEnumerate(Space, Protocol):
    """A finite space, listed.

    Offered by the template space of `loops`, where it is small; used by `exhaustive`, `random`.
    """

    def size(self) -> int:
        """Count the candidates, or bound the count from above."""
        ...

    def candidates(self) -> Iterator[Candidate]:
        """List every legal candidate once, in a fixed order."""
        ...


@runtime_checkable
class CanFeaturise(Space, Protocol):
    """A space that describes candidates by numbers, without building them.

    Offered by the template space of `loops`, and the spaces of `llvm`, `hlo` and `graph`; used by
    `model-guided`, and by fitting models.
    """

    @property
    def schema(self) -> FeatureSchema:
        """What the columns mean; what they mean never changes without another version."""
        ...

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates; (candidates, width of the schema).

        Raises:
            ScheduleError: one is illegal.
        """
        ...


@runtime_checkable
class CanObserve(CanStep, Protocol):
    """A space of numbered actions that describes where a candidate stands, for who chooses the next action.

    Offered by the cursor space of `loops` and the spaces of `llvm`; used by policies that are networks, and
    by training them.
    """

    @property
    def actions(self) -> Sequence[Step]:
        """List every step that may ever be legal, in a fixed order."""
        ...

    @property
    def observed(self) -> FeatureSchema:
        """What the columns of an observation mean."""
        ...

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:
        """Describe where a candidate stands; (rows, columns), always of the same shape, padded with zeros."""
        ...


@runtime_checkable
class CanRecall(Searcher, Protocol):
    """A searcher that need not find again what the same search proposed before.

    What it proposes is the same, and so is what follows.

    Offered by searchers written as generators of rounds; used by the loop, when it takes a run up again.
    """

    def recall(self, proposed: Callable[[int], Candidate | None]) -> None:
        """Take what the same search has proposed before; to be called before it is asked or told anything.

        Args:
            proposed: gives the proposal of a place, from 0; None where it is not known.
        """
        ...


@runtime_checkable
class HasModel(Searcher, Protocol):
    """A searcher that asks a model, and knows how long that took.

    Offered by `model-guided`; used by the loop, which counts that time beside the search's.
    """

    @property
    def model_s(self) -> float:
        """Seconds that the model took so far, a part of what it took to ask and to tell."""
        ...


@runtime_checkable
class CanAnchor(EvaluatorSpec, Protocol):
    """A factory whose evaluators measure relative to the baseline.

    Offered by the evaluators of `hlo` and `graph`; used by the loop, before anything else is measured.
    """

    def anchor(self, baseline: Outcome) -> None:
        """Take what the baseline was measured as, perhaps by an earlier run; it comes before all others."""
        ...


@runtime_checkable
class HasLimits(EvaluatorSpec, Protocol):
    """A factory whose evaluations need other limits of time and memory than the usual ones.

    Offered by the evaluators of `llvm`, `hlo` and `graph`; used by executors that have workers.
    """

    @property
    def limits(self) -> Limits | None:
        """How much; None for the usual ones."""
        ...


@runtime_checkable
class HasCage(EvaluatorSpec, Protocol):
    """A factory whose evaluators run what may do harm.

    Offered by the evaluators of `loops`, `llvm`, `hlo` and `graph`; used by executors that have workers,
    which are confined then.
    """

    @property
    def cage(self) -> Cage | None:
        """What they may do all the same; None where nothing has to be confined."""
        ...


@runtime_checkable
class HasNotes(Evaluator, Protocol):
    """An evaluator that has something to tell the user of how it measures.

    Offered by the evaluators of `llvm`, `hlo` and `graph`; used by executors, which hand it on.
    """

    @property
    def notes(self) -> Sequence[str]:
        """Sentences, without full stops; known once it is made."""
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
class KnowsPrograms(Protocol):
    """A level that knows what kind of program it has, and what did well on others like it.

    Offered by `graph`; used by the loop and its display, and by `planish.learn.transfer`, at the beginning of
    a run.
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
class SuitsObjectives(Protocol):
    """A level that begins with another form of a program for another objective.

    Clang tells the passes of -O3 more of a C file than it tells those of -Oz. Offered by `llvm`; used by
    `tune`, where the task is made.
    """

    def suited(self, program: Any, objectives: Sequence[Objective]) -> Any:
        """Give the form of a program that is tuned for these objectives, the first of which leads."""
        ...


@runtime_checkable
class ChangesMeaning(Protocol):
    """A level whose candidates may change what a program means.

    So it has an objective besides the first that tells how far, and finalists are looked at once more: they
    are scored on examples that no search sees, and run in another way. A score named after an objective and
    `HELD_BACK` is that objective on examples that may decide who is the best of a front; whatever else is
    scored is only reported.

    Offered by `hlo`; used by `tune`, and by the end of a run.
    """

    def usual_objectives(self, program: Program) -> Sequence[str]:
        """Name those that are improved where none is asked for."""
        ...

    def scores(self, task: Task, candidates: Sequence[Candidate], start: Start) -> Sequence[Outcome]:
        """Score candidates once the search is over; one outcome for each, in their order.

        One that is `Lost`, as for want of time, is held against nobody.

        Args:
            task: what was tuned.
            candidates: what is scored.
            start: starts the executor that evaluates them.

        Raises:
            PlanishError: the examples are missing, or do not fit.
        """
        ...

    def second_opinion(self, task: Task, candidates: Sequence[Candidate], start: Start) -> Sequence[Opinion]:
        """Run candidates in the other way and compare the answers; one opinion for each, in their order.

        Args:
            task: what was tuned.
            candidates: what is run.
            start: starts the executor that evaluates them.

        Raises:
            TargetError: the other way is not installed.
        """
        ...


@runtime_checkable
class CanIdentify(Protocol):
    """A level that can tell, without measuring, whether two candidates make the same.

    Offered by `graph`, `llvm` and the example of a level; used by the end of a run, which drops steps that do
    nothing.
    """

    def identities(self, task: Task) -> AbstractContextManager[Callable[[Candidate], str]]:
        """Give what names a candidate by what it makes of a task's program; it is used within the block.

        Equal names mean that the task's objectives cannot tell the two apart.
        """
        ...


@runtime_checkable
class HasReference(Protocol):
    """A level that may know another baseline.

    Offered by `hlo`, where a workload names the original, and `graph`; used by the end of a run.
    """

    def reference(self, task: Task) -> Reference | None:
        """Give what is measured beside the baseline at the end, to be told and not to be judged by.

        Raises:
            PlanishError: it cannot be read.
        """
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
        """Whether `export` writes it."""
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
        """Do as `Level.describe`, with figures; where there are none, a word says so."""
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
