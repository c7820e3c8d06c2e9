"""Networks as policies: over numbered actions, over lists, and as writers of lists.

The thesis's agent (3.6.2) has no action that ends an episode, since exploration suffered from it. A network
that predicts what actions are worth does not suffer, and need not move on when it has found the best state
that it can reach. The score of the end is the value that it predicts for the state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, CanObserve, PlanishError, Policy, PolicyState, Space, Step
from planish.models.decoder import DecoderShape
from planish.models.language_policy import AnsweringPolicy
from planish.models.networks import HEADS, ReaderShape, Shape, expected, scaled, scores
from planish.models.policy_files import SavedPolicy
from planish.models.writer import ListGrammar, Read, WriterShape, advance, read_one

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Standing:
    """State of a network's policy: a candidate of a space."""

    space: CanObserve
    candidate: Candidate


class NetworkPolicy:
    """Asks a network for the next action, or the end; after its number of steps there is only the end.

    Args:
        saved: the network, and what it is for.
    """

    def __init__(self, saved: SavedPolicy) -> None:
        assert isinstance(saved.shape, Shape)
        self._saved, self._shape = saved, saved.shape

    def begin(self, space: Space) -> Standing:
        """Stand at the start of a space.

        Raises:
            PlanishError: the policy is for another space.
        """
        why = f"is for the actions of {self._saved.schema.name}"
        if isinstance(space, CanObserve) and not (why := self._saved.unfit(space)):
            return Standing(space, space.start())
        raise PlanishError(
            f"the policy {self._saved.name} {why}",
            "Use the space that it learnt in, or one of `planish policy`.",
        )

    def extend(self, state: PolicyState, step: Step) -> Standing:
        """Take a step."""
        assert isinstance(state, Standing)
        return Standing(state.space, state.space.extend(state.candidate, step))

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Ask the network once for all states that are not at their end; illegal actions are masked."""
        standing = [state for state in states if isinstance(state, Standing)]
        legal = [self._legal(state) for state in standing]
        open_ = [place for place, steps in enumerate(legal) if steps]
        # Where no step is legal, or all are taken, the end is certain.
        found: list[Mapping[Step | None, float]] = [{None: 0.0}] * len(standing)
        if open_:
            for place, row in zip(open_, self._scores([standing[p] for p in open_]), strict=True):
                found[place] = _masked(standing[place].space.actions, legal[place], row)
        return found

    def value(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Return the scores of the end: what the network holds each candidate for."""
        standing = [state for state in states if isinstance(state, Standing)]
        return self._scores(standing)[:, -1].tolist()

    def _legal(self, state: Standing) -> Sequence[Step]:
        over = len(state.candidate.steps) >= self._saved.steps
        return () if over else state.space.steps(state.candidate)

    def _scores(self, states: Sequence[Standing]) -> Floats:
        observed = np.stack([state.space.observe(state.candidate) for state in states])
        done = np.array([len(state.candidate.steps) for state in states], np.float32)
        rows = scaled(observed, 1 - done / np.float32(self._saved.steps))
        return scores(np, self._shape, self._saved.parameters, rows)


def _masked(actions: Sequence[Step], legal: Sequence[Step], row: Floats) -> Mapping[Step | None, float]:
    place: dict[Step | None, int] = {action: number for number, action in enumerate((*actions, None))}
    open_: Sequence[Step | None] = (*legal, None)
    kept = np.array([row[place[step]] for step in open_], np.float64)
    # Less the greatest, so that no exponential overflows; masked first, for illegal actions must get no
    # share.
    sure = kept - kept.max()
    sure -= np.log(np.exp(sure).sum())
    return dict(zip(open_, sure.tolist(), strict=True))


@dataclass(frozen=True)
class Page:
    """Encoding of one program, shared by all its lists.

    Args:
        read: the program, as the decoder looks at it.
        steps: of each token; None where the space lacks it, and for the end.
        there: which tokens there are, the end last.
        grammar: which lists are legal.
    """

    read: Read
    steps: tuple[Step | None, ...]
    there: NDArray[np.bool_]
    grammar: ListGrammar


@dataclass(eq=False)
class Written:
    """The beginning of a list. What it is remembered by is computed once, and shared by what goes on from it.

    Args:
        page: of its program.
        candidate: the steps so far.
        before: the beginning without the last step.
        token: the last step's; None at the start.
        state: of the grammar.
        memory: (layers, 2, width), what the last step is remembered by; None until it is asked for.
        scores: of the tokens that may follow; None until then.
    """

    page: Page
    candidate: Candidate
    before: Written | None = None
    token: int | None = None
    state: int = 0
    memory: Floats | None = None
    scores: Floats | None = None

    def way(self) -> list[Written]:
        """Return the beginnings of this one, from the start to itself."""
        found, at = list[Written](), self
        while at.before is not None:
            found.append(at)
            at = at.before
        return [at, *reversed(found)]


