"""Interfaces between the parts of the engine: spaces, searchers, executors, evaluators.

They hold what every implementation must have. What a space offers beyond them is one of the protocols of
`planish.core.capabilities` (`CanSample`, `CanStep`, `CanEvolve`, ...); a searcher names those that it needs
in its `needs`.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, Self

from planish.core.errors import PlanishError
from planish.core.step import Candidate, Step
from planish.core.task import Machine
from planish.core.trial import Evaluation, Outcome, Stage, Trial, TrialPrediction


@dataclass(frozen=True)
class FeatureSchema:
    """A table of features.

    What is learned is stored with it, and used only where it is the same.

    Args:
        name: which features these are, such as "loops/context".
        version: raised whenever a column's meaning changes, so that it never does in silence.
        names: of the columns, in order.
    """

    name: str
    version: int
    names: tuple[str, ...]

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return len(self.names)


Outcomes = Sequence[tuple[Candidate, float | None]]
"""Candidates with their cost over the baseline's; None where they failed."""

Tried = Mapping[str, Outcomes]
"""Canonical text of a program to what was tried on it."""


@dataclass(frozen=True)
class SearchContext:
    """Knowledge from before a search; it is part of the search, as its seed is.

    Args:
        warm_start: candidates that other programs recommend, the best first; they are stored with the run.
        history: reads what was tried on other programs on the same target until this run began; it takes a
            while where the store has much.
        winners: reads the finalists of runs for other programs on the same target that were better than their
            baselines, those of the last runs first; it takes milliseconds.
        models: what can predict or propose, by name.
        seconds: of the budget, for searchers that have phases; None where it has no such limit. The loop ends
            the search, whatever it is.
    """

    warm_start: Sequence[Candidate] = ()
    history: Callable[[], Tried] = dict[str, Outcomes]
    winners: Callable[[], Tried] = dict[str, Outcomes]
    models: Mapping[str, object] = field(default_factory=dict[str, object])
    seconds: float | None = None


EMPTY_CONTEXT = SearchContext()
"""The context of a search that knows nothing of other programs."""


_NO_CONDITIONS: Mapping[str, str | int] = MappingProxyType({})


class Space(Protocol):
    """The candidates that are legal for a task; a space inherits from it.

    Attributes:
        machine: the processor of the target; None where the space does not depend on it. Policies are chosen
            by its width of vectors.
        conditions: of the program and the target, that change how costs depend on features: the element type
            and the cores. Models and policies that learnt under others are not asked.
    """

    machine: Machine | None = None
    conditions: Mapping[str, str | int] = _NO_CONDITIONS

    def start(self) -> Candidate:
        """Return the candidate from which every search may start."""
        ...

    def state_key(self, candidate: Candidate) -> str:
        """Return the key of a candidate's state: equal keys mean equal programs and equal next steps.

        Searchers propose one candidate for each state. By default each candidate is a state of its own.
        """
        return candidate.hash

    def program_key(self, candidate: Candidate) -> str:
        """Name the program that a candidate makes, where that is less than its state.

        From one program different steps may be possible.
        """
        return self.state_key(candidate)


