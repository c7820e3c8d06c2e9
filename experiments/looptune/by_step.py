"""What each way has found with so many actions, and when (thesis, figure 3.10), for one test matmul.

    python experiments/looptune/by_step.py [--case 0] [--seconds 6] [--policy auto]

Searches tell the best of all candidates with at most so many actions that they measured within the time, and
how many seconds after their beginning they had it; the policy tells the states of its way, without measuring:
the greedy one, as the thesis has it, and the most hopeful of eight, which `--searcher policy` takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cases import SEARCHES, Case, rate_of

from planish.core import Candidate
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.space.cursor import ACTIONS_MAX
from planish.levels.loops.workloads import matmul, thesis_split
from planish.models.named_policies import NetworkPolicy
from planish.models.policy_files import policy_for
from planish.search.factory import make_searcher
from planish.search.policies import best_rollout, greedy_rollout

Found = list[tuple[float, float]]
"""GFLOPS and seconds, by the number of actions from 0 on."""


def searched(case: Case, name: str, options: Mapping[str, Any], seconds: float) -> Found:
    """Search, and give the best with at most so many actions."""
    searcher = make_searcher(name, case.space, [LoopsLevel.objectives["gflops"]], 0, options)
    begun, found = time.monotonic(), [(0.0, 0.0)] * (ACTIONS_MAX + 1)
    place = 0
    while time.monotonic() < begun + seconds and (asked := searcher.ask(1)):
        trials = [case.trial(candidate, place) for candidate in asked]
        place += len(asked)
        searcher.tell(trials)
        for trial in trials:
            for actions in range(len(trial.candidate.steps), ACTIONS_MAX + 1):
                if rate_of(trial) > found[actions][0]:
                    found[actions] = rate_of(trial), time.monotonic() - begun
    return found


def walked(case: Case, walker: NetworkPolicy) -> Found:
    """Give the states of a policy's most probable way, and how long it took to them; the thesis' agent."""
    begun = time.monotonic()
    way = list(greedy_rollout(walker, case.space, whole=True))
    took = time.monotonic() - begun
    return _with_rates(case, way, [took * (place + 1) / len(way) for place in range(len(way))])


def chosen(case: Case, walker: NetworkPolicy) -> Found:
    """Give the states on the way that `--searcher policy` chooses; it knows none of them before the last."""
    begun = time.monotonic()
    (end,) = best_rollout(walker, case.space)
    took = time.monotonic() - begun
    way = [Candidate(end.steps[:actions]) for actions in range(len(end.steps) + 1)]
    return _with_rates(case, way, [took] * len(way))


def _with_rates(case: Case, way: Sequence[Candidate], moments: Sequence[float]) -> Found:
    found = [(case.rate(candidate), moment) for candidate, moment in zip(way, moments, strict=True)]
    return [*found, *found[-1:] * (ACTIONS_MAX + 1 - len(found))]  # it may end sooner


def main() -> None:
    """Measure and print both halves of the figure."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--case", type=int, default=0, help="which of the test matmuls")
    given.add_argument("--seconds", type=float, default=6.0)
    given.add_argument("--policy", default="auto")
    asked = given.parse_args()
    size = thesis_split()[1][asked.case]
    case = Case(matmul(*size))
    found = {way: searched(case, *of, asked.seconds) for way, of in SEARCHES.items()}
    walker = NetworkPolicy(policy_for(case.space, asked.policy))
    found |= {"policy, greedy": walked(case, walker), "policy": chosen(case, walker)}
    print(f"{' by '.join(map(str, size))}\n")
    heads = " | ".join(str(actions) for actions in range(ACTIONS_MAX + 1))
    for title, part in (("GFLOPS with so many actions", 0), ("seconds", 1)):
        print(f"| {title} | {heads} |\n|---|{'--:|' * (ACTIONS_MAX + 1)}")
        for way, values in found.items():
            cells = [f"{value[part]:.1f}" if not part else f"{value[part]:.3f}" for value in values]
            print(f"| {way} | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
