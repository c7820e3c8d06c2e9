"""Searchers that measure samples of a policy: by Priority Sampling, or drawn (thesis chapter 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

from planish.core import UNTAUGHT, Candidate, CanStep, Objective, Policy, SearchContext
from planish.search.decoding import METHODS, Decoding, PrefixTree, decode, priority_samples, ranking
from planish.search.options import Option
from planish.search.policy_searcher import Name, PolicySearcher, new_programs, timed_policy
from planish.search.rounds import once


class PrioritySampling(PolicySearcher):
    """Priority Sampling: the most probable candidates of a policy, each once (thesis chapter 6)."""

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,
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
        named = timed_policy(space, policy, context)
        found = new_programs(space, priority_samples(named, space, branches=branches or None, by=by))
        super().__init__(objectives, named, once(islice(found, samples) if samples else found))


class PolicySamples(PolicySearcher):
    """Samples of a policy, drawn or by beams: nucleus, stochastic-beam, arithmetic, unique and others."""

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = UNTAUGHT,
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
        named = timed_policy(space, policy, context)
        how = Decoding(method, samples, seed, temperature, top_k, top_p, groups, penalty)
        super().__init__(objectives, named, once(new_programs(space, _decoded(named, space, how))))


def _decoded(policy: Policy, space: CanStep, how: Decoding) -> Iterator[Candidate]:
    """Begin when the first one is asked for: to read a program takes a while."""
    for node in decode(PrefixTree(policy, space), how):
        yield node.candidate
