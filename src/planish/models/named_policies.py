"""Policies by name: of networks, and of the lists that a space begins with.

Networks choose numbered actions, choose among lists, or write lists. The thesis's agent (3.6.2) has no action
that ends an episode, since exploration suffered from it. A network that predicts what actions are worth does
not suffer, and need not move on when it has found the best state that it can reach. The score of the end is
the value that it predicts for the state.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanObserve,
    CanSeed,
    CanStep,
    PlanishError,
    Policy,
    PolicyState,
    ScheduleError,
    SearchContext,
    Space,
    Step,
)
from planish.models.decoder import DecoderShape
from planish.models.language_policy import LanguageModelPolicy
from planish.models.networks import HEADS, ReaderShape, Shape, predict_lists, scaled, scores
from planish.models.policy_files import SavedPolicy, policy_for
from planish.models.writer import EncodedPrograms, ListGrammar, WriterShape, encode_observed, next_scores

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WalkState:
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

    def begin(self, space: Space) -> WalkState:
        """Begin at the start of a space.

        Raises:
            PlanishError: the policy is for another space.
        """
        otherwise = f"is for the actions of {self._saved.schema.name}"
        fitting = self._saved.require_fit(space, CanObserve, otherwise)
        return WalkState(fitting, fitting.start())

    def extend(self, state: PolicyState, step: Step) -> WalkState:
        """Take a step."""
        assert isinstance(state, WalkState)
        return WalkState(state.space, state.space.extend(state.candidate, step))

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Ask the network once for all states that are not at their end; illegal actions are masked."""
        known = [state for state in states if isinstance(state, WalkState)]
        most = self._saved.steps
        legal = [() if len(s.candidate.steps) >= most else s.space.steps(s.candidate) for s in known]
        unfinished = [index for index, steps in enumerate(legal) if steps]
        # Where no step is legal, or all are taken, the end is certain.
        found: list[Mapping[Step | None, float]] = [{None: 0.0}] * len(known)
        if unfinished:
            for index, row in zip(unfinished, self._scores([known[i] for i in unfinished]), strict=True):
                found[index] = _masked(known[index].space.actions, legal[index], row)
        return found

    def value(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Return the scores of the end: the value that the network predicts for each candidate."""
        return self._scores([state for state in states if isinstance(state, WalkState)])[:, -1].tolist()

    def _scores(self, states: Sequence[WalkState]) -> Floats:
        observed = np.stack([state.space.observe(state.candidate) for state in states])
        done = np.array([len(state.candidate.steps) for state in states], np.float32)
        rows = scaled(observed, 1 - done / np.float32(self._saved.steps))
        return scores(np, self._shape, self._saved.parameters, rows)


def _masked(actions: Sequence[Step], legal: Sequence[Step], row: Floats) -> Mapping[Step | None, float]:
    number: dict[Step | None, int] = {action: number for number, action in enumerate((*actions, None))}
    allowed: Sequence[Step | None] = (*legal, None)
    kept = np.array([row[number[step]] for step in allowed], np.float64)
    # Less the greatest, so that no exponential overflows; masked first, for illegal actions must get no
    # share.
    log_probs = kept - kept.max()
    log_probs -= np.log(np.exp(log_probs).sum())
    return dict(zip(allowed, log_probs.tolist(), strict=True))


@dataclass(frozen=True)
class EncodedProgram:
    """Encoding of one program, shared by all its lists.

    Args:
        encoded: the program, as the decoder attends to it.
        steps: of each token; None where the space lacks it, and for the end.
        there: which tokens there are, the end last.
        grammar: which lists are legal.
    """

    encoded: EncodedPrograms
    steps: tuple[Step | None, ...]
    there: NDArray[np.bool_]
    grammar: ListGrammar


@dataclass(eq=False)
class WrittenPrefix:
    """Prefix of a list, with the keys and values of its last step, which all its continuations share.

    Args:
        program: that it is written for.
        candidate: the steps so far.
        before: the prefix without the last step.
        token: the last step's; None at the start.
        state: of the grammar.
        memory: (layers, 2, width), keys and values of the last step; None until it is asked for.
        scores: of the tokens that may follow; None until then.
    """

    program: EncodedProgram
    candidate: Candidate
    before: WrittenPrefix | None = None
    token: int | None = None
    state: int = 0
    memory: Floats | None = None
    scores: Floats | None = None

    def path(self) -> list[WrittenPrefix]:
        """Return the prefixes of this one, from the start to itself."""
        return [*(self.before.path() if self.before else []), self]


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

    def begin(self, space: Space) -> WrittenPrefix:
        """Read the program of a space.

        Raises:
            PlanishError: the policy is for another space.
        """
        fitting = self._saved.require_fit(space, CanObserve)
        observed = fitting.observe(fitting.start())[None]
        encoded = encode_observed(self._shape, self._saved.parameters, observed)
        known = {str(step): step for step in fitting.actions}
        steps = (*(known.get(text) for text in self._saved.actions), None)
        there = np.array([*(step is not None for step in steps[:-1]), True])
        return WrittenPrefix(EncodedProgram(encoded, steps, there, self._grammar), fitting.start())

    def extend(self, state: PolicyState, step: Step) -> WrittenPrefix:
        """Write a step."""
        assert isinstance(state, WrittenPrefix)
        program, token = state.program, state.program.steps.index(step)
        after = program.grammar.after(state.state, token)
        return WrittenPrefix(program, state.candidate.then(step), state, token, after)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Ask the network for all states that are new to it, those of one program at once."""
        asked = [state for state in states if isinstance(state, WrittenPrefix)]
        # What is new, and its prefixes.
        new = dict.fromkeys(one for state in asked for one in state.path() if one.memory is None)
        while new:
            ready: dict[int, list[WrittenPrefix]] = defaultdict(list)
            for one in new:
                if one.before is None or one.before.memory is not None:
                    # Programs apart, since all rows of one question attend to the same program.
                    ready[id(one.program)].append(one)
            for some in ready.values():
                self._score(some)
            # Length by length: a prefix can be scored only when those before it have been.
            new = {one: None for one in new if one.memory is None}
        return [_next_steps(state) for state in asked]

    def _score(self, states: Sequence[WrittenPrefix]) -> None:
        shape = self._shape
        paths = [state.path()[:-1] for state in states]
        lengths = np.array([len(path) for path in paths])
        past = np.zeros((len(states), lengths.max(), shape.depth, 2, shape.width), np.float32)
        for row, path in enumerate(paths):
            for column, one in enumerate(path):
                past[row, column] = one.memory
        tokens = np.array([state.token for state in states]) if past.shape[1] else None
        encoded = states[0].program.encoded
        scores, fresh = next_scores(shape, self._saved.parameters, encoded, past, lengths, tokens)
        for row, state in enumerate(states):
            state.memory, state.scores = fresh[row], scores[row]


def _next_steps(state: WrittenPrefix) -> Mapping[Step | None, float]:
    program = state.program
    assert state.scores is not None
    legal = program.grammar.legal(state.state) & program.there
    if not legal.any():
        return {None: 0.0}
    # Illegal tokens are left out before the sum: what remains are probabilities of legal lists.
    kept = state.scores[legal].astype(np.float64)
    log_probs = kept - np.logaddexp.reduce(kept)
    return {program.steps[token]: float(p) for token, p in zip(np.flatnonzero(legal), log_probs, strict=True)}


@dataclass(frozen=True)
class ListState:
    """State of a policy over lists: those that begin with its candidate.

    Args:
        candidate: the steps so far.
        rests: of each list, the steps that are left, and the logarithm of its probability.
    """

    candidate: Candidate
    rests: tuple[tuple[tuple[Step, ...], float], ...]


class ListPolicy:
    """Writes one of the lists that its network ranks, a step at a time.

    The probability of a step is that of all lists which go on so; thus the lists are as probable as the
    network predicts. Lists with a step that the space lacks, as where a pass breaks the module, are left out.

    Args:
        saved: the network, and what it is for.
    """

    def __init__(self, saved: SavedPolicy) -> None:
        assert isinstance(saved.shape, ReaderShape)
        self._saved, self._shape = saved, saved.shape

    def begin(self, space: Space) -> ListState:
        """Read the program of a space; raises PlanishError where the policy is for another space."""
        fitting, saved = self._saved.require_fit(space, CanObserve), self._saved
        observed = fitting.observe(fitting.start())[None]
        chances = predict_lists(self._shape, saved.parameters, observed)[0, HEADS.index("choice")]
        steps = {str(step): step for step in fitting.actions}
        rests = [
            (tuple(steps[text] for text in saved.actions[index].split(",")), float(chances[index]))
            for index in saved.writable(steps)
        ]
        return ListState(fitting.start(), tuple(rests))

    def extend(self, state: PolicyState, step: Step) -> ListState:
        """Keep the lists whose next step it is."""
        assert isinstance(state, ListState)
        rests = tuple((rest[1:], log_prob) for rest, log_prob in state.rests if rest and rest[0] == step)
        return ListState(state.candidate.then(step), rests)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Add up the lists by their next step, or end; where none is left, there is the end alone."""
        found = list[Mapping[Step | None, float]]()
        for state in states:
            assert isinstance(state, ListState)
            chances = dict[Step | None, float]()
            for rest, log_prob in state.rests:
                step = rest[0] if rest else None
                # In logarithms: probabilities of improbable lists would be 0 in float64 long before their
                # ratio is.
                chances[step] = float(np.logaddexp(chances.get(step, -np.inf), log_prob))
            # Divided by what is left: the share of lists that the space cannot take goes to the others.
            whole = float(np.logaddexp.reduce(list(chances.values()))) if chances else 0.0
            found.append({step: chance - whole for step, chance in chances.items()} or {None: 0.0})
        return found


def policy_of(saved: SavedPolicy) -> Policy:
    """Make a policy of what was saved: one that walks, chooses among lists, writes them, or answers."""
    if isinstance(saved.shape, DecoderShape):
        return LanguageModelPolicy(saved)
    if isinstance(saved.shape, WriterShape):
        return WritingPolicy(saved)
    return ListPolicy(saved) if isinstance(saved.shape, ReaderShape) else NetworkPolicy(saved)


ESCAPE = 0.1
"""Weight of all steps that follow the last one in some list, beside all lists together, which weigh 1."""
Steps = tuple[Step, ...]
Weights = Mapping[Step | None, float]


@dataclass(frozen=True)
class SeedState:
    """State of the policy: the steps so far in their order, and the candidate that they make.

    Args:
        space: of the candidate.
        taken: steps, in order.
        candidate: which may have them in an order of its own.
    """

    space: CanStep
    taken: Steps
    candidate: Candidate


class SeedPolicy:
    """Goes on as the lists do that begin so, or, less probably, as any list does after the last step.

    The list of index r weighs 1 / (r + 1), all of them together 1. After a prefix, a step weighs as much
    as the lists that begin so and go on with it, and `ESCAPE` times the share of what follows the last step
    anywhere. So the lists themselves are probable, and less so their prefixes with the ends of others.

    Args:
        lists: the best first; at least one.
    """

    def __init__(self, lists: Sequence[Candidate]) -> None:
        if not lists:
            raise PlanishError(
                "there are no lists to make a policy of",
                'Name a policy: searcher_options={"policy": "NAME"}.',
            )
        whole = sum(1 / (index + 1) for index in range(len(lists)))
        begun = defaultdict[Steps, defaultdict[Step | None, float]](lambda: defaultdict(float))
        after = defaultdict[Step | None, defaultdict[Step | None, float]](lambda: defaultdict(float))
        for index, candidate in enumerate(lists):
            weight = 1 / (index + 1) / whole
            steps = (None, *candidate.steps, None)
            for at, (last, step) in enumerate(pairwise(steps)):
                begun[candidate.steps[:at]][step] += weight
                after[last][step] += weight
        self._begun: Mapping[Steps, Weights] = begun
        self._after: Mapping[Step | None, Weights] = after
        self._longest = max(len(candidate.steps) for candidate in lists)

    def begin(self, space: Space) -> SeedState:
        """Begin at the start of a space; raises PlanishError where the space does not take steps."""
        if not isinstance(space, CanStep):
            raise PlanishError("a policy needs a space that is walked step by step", "Name another space.")
        return SeedState(space, (), space.start())

    def extend(self, state: PolicyState, step: Step) -> SeedState:
        """Take a step."""
        assert isinstance(state, SeedState)
        candidate = state.space.extend(state.candidate, step)
        return SeedState(state.space, (*state.taken, step), candidate)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Weigh what follows in the lists; what the space cannot take, or changes nothing, is none."""
        return [self._next(state) for state in states if isinstance(state, SeedState)]

    def _next(self, state: SeedState) -> Mapping[Step | None, float]:
        # What follows a step in some list may lead back to it: without a bound, it could go round for ever.
        if len(state.taken) >= self._longest:
            return {None: 0.0}
        found = defaultdict[Step | None, float](float)
        for step, weight in self._begun.get(state.taken, {}).items():
            found[step] += weight
        follows = self._after.get(state.taken[-1] if state.taken else None, {None: 1.0})
        whole = sum(follows.values())
        for step, weight in follows.items():
            found[step] += ESCAPE * weight / whole
        kept = {step: weight for step, weight in found.items() if step is None or _moves(state, step)}
        total = sum(kept.values())
        return {step: math.log(weight / total) for step, weight in kept.items()} if total else {None: 0.0}


def _moves(state: SeedState, step: Step) -> bool:
    """Return whether a step leads to another candidate."""
    try:
        return state.space.extend(state.candidate, step) != state.candidate
    except ScheduleError:
        return False


AUTO, SEEDS = "auto", "seeds"
"""Name the first policy that fits, and the one that is made of what the space begins with."""


def policy_named(space: Space, name: str, context: SearchContext = EMPTY_CONTEXT) -> Policy:
    """Find a policy.

    Args:
        space: where it is to walk.
        name: of a policy; a file; "seeds", for one made of the lists that the space begins with; or "auto",
            for the first one that fits the space, or else that.
        context: what was learned before.

    Raises:
        PlanishError: there is none, or it is for another space.
    """
    seeds = space.seeds(context) if isinstance(space, CanSeed) else ()
    if name == SEEDS or (name == AUTO and seeds and not isinstance(space, CanObserve)):
        return SeedPolicy(seeds)
    if not isinstance(space, CanObserve):
        what = f"no policy is for the space {type(space).__name__}: it describes no candidate to one"
        raise PlanishError(what, "Name another space, or another searcher: planish searchers.")
    return policy_of(policy_for(space, name))
