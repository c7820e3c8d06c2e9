"""Leaving out the steps that do not contribute (thesis 4.3.2)."""

from planish.core import Candidate, CanShrink
from planish.search.archive import Archive
from planish.search.rounds import Rounds


def minimise(space: CanShrink, ledger: Archive, candidate: Candidate) -> Rounds:
    """Leave out one step after another while the cost does not rise.

    In the end no single step can be left out. As in the thesis, steps are tried one at a time; there in
    random order, here each once from the first to the last, and again from the place of the last success.
    That takes about as many measurements as there are steps, and one more for each that stays.

    Args:
        space: what the candidate belongs to.
        ledger: where the candidate's cost is known, and each shorter one's is noted; its best candidate
            is the result, unless another one is better than both.
        candidate: what to shorten.
    """
    # None where the candidate failed: then there is nothing to keep below.
    place, limit = 0, ledger.cost(candidate)
    while limit is not None:
        shorter = _shorter(space, candidate)
        # After a success the same place holds the next step, unless it was the last.
        order = [*range(place, len(shorter)), *range(min(place, len(shorter)))]
        for place in order:
            yield from ledger.measure_new([shorter[place]])
            cost = ledger.cost(shorter[place])
            # Equal counts as no worse: a step that changes nothing goes. Where costs are times, the bound
            # falls with each success, so noise cannot add up to a slower program.
            if cost is not None and cost <= limit:
                candidate, limit = shorter[place], cost
                break
        else:
            return


def _shorter(space: CanShrink, candidate: Candidate) -> list[Candidate]:
    """List the legal candidates that lack one step of this one."""
    every = range(len(candidate.steps))
    found = (space.selected(candidate, [p for p in every if p != place]) for place in every)
    return [each for each in found if each is not None]
