"""Searchers that ask a policy: rollouts and their improvement, samples, and revisions after feedback.

`FollowPolicy` follows a policy (thesis 3.6), `PrioritySampling` and `PolicySamples` measure its samples
(thesis chapter 6), and `Feedback` reports the cost of a language model's list to it and asks again (thesis
chapter 5). The seconds that a policy takes are counted apart from those of the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import chain, islice
from typing import Annotated

from planish.core import (
    EMPTY_CONTEXT,
    CanCompile,
    Candidate,
    CanStep,
    MultiTurnPolicy,
    Objective,
    PlanishError,
    Policy,
    PolicyState,
    SearchContext,
    Space,
    TrialPrediction,
    ValueHead,
)
from planish.search.decoding import (
    METHODS,
    WIDTH,
    Decoding,
    Node,
    PrefixTree,
    decode,
    prioritized,
    ranking,
)
from planish.search.factory import Option, TimedPolicy, timed_policy
from planish.search.rounds import Rounds, RoundSearcher, recording, single_round

Name = Annotated[
    str, Option("a policy's name, a file, seeds: of the lists that the space begins with, or auto")
]


class PolicySearcher(RoundSearcher):
    """Searches by a policy, and counts the time that it takes.

    Args:
        objectives: at least one; the first leads.
        policy: is asked.
        rounds: the search.
    """

    needs = CanStep

    def __init__(self, objectives: Sequence[Objective], policy: TimedPolicy, rounds: Rounds) -> None:
        super().__init__(objectives, rounds)
        self._policy = policy
        self._predictions: dict[str, TrialPrediction] = {}

    @property
    def model_s(self) -> float:
        """Seconds that the policy took; see `planish.core.Searcher`."""
        return self._policy.seconds

    def prediction(self, candidate: Candidate) -> TrialPrediction | None:
        """Return the probability of the steps by which the policy reached a candidate."""
        return self._predictions.pop(candidate.hash, None)

    def _programs(self, space: Space, decode: Callable[[PrefixTree], Iterable[Node]]) -> Iterator[Candidate]:
        """Yield what is decoded, each program once."""

        def candidates() -> Iterator[Candidate]:
            # Begun when the first one is asked for: to read a program takes a while.
            yield from map(self._propose, decode(PrefixTree(self._policy, space)))

        return new_programs(space, candidates())

    def _propose(self, node: Node) -> Candidate:
        """Return the candidate of a node, and keep its probability."""
        candidate = node.candidate
        self._predictions[candidate.hash] = TrialPrediction(math.exp(node.log_probability))
        return candidate


def first_of_each(
    key: Callable[[Candidate], str], candidates: Iterable[Candidate], known: set[str]
) -> Iterator[Candidate]:
    """Leave out the candidates whose key is known, and record the keys of the others."""
    for candidate in candidates:
        if (name := key(candidate)) not in known:
            known.add(name)
            yield candidate


def new_programs(space: Space, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Leave out candidates that make a program that an earlier one has made.

    By program and not by state, which has what may follow, too: nothing follows a whole sample.
    """
    return first_of_each(space.program_key, candidates, set())


class PrioritySampling(PolicySearcher):
    """Priority Sampling: the most probable candidates of a policy, each once (thesis chapter 6)."""

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = EMPTY_CONTEXT,
        *,
        policy: Name = "auto",
        samples: Annotated[int, Option("candidates; 0: until there is no other", least=0)] = 0,
        branches: Annotated[int, Option("next steps that are kept of each state; 0: all", least=0)] = 0,
        by: Annotated[
            str, Option("how branches are ranked: last (step), mean (of all, geometric) or whole (product)")
        ] = "last",
    ) -> None:
        # Checked here, for the generator below checks it only when the first candidate is asked for.
        ranking(by)
        found = self._programs(space, partial(prioritized, branches=branches or None, by=by, width=WIDTH))
        rounds = single_round(islice(found, samples or None))
        super().__init__(objectives, timed_policy(space, policy, context), rounds)


class PolicySamples(PolicySearcher):
    """Samples of a policy, drawn or by beams: nucleus, stochastic-beam, arithmetic, unique and others."""

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,
        *,
        policy: Name = "auto",
        method: Annotated[str, Option(f"one of {', '.join(METHODS)}")] = "nucleus",
        samples: Annotated[int, Option("how many; equal ones are measured once", least=1)] = 100,
        temperature: Annotated[float, Option("of all that draw", least=0)] = 1.0,
        top_k: Annotated[int, Option("next steps that top-k keeps", least=1)] = 5,
        top_p: Annotated[float, Option("probability that nucleus keeps", least=0, most=1)] = 0.95,
        groups: Annotated[int, Option("of diverse-beam", least=1)] = 4,
        penalty: Annotated[
            float, Option("of diverse-beam, for each beam of another group that took a step", least=0)
        ] = 0.5,
    ) -> None:
        how = Decoding(method, samples, seed, temperature, top_k, top_p, groups, penalty)
        rounds = single_round(self._programs(space, partial(decode, how=how)))
        super().__init__(objectives, timed_policy(space, policy, context), rounds)


