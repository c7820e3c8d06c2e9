"""Optional interfaces of spaces, policies and evaluators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from planish.core.protocols import (
    EMPTY_CONTEXT,
    Evaluator,
    EvaluatorSpec,
    ExecutorFactory,
    FeatureSchema,
    Policy,
    PolicyState,
    SearchContext,
    Space,
)
from planish.core.step import Candidate, Step
from planish.core.trial import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from planish.core.level import Level
    from planish.core.task import Target, Task


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
class CanStep(Space, Protocol):
    """A space that is walked one step at a time.

    Offered by the cursor space of `loops`, and the spaces of `llvm` and `graph`; used by `greedy1`,
    `greedy2`, `beam-dfs`, `beam-bfs`, and by `policy`, `priority` and `samples`, which follow policies.
    """

    def steps(self, candidate: Candidate) -> Sequence[Step]:
        """List every legal next step; empty at the end of the road."""
        ...

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Apply one of `steps(candidate)`.

        Different ways to the same state may give different candidates of one `state_key`.
        """
        ...


@runtime_checkable
class CanEvolve(CanSample, Protocol):
    """A space whose candidates have neighbors and children.

    Offered by the template space of `loops`, and the spaces of `llvm`, `hlo` and `graph`; used by
    `genetic`, `annealing`, `portfolio`, `nsga2`, `gevo`, `model-guided`.
    """

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Return a legal neighbor: one small random change.

        Raises:
            ScheduleError: none was found; a searcher turns elsewhere.
        """
        ...

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Return two legal children of two parents."""
        ...


@runtime_checkable
class CanSeed(CanEvolve, Protocol):
    """A space that knows where to begin, and where to look on.

    Offered by the template space of `loops`, and the spaces of all other levels; used by `portfolio`,
    `genetic` and `nsga2`, and by the policy `seeds`.
    """

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> Sequence[Candidate]:
        """List legal candidates that are known to be good for other programs, the best first.

        Args:
            context: what was learned before the search; its warm start is among the seeds.
        """
        ...

    def focused(self, candidates: Sequence[Candidate]) -> CanEvolve:
        """Return a space of the same candidates that draws the steps of these ones more often.

        Where all draws are alike, that is this space.
        """
        ...


@runtime_checkable
class CanVaryParts(Space, Protocol):
    """A space whose candidates treat parts of a program, such as functions, each in a way of its own.

    What a part costs is known from `Measured.parts` of the start. Offered by the space `functions` of `llvm`,
    where the time leads; used by `hottest-first`.
    """

    def parts(self, measured: Mapping[str, float]) -> Sequence[str]:
        """List the parts that are worth a treatment of their own, the costliest first.

        Args:
            measured: what each part costs as the start has it.
        """
        ...

    def suggestions(
        self, candidate: Candidate, part: str, context: SearchContext = EMPTY_CONTEXT
    ) -> Sequence[Candidate]:
        """List candidates that differ in one part alone, which is treated as is often good.

        Args:
            candidate: of this space.
            part: one of its parts.
            context: what was learned before the search.
        """
        ...

    def vary(self, candidate: Candidate, part: str, rng: Generator) -> Candidate:
        """Return a legal candidate with a random change of one part."""
        ...


@runtime_checkable
class CanShrink(Space, Protocol):
    """A space whose candidates can lose steps.

    Offered by the spaces of `llvm`, `hlo` and `graph`; used by `portfolio`, `random-minimize`, and the end of
    a run, which leaves steps out and measures what each does.
    """

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate | None:
        """Return the candidate of some steps alone, in their order; None where they are not legal alone.

        Args:
            candidate: of this space.
            indices: which of its steps, from 0, each once and in order; none of them gives the start.
        """
        ...


@dataclass(frozen=True)
class PartGroup:
    """Parts of a program that a transformation is tried on together.

    Args:
        parts: their names.
        worth: the share of an evaluation's time that goes into the parts themselves, from 0 to 1.
    """

    parts: tuple[str, ...]
    worth: float


@runtime_checkable
class HasParts(Space, Protocol):
    """A space whose programs have parts, such as functions, that are transformed one by one.

    A candidate has settings, by which parts may change each other (what is inlined), and for each part a
    transformation that changes no other part. Costs of parts are those that evaluators report
    (`Measured.parts`).

    Offered by the space `functions` of `llvm`; used by `parts`.
    """

    def combined(
        self, settings: Mapping[str, str], transformations: Mapping[str, Sequence[str]]
    ) -> Candidate:
        """Return the candidate with some settings and transformations.

        Args:
            settings: part to what it is set to, where that is not the default.
            transformations: transformation to its parts; all other parts have the usual one, as in the start.
        """
        ...

    def transformations(self) -> Sequence[tuple[str, float]]:
        """List transformations that are good for most parts, with the share of the cost that each saves.

        The first is the usual one. Each share is beside what those before it save.
        """
        ...

    def draw(self, random: Random) -> str:
        """Draw a transformation; NumPy's generators take longer to import than small programs to compile."""
        ...

    def groups(self, costs: Mapping[str, float]) -> Sequence[PartGroup]:
        """Group the parts on which transformations are worth trying, by what they cost with the usual one."""
        ...

    def changes(self, settings: Mapping[str, str], costs: Mapping[str, float]) -> Sequence[tuple[str, str]]:
        """List changes of one setting that are worth trying, the most promising first.

        Args:
            settings: so far.
            costs: of the parts that there are with these settings.

        Returns:
            Parts, and what they are set to; "default" takes a setting back.
        """
        ...

    def changed_by(self, part: str, present: Collection[str]) -> frozenset[str]:
        """List the parts that a setting of a part affects, itself included.

        Args:
            part: its name.
            present: the parts that there are.
        """
        ...

    def below(self, parts: Iterable[str]) -> frozenset[str]:
        """List the parts on which some parts depend, directly or not."""
        ...