class Searcher(Protocol):
    """Proposes candidates, and learns their outcomes; a searcher inherits from it.

    It is made with (space, objectives, seed, context), and its options as keyword-only arguments; see
    `planish.core.SearchContext`.

    It is deterministic: the same seed and the same outcomes give the same candidates in the same order, in
    whatever pieces they are asked for, and in whichever order the outcomes come. So a searcher that learns
    from outcomes proposes a round, waits for all outcomes, and only then goes on. It never counts a budget.
    It may propose a candidate twice; the loop measures it once.
    """

    def ask(self, n: int) -> Sequence[Candidate]:
        """Propose up to n candidates.

        Returns:
            None while it waits for outcomes of what it has proposed; where it has received all, it is at
            its end.
        """
        ...

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of some of the candidates asked for, in any order.

        Where there are several objectives, the baseline comes first, without being asked for; the space
        need not have it.
        """
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences without full stops on how it searched, for the user; read when the search is over."""
        return ()

    @property
    def model_s(self) -> float:
        """Seconds that models took so far, a part of the time of `ask` and `tell`."""
        return 0.0

    @property
    def idle_s(self) -> float:
        """Seconds that `ask` waited for proposals from outside so far, which are no time of the search."""
        return 0.0

    def prediction(self, candidate: Candidate) -> TrialPrediction | None:
        """Return the model's prediction for a candidate that was proposed just now; it is stored with it.

        Called once for each proposal, right after `ask`. None where no model was asked.
        """
        del candidate
        return None

    def client(self, candidate: Candidate) -> str:
        """Return the client of a service that submitted a candidate; it is stored with the trial.

        Called once for each proposal, right after `ask`. Empty where the searcher proposed it by itself.
        """
        del candidate
        return ""

    def importance(
        self, candidate: Candidate, others: Callable[[], Sequence[Candidate]]
    ) -> Sequence[tuple[str, float]]:
        """Return the importance of features for a candidate, by the model at the end of the search.

        Args:
            candidate: the best of the search.
            others: reads other candidates of the search, which have other values of the features.

        Returns:
            Feature to how much worse the candidate is predicted to be with other candidates' values of it, in
            standard deviations of predictions; the greatest first. Empty where no model was asked.
        """
        del candidate, others
        return ()

    @property
    def conclusion_s(self) -> float:
        """Seconds of the budget that are reserved for measuring what `conclude` returns."""
        return 0.0

    def conclude(self) -> Sequence[Candidate]:
        """Return the candidates that are measured once the budget is spent, such as combinations of parts.

        It may follow from all outcomes received by then, and may be known already.
        """
        return ()

    def replay(self, proposed: Callable[[int], Candidate | None]) -> None:
        """Receive what the same search proposed before; called before `ask` and `tell`.

        A searcher may take its proposals from there instead of drawing them again. By default it draws them.

        Args:
            proposed: returns the proposal of an index, from 0; None where it is not known.
        """
        del proposed


class PolicyState(Protocol):
    """State of a policy: what it has read, and the steps so far. It is a value: branches share it."""

    @property
    def candidate(self) -> Candidate:
        """The steps so far."""
        ...


class Policy(Protocol):
    """Probabilities of the next step: of a network, a language model, a table.

    Whoever follows one neither trains nor measures. All methods are deterministic.
    """

    def begin(self, space: Space) -> PolicyState:
        """Return the state before the first step.

        Raises:
            PlanishError: it is not for this space.
        """
        ...

    def extend(self, state: PolicyState, step: Step) -> PolicyState:
        """Return the state after one of the steps that `log_probabilities` lists."""
        ...

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Return, for each state, the logarithm of the probability of every legal next step.

        None is the end. Whatever is illegal is not listed, and the rest sums to 1.
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


class Executor(Protocol):
    """Runs evaluations; `planish.core.evaluate` evaluates one batch with it.

    The engine knows nothing else of where and how evaluations run. An executor belongs to one thread.
    """

    @property
    def capacity(self) -> int:
        """Return the number of candidates in flight that keep it busy; it may change with their costs."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Return the evaluators' notes for the user so far."""
        ...

    @property
    def losses(self) -> Counter[str]:
        """Return the evaluations that were lost with their workers so far, retries included, by cause."""
        ...

    def serve(self, spec: EvaluatorSpec) -> None:
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

    @property
    def has_result(self) -> bool:
        """Return whether `results` yields another one at once; those that are there are stored together."""
        ...

    def results(self) -> Iterator[Evaluation]:
        """Yield evaluations as they end, in any order: one for each time that a candidate was submitted.

        The iterator ends once nothing is under way, or at the deadline. It may be left early: more may be
        submitted, and `results` is called again.

        Raises:
            PlanishError: the evaluator cannot be made.
        """
        ...

    def cancel(self) -> None:
        """Abandon all that is under way, and results that were not taken."""
        ...

    def close(self) -> None:
        """End the workers; harmless when called twice."""
        ...


