"""The interfaces between the parts of the loop; each small, each with one job.

A space offers only what makes sense for it. What a searcher needs is one of the capability
protocols below (`CanSample`, `CanStep`, `CanEvolve`, ...), named in its `needs`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from planish.core.outcome import Outcome, Stage
from planish.core.step import Candidate, Step
from planish.core.task import Objective, Program, Target, Task
from planish.core.trial import Trial

if TYPE_CHECKING:
    from numpy.random import Generator


class Space(Protocol):
    """The candidates that are legal for a task."""

    def start(self) -> Candidate:
        """Give the candidate that every search may begin from."""
        ...


@runtime_checkable
class CanSample(Space, Protocol):
    """A space that draws at random."""

    def sample(self, rng: Generator) -> Candidate:
        """Draw a legal candidate.

        Raises:
            ScheduleError: none was found; a searcher draws again.
        """
        ...


@runtime_checkable
class CanName(Space, Protocol):
    """A space that knows when two candidates are the same program."""

    def state(self, candidate: Candidate) -> str:
        """Name the state that a candidate reaches: equal names mean equal programs and equal next steps."""
        ...


@runtime_checkable
class CanStep(CanName, Protocol):
    """A space that is walked one step at a time."""

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
    """A space whose candidates have neighbours and children."""

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
class CanSeed(Space, Protocol):
    """A space that knows where to begin."""

    def seeds(self) -> Sequence[Candidate]:
        """List legal candidates that are known to be good for other programs, the best first."""
        ...


@runtime_checkable
class CanShrink(Space, Protocol):
    """A space whose candidates can lose steps."""

    def shorter(self, candidate: Candidate) -> Sequence[Candidate]:
        """List the legal candidates that lack one step of this one; empty when there are none."""
        ...


@runtime_checkable
class CanSelect(Space, Protocol):
    """A space whose candidates can lose several steps at once."""

    def selected(self, candidate: Candidate, places: Sequence[int]) -> Candidate | None:
        """Give the candidate of these steps alone, in their order; None where they are not legal alone."""
        ...


@runtime_checkable
class CanFocus(CanEvolve, Protocol):
    """A space that can prefer the steps of some candidates."""

    def focused(self, candidates: Sequence[Candidate]) -> CanEvolve:
        """Give a space of the same candidates that draws the steps of these ones more often."""
        ...


@runtime_checkable
class CanEnumerate(Space, Protocol):
    """A finite space, listed."""

    def size(self) -> int:
        """Count the candidates, or bound the count from above."""
        ...

    def candidates(self) -> Iterator[Candidate]:
        """List every legal candidate once, in a fixed order."""
        ...


class Searcher(Protocol):
    """Proposes candidates and is told what became of them.

    It is deterministic: the same seed and the same outcomes give the same candidates. It never
    counts a budget. It may propose a candidate twice; the loop measures it once.
    """

    def ask(self, n: int) -> Sequence[Candidate]:
        """Propose up to n candidates; none when the search is at its end."""
        ...

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of the candidates asked for, in the order they were asked.

        Where there are several objectives, the baseline is told first, without being asked for; the space
        need not have it.
        """
        ...


@runtime_checkable
class CanRecall(Searcher, Protocol):
    """A searcher that need not find again what the same search proposed before.

    What it proposes is the same, and so is what follows.
    """

    def recall(self, proposed: Callable[[int], Candidate | None]) -> None:
        """Take what the same search has proposed before; to be called before it is asked or told anything.

        Args:
            proposed: gives the proposal of a place, from 0; None where it is not known.
        """
        ...


class StageClock(Protocol):
    """Times the stages of one evaluation and lets the executor enforce their limits."""

    def __call__(self, stage: Stage) -> AbstractContextManager[None]:
        """Mark the block as this stage."""
        ...


