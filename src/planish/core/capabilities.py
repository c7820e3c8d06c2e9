"""Optional interfaces of spaces, searchers, policies and evaluators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from planish.core.protocols import (
    UNTAUGHT,
    Evaluator,
    EvaluatorSpec,
    FeatureSchema,
    Policy,
    PolicyState,
    SearchContext,
    Searcher,
    Space,
)
from planish.core.step import Candidate, Step
from planish.core.trial import Outcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from planish.core.task import Machine
    from planish.sandbox import Limits, SandboxPolicy


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
class NamesPrograms(CanName, Protocol):
    """A space whose states are more than programs: from one program different steps may be possible.

    Offered by the cursor space of `loops`, whose state has the cursor; used by `priority`, which measures no
    program twice.
    """

    def identity(self, candidate: Candidate) -> str:
        """Name the program that a candidate makes, whatever can follow it."""
        ...


@runtime_checkable
class CanStep(CanName, Protocol):
    """A space that is walked one step at a time.

    Offered by the cursor space of `loops`, and the spaces of `llvm` and `graph`; used by `greedy1`,
    `greedy2`, `beam-dfs`, `beam-bfs`, and by `policy`, `priority` and `samples`, which follow policies.
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
    `genetic`, `annealing`, `portfolio`, `nsga2`, `gevo`, `model-guided`.
    """

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Return a legal neighbour: one small random change.

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

    def seeds(self, context: SearchContext = UNTAUGHT) -> Sequence[Candidate]:
        """List legal candidates that are known to be good for other programs, the best first.

        Args:
            context: what was learned before the search; a space whose level learns takes what was taught.
        """
        ...

    def focused(self, candidates: Sequence[Candidate]) -> CanEvolve:
        """Return a space of the same candidates that draws the steps of these ones more often.

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
        """Return the candidate of some steps alone, in their order; None where they are not legal alone.

        Args:
            candidate: of this space.
            places: which of its steps, from 0, each once and in order; none of them gives the start.
        """
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
class CanFeaturise(Space, Protocol):
    """A space that describes candidates by numbers, without building them.

    Offered by the template space of `loops`, and the spaces of `llvm`, `hlo` and `graph`; used by
    `model-guided`, and by fitting models.
    """

    @property
    def schema(self) -> FeatureSchema:
        """Return what the columns mean; what they mean never changes without another version."""
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
        """Return what the columns of an observation mean."""
        ...

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:
        """Describe where a candidate stands; (rows, columns), always of the same shape, padded with zeros."""
        ...


@runtime_checkable
class HasMachine(CanObserve, Protocol):
    """A space that knows what its target's processor has.

    Offered by the cursor spaces of `loops`; used by the choice among policies, of which each has learnt on
    vectors of one width.
    """

    @property
    def machine(self) -> Machine | None:
        """The processor; None where nothing is known of it."""
        ...


@runtime_checkable
class HasText(CanObserve, Protocol):
    """A space that knows the text of its program, for models of language.

    Offered by the spaces of `llvm` alone, for at other levels a program is one line, or no text at all; used
    by policies that read IR.
    """

    @property
    def text(self) -> str:
        """The program, as its level prints it."""
        ...


@runtime_checkable
class CanCompile(HasText, Protocol):
    """A space that gives the text of what its candidates make, and reads what others write.

    Offered by the spaces of `llvm` alone; used by language models that learnt from short or long feedback,
    and by those of another objective than instructions, which they tell of all the same.
    """

    def instructions(self, candidate: Candidate) -> int | None:
        """Count the instructions of the program that a candidate makes; None where it fails."""
        ...

    def compiled(self, candidate: Candidate) -> str | None:
        """Return the text of the program that a candidate makes; None where it fails."""
        ...

    def refused(self, text: str) -> str:
        """Say why a text is no program; "" where it is one."""
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

    Offered by `model-guided`, `policy` and `priority`; used by the loop, which counts that time beside the
    search's.
    """

    @property
    def model_s(self) -> float:
        """Seconds that the model took so far, a part of what it took to ask and to tell."""
        ...


@runtime_checkable
class HasSearchNotes(Searcher, Protocol):
    """A searcher that has something to tell the user of how it searched.

    Offered by `model-guided` alone, for others do as their options say, while it depends on the models and
    libraries that there are; used by the run, which shows and stores the notes beside those of evaluators.
    """

    @property
    def notes(self) -> Sequence[str]:
        """Sentences, without full stops; asked for when the search is over."""
        ...


@runtime_checkable
class CanJudge(Policy, Protocol):
    """A policy that tells what it holds a candidate for, without a measurement.

    Offered by networks that score actions alone, whose score of the end tells it; used by the searcher
    `policy`.
    """

    def worth(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Return how good the candidate of each state is; more is better, among candidates of one program."""
        ...


@runtime_checkable
class CanReconsider(Policy, Protocol):
    """A policy that learns what came of a candidate, and gives another.

    Offered by language models alone, which were trained on feedback; used by the searcher `feedback`.
    """

    def reconsider(self, state: PolicyState, cost: float | None) -> PolicyState | None:
        """Return the state before the first step of another candidate.

        Args:
            state: the end of a candidate.
            cost: the candidate's, by the first objective; None where it failed.

        Returns:
            None where the policy holds to its candidate.
        """
        ...


@runtime_checkable
class CanAnchor(EvaluatorSpec, Protocol):
    """A spec whose evaluators measure relative to the baseline.

    Offered by the evaluators of `hlo` and `graph`; used by the loop, before anything else is measured.
    """

    def anchor(self, baseline: Outcome) -> None:
        """Take what the baseline was measured as, perhaps by an earlier run; it comes before all others."""
        ...


@runtime_checkable
class HasLimits(EvaluatorSpec, Protocol):
    """A spec whose evaluations need other limits of time and memory than the usual ones.

    Offered by the evaluators of `llvm`, `hlo` and `graph`; used by executors that have workers.
    """

    @property
    def limits(self) -> Limits | None:
        """Return how much; None for the usual ones."""
        ...


@runtime_checkable
class HasSandbox(EvaluatorSpec, Protocol):
    """A spec whose evaluators run what may do harm.

    Offered by the evaluators of `loops`, `llvm`, `hlo` and `graph`; used by executors that have workers,
    which are confined then.
    """

    @property
    def sandbox(self) -> SandboxPolicy | None:
        """Return what they may do all the same; None where nothing has to be confined."""
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
