"""A network as a policy that writes lists: it reads the program once, and then gives one token a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, CanObserve, PlanishError, PolicyState, Space, Step
from planish.learn.language.grammar import ListGrammar
from planish.learn.language.writer import Read, WriterShape, advance, read_one
from planish.learn.policy.saved import SavedPolicy

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Page:
    """What all lists for one program share.

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
        """Give the beginnings of this one, from the start to itself."""
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