class Evaluator(Protocol):
    """Builds, verifies and measures one candidate; lives in a worker process."""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Evaluate a candidate.

        An expected failure is returned as `Failed`; an exception becomes one, in the stage that
        the clock was in.
        """
        ...


class Evaluation(Protocol):
    """One answer of an executor."""

    @property
    def position(self) -> int:
        """The candidate's place among what was submitted since the executor last had nothing to do."""
        ...

    @property
    def outcome(self) -> Outcome:
        """What became of it."""
        ...

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds by stage."""
        ...

    @property
    def host(self) -> str:
        """The name of the machine that measured; empty where nobody knows."""
        ...


class Executor(Protocol):
    """Where evaluations run; `planish.core.evaluate` has it evaluate one batch.

    Whoever evaluates is handed one, and the loop knows nothing else of where and how it happens. It belongs
    to one thread.
    """

    @property
    def capacity(self) -> int:
        """How many candidates under way keep it busy; it may change with what they cost."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What the evaluators have to tell the user so far."""
        ...

    @property
    def losses(self) -> Counter[str]:
        """How many evaluations were lost with their workers so far, each attempt counted, by cause."""
        ...

    def serve(self, factory: EvaluatorFactory) -> None:
        """Evaluate by another evaluator from now on; nothing may be under way.

        Raises:
            PlanishError: something is under way, or the executor is closed.
        """
        ...

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates evaluated, after those that were submitted before.

        Args:
            candidates: none where only the deadline changes.
            deadline: when all that is still under way is given up, by the monotonic clock.

        Raises:
            PlanishError: the executor is closed.
        """
        ...

    def answers(self) -> Iterator[Evaluation]:
        """Give the answers as they come, one for each candidate, in any order.

        It ends once nothing is under way, or at the deadline. To leave it early changes nothing: more may be
        submitted, and it is called again.

        Raises:
            PlanishError: the evaluator cannot be made.
        """
        ...

    def cancel(self) -> None:
        """Give up all that is under way, and answers that were not taken."""
        ...

    def close(self) -> None:
        """End the workers; harmless when called twice."""
        ...


class EvaluatorFactory(Protocol):
    """Makes an evaluator inside a worker; it is pickled to get there.

    Keep it while workers live: what it owns, such as a folder that they share, may end with it.
    """

    def __call__(self) -> Evaluator:
        """Make the evaluator."""
        ...


@runtime_checkable
class CanAnchor(EvaluatorFactory, Protocol):
    """A factory whose evaluators measure relative to the baseline."""

    def anchor(self, baseline: Outcome) -> None:
        """Take what the baseline was measured as, perhaps by an earlier run; it comes before all others."""
        ...


@runtime_checkable
class RunsPrograms(Protocol):
    """A level whose programs are code that may do anything its user may, and not only compute."""

    def runs(self, task: Task) -> bool:
        """Whether candidates of a task are run; what a store has is run only where the user asks for it."""
        ...


class Level(Protocol):
    """A kind of program, with all that is particular to it.

    A level may also have `machine()` (name to fact of this machine, for `planish targets`), `telling` (the
    titles of `describe` that are shown at the end of a run), `usual_objectives` (names of those that are
    taken where none is asked for, instead of the first) and `parts(program)` (name to program, for
    programs that fall into parts which can be tuned alone); `introduction` of `planish.progress`, which tells
    what it sees in a program as a run begins; and the methods of `planish.core.ending`, which add to the end
    of a run: `scores`, `second_opinion`, `reference`, `deliver`.
    """

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever code generation or measuring changes; part of the store's key."""
        ...

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """What can be measured; the first is the default."""
        ...

    @property
    def spaces(self) -> Sequence[str]:
        """The names of the level's spaces; the first is the default."""
        ...

    @property
    def searchers(self) -> Sequence[str]:
        """Searchers that do well on this level; the first is the default."""
        ...

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        """Step name to class, for reading candidates back."""
        ...

    def accepts(self, source: str) -> bool:
        """Whether this source looks like a program of this level."""
        ...

    def load(self, source: str, options: Mapping[str, str]) -> Program:
        """Read a program that the user named, a file or a text.

        Args:
            source: as it stands on the command line.
            options: the command line's, by name; what they say of the target goes with the program.
        """
        ...

    def read(self, text: str, target: Target) -> Program:
        """Read the canonical text of a program back from a store, with the options that its target tells.

        It is data, and may be anybody's: it is never a path, and nothing is executed. Files that the
        program refers to are found by `planish.core.place_of`; `planish.core.HasFiles` has more of it.

        Raises:
            ProgramError: it is no program's.
        """
        ...

    def target(self, program: Program, cores: int) -> Target:
        """Describe this machine as this level sees it, and as the program's options ask.

        Raises:
            TargetError: it lacks what is asked of it.
        """
        ...

    def space(self, task: Task, name: str) -> Space:
        """Make a space of the task, by name."""
        ...

    def evaluator(self, task: Task, *, final: bool = False) -> EvaluatorFactory:
        """Make the recipe for the task's evaluator; `final` ones measure longer and cut nothing short."""
        ...

    def baseline(self, task: Task) -> Candidate:
        """Give what a user has without planish; results are reported against it."""
        ...

    def variants(self, task: Task, candidate: Candidate) -> Sequence[Candidate]:
        """List other ways to build a candidate, which are tried for the best one at the end."""
        ...

    def describe(self, task: Task, candidate: Candidate) -> Mapping[str, str]:
        """Show what a candidate does: title to text, the most telling first."""
        ...

    def export(self, task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write what can be used without planish into a folder; returns the files."""
        ...
