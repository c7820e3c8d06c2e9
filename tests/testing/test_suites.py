"""The conformance suites refuse parts that break a rule, and say what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from planish.core import Candidate, Machine, Measured, Objective, Searcher, Space, Step, Trial
from planish.levels.loops.backends import Backend, BoundKernel, Executable, backend_named
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import Program
from planish.levels.loops.testing.backends import BackendConformance
from planish.testing.searchers import SearcherConformance
from planish.testing.spaces import SpaceConformance
from planish.testing.synthetic import Lattice, Set


class SpaceSuite(SpaceConformance):
    """The suite over a space that is named when it is made; not collected, for it is not named Test."""

    def __init__(self, kind: type[Lattice]) -> None:
        self.kind = kind

    def space(self) -> Lattice:
        return self.kind()

    def known_steps(self) -> Mapping[str, type[Step]]:
        return Lattice.known_steps

    def replay(self, space: Space, candidate: Candidate) -> None:
        assert isinstance(space, Lattice)
        space.position(candidate)


class OffTheLattice(Lattice):
    def sample(self, rng: Generator) -> Candidate:
        return super().sample(rng).then(Set(7, 1))


class OwnRandomness(Lattice):
    def sample(self, rng: Generator) -> Candidate:  # noqa: ARG002
        return super().sample(default_rng())


class StepTwice(Lattice):
    def steps(self, candidate: Candidate) -> list[Set]:
        return super().steps(candidate) * 2


class IllegalStep(Lattice):
    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        return candidate.then(step, step)


class CoarseState(Lattice):
    """Names a state by its first knob, though the others decide what comes next."""

    def state_key(self, candidate: Candidate) -> str:
        return str(self.position(candidate)[0])


class IllegalNeighbor(Lattice):
    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:  # noqa: ARG002
        return candidate.then(Set(0, 1))


class Lame(Lattice):
    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:  # noqa: ARG002
        return candidate


class IllegalChild(Lattice):
    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:  # noqa: ARG002
        return Candidate(a.steps + b.steps), b


class KeepsAll(Lattice):
    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate:  # noqa: ARG002
        return candidate


class IllegalFocus(Lattice):
    def focused(self, candidates: Sequence[Candidate]) -> Lattice:  # noqa: ARG002
        return OffTheLattice()


class ListedTwice(Lattice):
    def candidates(self) -> Iterator[Candidate]:
        yield self.start()
        yield from super().candidates()


class TooSmall(Lattice):
    def size(self) -> int:
        return 5


class ListedInPart(Lattice):
    def candidates(self) -> Iterator[Candidate]:
        yield self.start()


BROKEN_SPACES: dict[type[Lattice], str] = {
    OffTheLattice: "test_samples_are_legal_and_belong_to_their_generator",
    OwnRandomness: "test_samples_are_legal_and_belong_to_their_generator",
    StepTwice: "test_steps_are_unique_and_lead_to_legal_candidates",
    IllegalStep: "test_steps_are_unique_and_lead_to_legal_candidates",
    CoarseState: "test_equal_states_have_equal_futures",
    IllegalNeighbor: "test_neighbors_are_legal_and_belong_to_their_generator",
    Lame: "test_mutation_reaches_other_candidates",
    IllegalChild: "test_children_are_legal_and_belong_to_their_generator",
    KeepsAll: "test_shorter_candidates_are_legal_and_lack_one_step",
    IllegalFocus: "test_a_focused_space_gives_legal_candidates_that_belong_to_their_generator",
    ListedTwice: "test_the_list_is_unique_and_in_a_fixed_order",
    TooSmall: "test_the_list_is_unique_and_in_a_fixed_order",
    ListedInPart: "test_the_list_holds_what_is_sampled",
}


@pytest.mark.parametrize("kind", BROKEN_SPACES)
def test_a_broken_space_is_refused(kind: type[Lattice]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        getattr(SpaceSuite(kind), BROKEN_SPACES[kind])()


class Nothing(Space):
    """A space that offers its start only."""

    def start(self) -> Candidate:
        return Candidate()


class NothingSuite(SpaceSuite):
    def __init__(self) -> None:
        super().__init__(Lattice)

    def space(self) -> Nothing:  # type: ignore[override]
        return Nothing()

    def replay(self, space: Space, candidate: Candidate) -> None:
        assert candidate == space.start()


def test_what_a_space_does_not_offer_is_skipped() -> None:
    suite = NothingSuite()
    suite.test_the_start_is_legal_and_always_the_same()
    for name in {*BROKEN_SPACES.values()}:
        with pytest.raises(pytest.skip.Exception):
            getattr(suite, name)()


class SearcherSuite(SearcherConformance):
    def __init__(self, kind: type[Base]) -> None:
        self.kind = kind

    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return self.kind(space, objectives, seed)


class Base(Searcher):
    """A sound searcher to break: the whole space in order."""

    def __init__(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> None:
        self.space, self.objective, self.seed = space, objectives[0], seed
        self.left = list(space.candidates())
        self.trials: list[Trial] = []

    def ask(self, n: int) -> Sequence[Candidate]:
        asked, self.left = self.left[:n], self.left[n:]
        return asked

    def tell(self, trials: Sequence[Trial]) -> None:
        self.trials += trials


class Entropy(Base):
    def ask(self, n: int) -> Sequence[Candidate]:
        default_rng().shuffle(self.left)  # type: ignore[arg-type]
        return super().ask(n)


class Greedy(Base):
    def ask(self, n: int) -> Sequence[Candidate]:
        return super().ask(n + 1)


class Stranger(Base):
    def ask(self, n: int) -> Sequence[Candidate]:
        return [candidate.then(Set(9, 9)) for candidate in super().ask(n)]


class Endless(Base):
    def ask(self, n: int) -> Sequence[Candidate]:
        return super().ask(n) or [self.space.start()]


class Repeating(Base):
    def __init__(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> None:
        super().__init__(space, objectives, seed)
        self.left = [*self.left[:20], *self.left]


class FailuresAsNumbers(Base):
    """Turns back when a cost is high, and takes a failure for a cost."""

    def tell(self, trials: Sequence[Trial]) -> None:
        outcomes = [trial.outcome for trial in trials]
        costs = [o.values.get("time_s", 1e10) if isinstance(o, Measured) else 0.0 for o in outcomes]
        if max(costs) > 1:
            self.left.reverse()


class Unprepared(Base):
    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            assert isinstance(trial.outcome, Measured)


class ByBatch(Base):
    """Proposes by the size of the batch, so that a batch cut short is another beginning."""

    def ask(self, n: int) -> Sequence[Candidate]:
        return super().ask(n)[::-1]


class Hasty(Base):
    """Turns back where the answer that came last is better than the one before it."""

    last = 0.0

    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            cost = trial.cost(self.objective) or 0.0
            if cost < self.last:
                self.left.reverse()
            self.last = cost


class Blind(Base):
    def __init__(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> None:
        super().__init__(space, objectives, seed)
        self.left = self.left[: len(self.left) // 2]


BROKEN_SEARCHERS: dict[type[Base], tuple[str, list[object]]] = {
    Entropy: ("test_it_is_a_function_of_seed_and_outcomes", []),
    Greedy: ("test_it_proposes_no_more_than_asked", [3]),
    Stranger: ("test_it_proposes_only_what_the_space_holds", [8]),
    Endless: ("test_it_ends_on_a_finite_space", []),
    Repeating: ("test_it_repeats_itself_only_where_it_may", []),
    FailuresAsNumbers: ("test_it_survives_when_all_fail", [Measured({})]),
    Unprepared: ("test_it_survives_when_all_fail", [Measured({})]),
    ByBatch: ("test_fifty_are_twenty_five_and_twenty_five_resumed", [8]),
    Hasty: ("test_neither_the_order_of_answers_nor_how_many_are_asked_for_steers_it", [1]),
    Blind: ("test_it_finds_what_it_promises", [0]),
}


@pytest.mark.parametrize("kind", BROKEN_SEARCHERS)
def test_a_broken_searcher_is_refused(kind: type[Base]) -> None:
    name, arguments = BROKEN_SEARCHERS[kind]
    with pytest.raises((AssertionError, ValueError)):
        getattr(SearcherSuite(kind), name)(*arguments)


def test_what_is_sound_passes() -> None:
    for name in BROKEN_SPACES.values():
        getattr(SpaceSuite(Lattice), name)()
    for name, arguments in BROKEN_SEARCHERS.values():
        getattr(SearcherSuite(Base), name)(*arguments)


Arrays = Mapping[str, Any]


class Run:
    """A right kernel with its arrays."""

    def __init__(self, kernel: Executable, inputs: Arrays, outputs: Arrays) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.bound: BoundKernel = kernel.bind(inputs, outputs)

    def prepare(self) -> None:
        self.bound.prepare()

    def poison(self, byte: int = 0xFF) -> None:
        self.bound.poison(byte)
        self.prepare()

    def repeat(self, times: int) -> None:
        self.bound.repeat(times)


class CopiesInputs(Run):
    """Copies inputs when it is prepared, which constants alone may be."""

    copied: tuple[str, ...] = ("A", "B")

    def __init__(self, kernel: Executable, inputs: Arrays, outputs: Arrays) -> None:
        copies = {n: a.copy() if n in self.copied else a for n, a in inputs.items()}
        super().__init__(kernel, copies, outputs)
        self.originals = inputs

    def prepare(self) -> None:
        for name in set(self.copied) & self.inputs.keys() if hasattr(self, "originals") else ():
            np.copyto(self.inputs[name], self.originals[name])
        self.bound.prepare()


class CopiesOne(CopiesInputs):
    """Copies one of two."""

    copied = ("B",)


class LastElement(Run):
    """Is wrong in one element."""

    def repeat(self, times: int) -> None:
        self.bound.repeat(times)
        next(iter(self.outputs.values())).reshape(-1)[-1] += 1


class WritesInputs(Run):
    """Destroys an input."""

    def repeat(self, times: int) -> None:
        self.bound.repeat(times)
        next(iter(self.inputs.values()))[...] = 0


class Made:
    """A right kernel that is run in some way."""

    def __init__(self, kernel: Executable, run: type[Run]) -> None:
        self.program, self.allocate = kernel.program, kernel.allocate
        self._kernel, self._run = kernel, run

    def bind(self, inputs: Arrays, outputs: Arrays) -> Run:
        return self._run(self._kernel, inputs, outputs)


class Faulty:
    """Our own portable back end, whose kernels are run in some way."""

    packages = ()

    def __init__(self, run: type[Run]) -> None:
        self._run, self._own = run, backend_named("portable")

    @property
    def machine(self) -> Machine:
        return self._own.machine

    def works(self) -> bool:
        return True

    def compile(self, program: Program, tree: LoopTree, cores: int) -> Executable:
        return Made(self._own.compile(program, tree, cores), self._run)


class Suite(BackendConformance):
    """Not collected, for it is not named Test."""

    def __init__(self, run: type[Run]) -> None:
        self._run = run

    def backend(self) -> Backend:
        return Faulty(self._run)


def reads(suite: Suite) -> None:
    suite.test_it_reads_its_inputs_each_time("product")


def computes(suite: Suite) -> None:
    suite.test_candidates_compute_what_their_program_says("product")


BROKEN: list[tuple[type[Run], Callable[[Suite], None], str]] = [
    (CopiesInputs, reads, r"C\[.* elements are wrong, after its inputs changed"),
    (CopiesOne, reads, r"C\[.* elements are wrong, after its inputs changed"),
    (LastElement, computes, r"C\[4, 6\] is .*; 1 of 35 elements are wrong"),
    (WritesInputs, computes, "input A is changed"),
]


@pytest.mark.parametrize(("run", "test", "message"), BROKEN)
def test_a_broken_back_end_is_refused(run: type[Run], test: Callable[[Suite], None], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        test(Suite(run))
    test(Suite(Run))