class WritingPolicy:
    """Writes lists that its network composes; they need not be among those that it learnt from.

    Args:
        saved: the network, and what it is for.
        free: whether illegal lists are written, too: with a pipeline that comes twice. It is for experiments.
    """

    def __init__(self, saved: SavedPolicy, *, free: bool = False) -> None:
        assert isinstance(saved.shape, WriterShape)
        self._saved, self._shape = saved, saved.shape
        shape = saved.shape
        self._grammar = ListGrammar(shape.tokens, shape.longest) if free else shape.grammar

    def begin(self, space: Space) -> Written:
        """Read the program of a space.

        Raises:
            PlanishError: the policy is for another space.
        """
        why = self._saved.unfit(space) if isinstance(space, CanObserve) else "observes programs"
        if why or not isinstance(space, CanObserve):
            raise PlanishError(f"the policy {self._saved.name} {why}", "planish policy lists others.")
        read = read_one(self._shape, self._saved.parameters, space.observe(space.start())[None])
        known = {str(step): step for step in space.actions}
        steps = (*(known.get(text) for text in self._saved.actions), None)
        there = np.array([*(step is not None for step in steps[:-1]), True])
        return Written(Page(read, steps, there, self._grammar), space.start())

    def extend(self, state: PolicyState, step: Step) -> Written:
        """Write a step."""
        assert isinstance(state, Written)
        page, token = state.page, state.page.steps.index(step)
        return Written(page, state.candidate.then(step), state, token, page.grammar.after(state.state, token))

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Ask the network for all states that are new to it, those of one program at once."""
        asked = [state for state in states if isinstance(state, Written)]
        self._remember(asked)
        return [_next(state) for state in asked]

    def _remember(self, states: Sequence[Written]) -> None:
        """Ask about what is new, and before it about the beginnings that it goes on from."""
        new = dict.fromkeys(one for state in states for one in state.way() if one.memory is None)
        while new:
            ready: dict[int, list[Written]] = defaultdict(list)
            for one in new:
                if one.before is None or one.before.memory is not None:
                    # Programs apart, since all rows of one question look at the same program.
                    ready[id(one.page)].append(one)
            for some in ready.values():
                self._write(some)
            # Length by length: a beginning can be read only when what is before it has been.
            new = {one: None for one in new if one.memory is None}

    def _write(self, states: Sequence[Written]) -> None:
        shape = self._shape
        ways = [state.way()[:-1] for state in states]
        lengths = np.array([len(way) for way in ways])
        past = np.zeros((len(states), lengths.max(), shape.depth, 2, shape.width), np.float32)
        for place, way in enumerate(ways):
            for at, one in enumerate(way):
                past[place, at] = one.memory
        tokens = np.array([state.token for state in states]) if past.shape[1] else None
        read = states[0].page.read
        scores, fresh = advance(shape, self._saved.parameters, read, past, lengths, tokens)
        for place, state in enumerate(states):
            state.memory, state.scores = fresh[place], scores[place]


def _next(state: Written) -> Mapping[Step | None, float]:
    page = state.page
    assert state.scores is not None
    legal = page.grammar.legal(state.state) & page.there
    if not legal.any():
        return {None: 0.0}
    # Illegal tokens are left out before the sum: what remains are probabilities of legal lists.
    kept = state.scores[legal].astype(np.float64)
    sure = kept - np.logaddexp.reduce(kept)
    return {page.steps[token]: float(p) for token, p in zip(np.flatnonzero(legal), sure, strict=True)}


Way = tuple[tuple[Step, ...], float]
"""What is left of a list, and the logarithm of its probability."""


@dataclass(frozen=True)
class Reading:
    """State of a policy over lists: those that begin so."""

    candidate: Candidate
    ways: tuple[Way, ...]


class ListPolicy:
    """Writes one of the lists that its network knows, a step at a time.

    The probability of a step is that of all lists which go on so; thus the lists are as probable as the
    network has them. Lists with a step that the space lacks, as where a pass breaks the module, are left out.

    Args:
        saved: the network, and what it is for.
    """

    def __init__(self, saved: SavedPolicy) -> None:
        assert isinstance(saved.shape, ReaderShape)
        self._saved, self._shape = saved, saved.shape

    def begin(self, space: Space) -> Reading:
        """Read the program of a space.

        Raises:
            PlanishError: the policy is for another space.
        """
        why = self._saved.unfit(space) if isinstance(space, CanObserve) else "observes programs"
        if why or not isinstance(space, CanObserve):
            raise PlanishError(f"the policy {self._saved.name} {why}", "planish policy lists others.")
        observed = space.observe(space.start())[None]
        said = expected(self._shape, self._saved.parameters, observed)[0, HEADS.index("choice")]
        steps = {str(step): step for step in space.actions}
        ways = [
            (tuple(steps[text] for text in self._saved.actions[place].split(",")), float(said[place]))
            for place in self._saved.written(steps)
        ]
        return Reading(space.start(), tuple(ways))

    def extend(self, state: PolicyState, step: Step) -> Reading:
        """Keep the lists that go on with a step."""
        assert isinstance(state, Reading)
        ways = tuple((rest[1:], sure) for rest, sure in state.ways if rest and rest[0] == step)
        return Reading(state.candidate.then(step), ways)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Add up the lists that go on with each step, or end; where none goes on, there is the end alone."""
        return [_next_of_ways(state.ways) for state in states if isinstance(state, Reading)]


def policy_of(saved: SavedPolicy) -> Policy:
    """Make a policy of what was saved: one that walks, chooses among lists, writes them, or answers."""
    if isinstance(saved.shape, DecoderShape):
        return AnsweringPolicy(saved)
    if isinstance(saved.shape, WriterShape):
        return WritingPolicy(saved)
    return ListPolicy(saved) if isinstance(saved.shape, ReaderShape) else NetworkPolicy(saved)


def _next_of_ways(ways: Sequence[Way]) -> Mapping[Step | None, float]:
    if not ways:
        return {None: 0.0}
    found = dict[Step | None, float]()
    for rest, sure in ways:
        step = rest[0] if rest else None
        # In logarithms: probabilities of improbable lists would be 0 in float64 long before their ratio is.
        found[step] = float(np.logaddexp(found.get(step, -np.inf), sure))
    # Divided by what is left: lists that cannot be written here have given their share to the others.
    whole = float(np.logaddexp.reduce(list(found.values())))
    return {step: sure - whole for step, sure in found.items()}