class ClosableExecutor:
    """Base class of executors: a `with` block closes them, and what is closed or busy takes nothing new."""

    _closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_result(self) -> bool:
        """Return whether a result is there already; by default it is not known."""
        return False

    def close(self) -> None:
        """Close the executor; harmless when called twice."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise PlanishError("the executor is closed", "Make a new one.")

    def _check_idle(self, is_busy: object) -> None:
        if is_busy:
            raise PlanishError("a batch is under way", "Take all its results, or cancel it, first.")


class SequentialExecutor(ClosableExecutor):
    """Base class of executors that evaluate one candidate at a time, in order, when its result is asked for.

    Attributes:
        losses: none, since there are no workers.
    """

    capacity = 1

    def __init__(self) -> None:
        self._queue, self._deadline = deque[Candidate](), math.inf
        self.losses: Counter[str] = Counter()

    @property
    def notes(self) -> Sequence[str]:
        """Return the evaluator's notes for the user."""
        return ()

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate by another evaluator from now on; see `Executor`."""
        self._check_open()
        self._check_idle(self._queue)
        self._set_evaluator(spec)

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates evaluated; see `Executor`."""
        self._check_open()
        self._queue.extend(candidates)
        self._deadline = deadline

    def results(self) -> Iterator[Evaluation]:
        """Evaluate one candidate after the other, until the deadline."""
        while self._queue and time.monotonic() < self._deadline:
            yield self._evaluate(self._queue.popleft())
        self.cancel()

    def cancel(self) -> None:
        """Forget what was submitted."""
        self._queue.clear()

    def _set_evaluator(self, spec: EvaluatorSpec) -> None:
        raise NotImplementedError

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        raise NotImplementedError


class EvaluatorSpec(Protocol):
    """The spec of an evaluator: makes it inside a worker, and is pickled to get there.

    Keep it while workers live: what it owns, such as a folder that they share, may end with it.
    """

    def __call__(self) -> Evaluator:
        """Make the evaluator."""
        ...


class ExecutorFactory(Protocol):
    """Starts executors: by default a `LocalExecutor`; a cluster or a test has another.

    The search and each stage at its end start executors by it alone.
    """

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> AbstractContextManager[Executor]:
        """Start one, which ends with the block.

        Args:
            spec: makes its evaluators; in fresh processes, where it has any.
            workers: how many evaluate side by side; a single one evaluates a batch in its order.
        """
        ...


def evaluate(
    executor: Executor, candidates: Sequence[Candidate], deadline: float = math.inf
) -> Generator[Evaluation, None, None]:
    """Evaluate a batch; yields evaluations as they end, in any order.

    Leaving the iterator early gives up what is under way.

    Args:
        executor: has nothing under way.
        candidates: what is to be evaluated.
        deadline: when the batch ends without the results that are still missing, by the monotonic clock.

    Raises:
        PlanishError: as `Executor.submit` and `Executor.results`.
    """
    executor.submit(candidates, deadline)
    try:
        yield from executor.results()
    finally:
        executor.cancel()


def evaluate_in_order(
    executor: Executor, candidates: Sequence[Candidate], deadline: float = math.inf
) -> list[Evaluation | None]:
    """Evaluate a batch; return its evaluations in the order of the batch.

    Args:
        executor: has nothing under way.
        candidates: what is to be evaluated; one that occurs several times is evaluated as often.
        deadline: when the batch ends, by the monotonic clock.

    Returns:
        One item for each candidate; None where the deadline came first.

    Raises:
        PlanishError: as `Executor.submit` and `Executor.results`.
    """
    indices: dict[Candidate, list[int]] = {}
    for index in reversed(range(len(candidates))):
        indices.setdefault(candidates[index], []).append(index)
    found: list[Evaluation | None] = [None] * len(candidates)
    for evaluation in evaluate(executor, candidates, deadline):
        found[indices[evaluation.candidate].pop()] = evaluation
    return found
