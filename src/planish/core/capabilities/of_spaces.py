"""What spaces may offer beyond a start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from planish.core.feature_schema import FeatureSchema
from planish.core.protocols import Space
from planish.core.search_context import UNTAUGHT, SearchContext
from planish.core.step import Candidate, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from planish.core.task import Machine


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
    `genetic` and `nsga2`, and by the policy `seeds`.
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
        """Give the text of the program that a candidate makes; None where it fails."""
        ...

    def refused(self, text: str) -> str:
        """Say why a text is no program; "" where it is one."""
        ...