UNLIKELY = 3.0
"""Logarithm of how many times as probable the most probable step is where an episode does not end."""

WAYS = 8
"""Rollouts among whose ends a policy with a value head chooses."""


class FollowPolicy(PolicySearcher):
    """Follows a policy, and measures the end of its rollouts of the highest value (LoopTune, thesis 3.6)."""

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = EMPTY_CONTEXT,
        *,
        policy: Name = "auto",
        path: Annotated[bool, Option("measure every state on the path, too")] = False,
        improve: Annotated[bool, Option("then leave the best path at each of its states, and so on")] = False,
    ) -> None:
        named = timed_policy(space, policy, context)
        propose = self._propose
        ends = (
            greedy_rollout(named, space, whole=True, propose=propose)
            if path
            else best_rollout(named, space, propose=propose)
        )
        rounds = rollout_iteration(named, space, propose) if improve else single_round(ends)
        super().__init__(objectives, named, rounds)


Propose = Callable[[Node], Candidate]
"""Returns the candidate of a node that is proposed."""


def candidate_of(node: Node) -> Candidate:
    """Return the candidate of a node."""
    return node.candidate


def best_rollout(
    policy: Policy, space: Space, ways: int = WAYS, propose: Propose = candidate_of
) -> Iterator[Candidate]:
    """Yield the end of the highest value, of a policy's greedy rollout and its most probable others.

    To predict where actions lead is harder than to predict the value of a schedule, so that a greedy rollout
    may end where the network itself predicts a low value. The thesis' agent has the greedy rollout only. Of a
    policy without a value head, its end is taken.

    Args:
        policy: is followed.
        space: from whose start.
        ways: rollouts that it chooses among.
        propose: what is done with the node that is proposed.
    """
    tree = PrefixTree(policy, space)
    *_, end = _rollout(tree, space, tree.root)
    if isinstance(policy, ValueHead):
        # Of the same tree: the policy is asked once about what the rollouts have in common.
        sampled = prioritized(tree, samples=ways, by="whole", width=WIDTH)
        several = dict[str, Node]()
        for node in chain([end], sampled):
            several.setdefault(space.program_key(node.candidate), node)
            if len(several) == ways:
                break
        values = policy.value([node.state for node in several.values()])
        end = max(zip(several.values(), values, strict=True), key=lambda pair: pair[1])[0]
    yield propose(end)


def greedy_rollout(
    policy: Policy, space: Space, *, whole: bool = False, propose: Propose = candidate_of
) -> Iterator[Candidate]:
    """Yield where the most probable steps end; with `whole`, every state on the path before it.

    No step leads back to where the path has been: where two steps are as good, a network may go to and fro.

    Args:
        policy: is followed.
        space: from whose start.
        whole: whether the path counts too.
        propose: what is done with each node that is proposed.
    """
    tree = PrefixTree(policy, space)
    *path, end = _rollout(tree, space, tree.root)
    yield from map(propose, [*path, end] if whole else [end])


def rollout_iteration(policy: Policy, space: Space, propose: Propose = candidate_of) -> Rounds:
    """Search from a policy's rollout on: policy iteration, whose values the policy itself estimates.

    All states of the rollout are measured. Then the path to the best of them is left, at each of its states,
    by each of the other steps, and the policy is followed from there; all of that is measured, too. This is
    repeated, with the path to the best state, until a round finds no better one. No state is measured twice.

    This is policy iteration by rollouts, on one program: the network stays as it is.

    Args:
        policy: is followed.
        space: from whose start.
        propose: what is done with each node that is proposed.
    """
    known, lowest, tree = set[str](), math.inf, PrefixTree(policy, space)
    candidates = map(propose, _rollout(tree, space, tree.root))
    while True:
        asked = list[Candidate]()
        costs = yield recording(first_of_each(space.state_key, candidates, known), asked)
        found = {one: cost for one in asked if (cost := costs.get(one.hash)) is not None}
        best = min(found, key=lambda one: found[one], default=None)
        if best is None or found[best] >= lowest:
            return
        # Only what is strictly better is worth another round: each costs as many measurements as the path has
        # other steps, and equal states could take turns for ever.
        lowest = found[best]
        candidates = map(propose, _deviations(tree, space, best))


