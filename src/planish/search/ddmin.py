"""Delta debugging: which of a candidate's steps are needed? (Zeller and Hildebrandt, 2002)"""

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain

from planish.core import Candidate, CanShrink

Places = tuple[int, ...]
Asking = Generator[list[Places], Sequence[bool], Places]
WillDo = Callable[[Sequence[Candidate]], Sequence[bool] | None]
"""The test: which of some candidates will do; None ends the search for shorter ones."""


def ddmin(count: int) -> Asking:
    """Find a few of many places that still pass a test, such that none of them alone can be left out.

    Unlike the original, it asks for complements alone, which is enough for that; and where each of several
    parts can be left out, it asks whether all of them can at once.

    Args:
        count: how many places there are; all of them together pass.

    Yields:
        Sets of places; it is sent, for each, whether it passes.

    Returns:
        The places, in order.
    """
    # Begins with halves, as in the paper: where most steps are idle, each answer takes off half of them.
    kept, parts = tuple(range(count)), 2
    while kept:
        # Finer than single places there is nothing to ask.
        parts = min(parts, len(kept))
        # Of integers, so that the parts' lengths differ by one at most and none is empty.
        cuts = [kept[len(kept) * i // parts : len(kept) * (i + 1) // parts] for i in range(parts)]
        # Asked together, since they do not depend on each other: who answers may test them side by side.
        answers = yield [_without(kept, cut) for cut in cuts]
        idle = [cut for cut, will_do in zip(cuts, answers, strict=True) if will_do]
        # Each part is a single place, and each is needed: 1-minimal, in the paper's words.
        if not idle and parts == len(kept):
            return kept
        if len(idle) > 1:
            (all_at_once,) = yield [_without(kept, chain(*idle))]
            # Each part may be idle only because another does its work: then they cannot all go.
            idle = idle if all_at_once else idle[:1]
        kept = _without(kept, chain(*idle))
        # The granularity of the paper: the parts that remain, as they were cut; or twice as many.
        parts = max(2, parts - len(idle)) if idle else 2 * parts
    return kept


def _without(places: Places, left_out: Iterable[int]) -> Places:
    out = set(left_out)
    return tuple(place for place in places if place not in out)


def shrink(space: CanShrink, candidate: Candidate, will_do: WillDo) -> Candidate:
    """Leave steps out of a candidate by delta debugging.

    Args:
        space: what the candidate belongs to.
        candidate: it passes the test.
        will_do: the test of legal candidates; none is asked for twice.

    Returns:
        A candidate that passes, from which no single step can be left out; where `will_do` ended the
        search, the shortest one so far.
    """
    known: dict[Candidate, bool] = {candidate: True}
    asking = ddmin(len(candidate.steps))
    answers: list[bool] | None = None
    try:
        while True:
            batch = asking.send(answers) if answers is not None else next(asking)
            # A step may need another one, so a selection may be no legal candidate: then it does not pass.
            found = [space.selected(candidate, places) for places in batch]
            # Different places may select the same candidate, for equal steps can stand in several places.
            new = list(dict.fromkeys(c for c in found if c is not None and c not in known))
            told = will_do(new) if new else ()
            if told is None:
                return min((c for c, does in known.items() if does), key=lambda c: len(c.steps))
            known.update(zip(new, told, strict=True))
            answers = [c is not None and known[c] for c in found]
    except StopIteration as end:
        return space.selected(candidate, end.value) or candidate
