"""Priority Sampling: the candidates that a policy is surest of, each once (thesis, algorithm 1)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from planish.core import Candidate, Policy, Space, unknown
from planish.search.decoding.tree import Node, PrefixTree

RANKINGS: Mapping[str, Callable[[Node, int], float]] = {
    "last": lambda node, place: float(node.sure[place]),
    "mean": lambda node, place: (node.log_probability + float(node.sure[place])) / (node.depth + 1),
    "whole": lambda node, place: node.log_probability + float(node.sure[place]),
}
"""How branches are ranked: by their own step, as algorithm 1 does; by the geometric mean of all steps, as in
table 6.1; or by the product of all, which the thesis does not try."""

WIDTH = 4
"""Branches that are completed together, unless said otherwise."""


@dataclass(eq=False)
class _Branch:
    """A step that was not taken, and how it goes on greedily, as far as that is known.

    Args:
        rank: less comes sooner; of equal ones the older.
        from_: where it leaves; None for the start.
        place: of the step.
        way: beginnings that it leads through.
        at: what follows them; a whole candidate where the branch is complete.
    """

    rank: tuple[float, int]
    from_: Node | None
    place: int
    way: list[Node] = field(default_factory=list[Node])
    at: Node | None = None


def ranking(by: str) -> Callable[[Node, int], float]:
    """Find out how branches are ranked: how good a step of a beginning is.

    Raises:
        PlanishError: there is no such ranking.
    """
    if by not in RANKINGS:
        raise unknown("branches are not ranked by", by, RANKINGS)
    return RANKINGS[by]


def priority_samples(
    policy: Policy, space: Space, *, samples: int | None = None, branches: int | None = None, by: str = "last"
) -> Iterator[Candidate]:
    """Give a policy's candidates by Priority Sampling; see `prioritised`.

    Args:
        policy: is sampled.
        space: from whose start.
        samples: how many; None: until there is no other.
        branches: how many of the next steps are kept of each beginning; None: all.
        by: how branches are ranked.
    """
    tree = PrefixTree(policy, space)
    for node in prioritised(tree, samples=samples, branches=branches, by=by, width=WIDTH):
        yield node.candidate


def prioritised(
    tree: PrefixTree,
    *,
    samples: int | None = None,
    branches: int | None = None,
    by: str = "last",
    width: int = 1,
) -> Iterator[Node]:
    """Give a policy's candidates: the greedy one, and then from the most probable branch on.

    Each sample is completed greedily, and each step that was not chosen on its way is a branch for later.
    Nothing is drawn, no sample comes twice, and a policy is asked once about each beginning.

    The queue holds no more branches than there are samples left to give: of a longer one the rest would never
    be taken, so the samples are the same. (The thesis bounds it by all samples.)

    With `width`, the branches that come next are completed together, a step of each with one question; whose
    place gets free is followed by the next one in the queue. A branch goes on in the same way whoever else is
    asked about, and is taken from the queue in its turn: so **samples and their order are those of one branch
    at a time**, for any width, if the policy's answers do not depend on what else it is asked about; those of
    networks may differ in their last digits, which matters where two branches are as probable. What it may
    cost is inferences for branches that others overtake.

    Args:
        tree: of the policy.
        samples: how many are taken; None: until there is no other.
        branches: how many of the next steps are kept of each beginning, the chosen one included; None: all.
            It is `max_branch` in table 6.1.
        by: how branches are ranked, one of `RANKINGS`.
        width: branches that are completed together.

    Raises:
        PlanishError: branches are not ranked so.
    """
    rank, number, left = ranking(by), count(), samples
    queue = [_Branch((0.0, -1), None, 0, at=tree.root)]
    while queue and left != 0:
        _complete_first(tree, queue, width)
        branch = queue.pop(0)
        left = None if left is None else left - 1
        for node in branch.way:
            # From the second on: the first is the greedy step, which this sample has taken.
            for place in range(1, len(node.steps[:branches])):
                new = _Branch((-rank(node, place), next(number)), node, place)
                # A sorted list and not a heap, since its end is cut off, too.
                insort(queue, new, key=lambda each: each.rank)
            del queue[len(queue) if left is None else left :]
        assert branch.at is not None
        yield branch.at


def _complete_first(tree: PrefixTree, queue: Sequence[_Branch], width: int) -> None:
    """Go on with the first few branches that are not complete, until the very first one is."""
    while not _over(tree, queue[0]):
        few = list[_Branch]()
        for branch in queue:
            if len(few) == width:
                break
            if not _over(tree, branch):
                few.append(branch)
        nodes = [branch.at for branch in few if branch.at]
        tree.open(nodes)
        for branch, node in zip(few, nodes, strict=True):
            branch.way.append(node)
            branch.at = tree.child(node, 0)


def _over(tree: PrefixTree, branch: _Branch) -> bool:
    """Whether a branch is complete."""
    if branch.at is None:
        assert branch.from_ is not None
        branch.at = tree.child(branch.from_, branch.place)
    return branch.at.ended