def _deviations(tree: PrefixTree, space: Space, candidate: Candidate) -> Iterator[Node]:
    """Leave the path to a candidate at each of its states, the end included, and follow the policy on."""
    node = tree.root
    # The end included: the best state may lie in the middle of a rollout that went on from it.
    for taken in (*candidate.steps, None):
        tree.expand([node])
        for index, step in enumerate(node.steps):
            # Not the end: that prefix was a state of the path, and is measured already.
            if step is not None and step != taken:
                yield from _rollout(tree, space, tree.child(node, index))
        if taken is not None:
            node = tree.child(node, node.steps.index(taken))


def _rollout(tree: PrefixTree, space: Space, node: Node) -> Iterator[Node]:
    """Yield a prefix, and those that the most probable steps lead to."""
    seen = set[str]()
    at: Node | None = node
    while at is not None:
        yield at
        # By state and not by candidate: different steps back lead to the same program.
        seen.add(space.state_key(at.candidate))
        at = _next_node(tree, space, at, seen)


def _next_node(tree: PrefixTree, space: Space, node: Node, seen: Set[str]) -> Node | None:
    """Return the result of the most probable step to a new state; None for the end.

    The end does not lead out of a loop: where it is `UNLIKELY`, it is taken only if all else leads back.
    """
    tree.expand([node])
    for index, log_prob in enumerate(node.log_probs):
        after = tree.child(node, index)
        if after.ended:
            # Reached only when all more probable steps lead back: see `UNLIKELY`.
            if log_prob >= node.log_probs[0] - UNLIKELY:
                return None
        elif space.state_key(after.candidate) not in seen:
            return after
    return None


_HINT = "Train one: planish policy train --level llvm --network decoder."


class Feedback(PolicySearcher):
    """A language model's list, then those that it writes after feedback on the last (thesis 5.5.3)."""

    needs = CanCompile
    library = "tokenizers"

    def __init__(
        self,
        space: CanCompile,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
        *,
        policy: Annotated[str, Option("a policy's name, a file, or auto: the first one that can")] = "auto",
        tries: Annotated[int, Option("lists at most, the first one included", least=1)] = 5,
    ) -> None:
        timed = TimedMultiTurn(multi_turn_policy(space, policy))
        super().__init__(objectives, timed, revised(timed, space, tries))


def revised(policy: MultiTurnPolicy, space: CanCompile, tries: int = 5) -> Rounds:
    """Follow a policy greedily, report the cost to it, and so on, until it keeps its candidate.

    Where a candidate comes again, the policy receives the known cost; nothing is measured twice.

    Args:
        policy: is followed, and receives costs.
        space: from whose start.
        tries: candidates at most.
    """
    known = dict[str, float | None]()
    state: PolicyState | None = policy.begin(space)
    for _ in range(tries):
        if state is None:
            return
        end = greedy_end(policy, state)
        name = end.candidate.hash
        if name not in known:
            costs = yield [end.candidate]
            known[name] = costs.get(name)
        state = policy.revise(end, known[name])


def greedy_end(policy: Policy, state: PolicyState) -> PolicyState:
    """Follow the most probable steps to the end."""
    while True:
        steps = policy.log_probabilities([state])[0]
        step = max(steps, key=lambda each: steps[each])
        if step is None:
            return state
        state = policy.extend(state, step)


def multi_turn_policy(space: CanCompile, name: str) -> MultiTurnPolicy:
    """Find a policy that takes feedback on its candidate.

    Args:
        space: where it is to walk.
        name: of a policy, a file, or "auto": the first one that fits and can.

    Raises:
        PlanishError: there is none, or it is for another space, or takes no feedback.
    """
    from planish.models.named_policies import AUTO, policy_of
    from planish.models.policy_files import load_policy, policy_for, policy_paths

    if name == AUTO:
        held = (load_policy(path) for path in policy_paths().values())
        found = (policy_of(each) for each in held if each.fits(space))
        policy = next((each for each in found if isinstance(each, MultiTurnPolicy)), None)
        if policy is None:
            raise PlanishError("no policy that fits takes feedback on its list", _HINT)
        return policy
    policy = policy_of(policy_for(space, name))
    if not isinstance(policy, MultiTurnPolicy):
        raise PlanishError(f"the policy '{name}' takes no feedback on its list", _HINT)
    return policy


class TimedMultiTurn(TimedPolicy):
    """Counts the seconds of revisions, too."""

    def __init__(self, policy: MultiTurnPolicy) -> None:
        super().__init__(policy)
        self._multi_turn = policy

    def revise(self, state: PolicyState, cost: float | None) -> PolicyState | None:
        """Revise as the policy does."""
        with self._timed():
            return self._multi_turn.revise(state, cost)