@runtime_checkable
class CanEnumerate(Space, Protocol):
    """A finite space, listed.

    Offered by the template space of `loops`, where it is small, and the example of a level; used by
    `exhaustive`, `random`.
    """

    def size(self) -> int:
        """Count the candidates, or bound the count from above."""
        ...

    def candidates(self) -> Iterator[Candidate]:
        """List every legal candidate once, in a fixed order."""
        ...


@runtime_checkable
class CanFeaturize(Space, Protocol):
    """A space that describes candidates by numbers, without building them.

    Offered by the template space of `loops`, and the spaces of `llvm`, `hlo` and `graph`; used by
    `model-guided`, and by fitting models.
    """

    @property
    def schema(self) -> FeatureSchema:
        """Return the meaning of the columns, which changes only with the version."""
        ...

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates; (candidates, width of the schema).

        Raises:
            ScheduleError: one is illegal.
        """
        ...


@runtime_checkable
class CanObserve(CanStep, Protocol):
    """A space of numbered actions that describes the state of a candidate, for policies that choose the next.

    Offered by the cursor space of `loops` and the spaces of `llvm`; used by policies that are networks, and
    by training them.
    """

    @property
    def actions(self) -> Sequence[Step]:
        """List every step that may ever be legal, in a fixed order."""
        ...

    @property
    def observed(self) -> FeatureSchema:
        """Return the meaning of the columns of an observation."""
        ...

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:
        """Describe where a candidate stands; (rows, columns), always of the same shape, padded with zeros."""
        ...


@runtime_checkable
class CanCompile(CanObserve, Protocol):
    """A space that knows the text of its program, and of the programs that its candidates make.

    Offered by the spaces of `llvm`, since programs of other levels have no text that a language model reads;
    used by policies that are language models.
    """

    @property
    def text(self) -> str:
        """The program, as its level prints it."""
        ...

    def instructions(self, candidate: Candidate) -> int | None:
        """Count the instructions of the program that a candidate makes; None where it fails."""
        ...

    def compiled(self, candidate: Candidate) -> str | None:
        """Return the text of the program that a candidate makes; None where it fails."""
        ...

    def refused(self, text: str) -> str:
        """Return why a text is not a valid program; "" where it is."""
        ...


@runtime_checkable
class ValueHead(Policy, Protocol):
    """A policy that estimates the value of a candidate, without a measurement.

    Offered by networks that score actions alone, whose score of the end is the value; used by the searcher
    `policy`.
    """

    def value(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Return the value of each state's candidate; more is better, among candidates of one program."""
        ...


@runtime_checkable
class MultiTurnPolicy(Policy, Protocol):
    """A policy that learns what came of a candidate, and proposes another.

    Offered by language models alone, which were trained on feedback; used by the searcher `feedback`.
    """

    def revise(self, state: PolicyState, cost: float | None) -> PolicyState | None:
        """Return the state before the first step of another candidate.

        Args:
            state: the end of a candidate.
            cost: the candidate's, by the first objective; None where it failed.

        Returns:
            None where the policy holds to its candidate.
        """
        ...


@runtime_checkable
class NeedsBaseline(EvaluatorSpec, Protocol):
    """A spec whose evaluators measure relative to the baseline.

    Offered by the evaluators of `hlo` and `graph`; used by the loop, before anything else is measured.
    """

    def set_baseline(self, baseline: Outcome) -> None:
        """Set the baseline's outcome, perhaps of an earlier run; called before any other is recorded."""
        ...


@runtime_checkable
class HasNotes(Evaluator, Protocol):
    """An evaluator with notes for the user on how it measures.

    Offered by the evaluators of `llvm`, `hlo` and `graph`; used by executors, which hand it on.
    """

    @property
    def notes(self) -> Sequence[str]:
        """Sentences, without full stops; known once it is made."""
        ...


@runtime_checkable
class HasHosts(Protocol):
    """A factory of executors that has hosts of several targets.

    Offered by `planish.RayCluster`; used by `planish.tune`.
    """

    def for_task(self, target: Target, describe: Callable[[], Target], /) -> ExecutorFactory:
        """Return a factory of executors that use the hosts of a target alone.

        Args:
            target: the task's.
            describe: describes the target of the host on which it is called.
        """
        ...

    def targets(self, describe: Callable[[], Target], /) -> Sequence[Target]:
        """Return the targets of the hosts, each once.

        Args:
            describe: as for `for_task`.

        Raises:
            TargetError: no host has one.
        """
        ...


def executors_for(start: ExecutorFactory, level: Level, task: Task) -> ExecutorFactory:
    """Return the factory of executors for a task: where it has hosts, on those of the task's target alone."""
    if not isinstance(start, HasHosts):
        return start
    return start.for_task(task.target, partial(level.target, task.program, task.target.cores))
