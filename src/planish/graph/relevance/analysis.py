"""Finding out which passes change a model."""

from __future__ import annotations

from planish.core import PlanishError
from planish.graph.passes import EXACT, passes_of_kind
from planish.graph.relevance.examiner import Examiner
from planish.graph.relevance.findings import Rewriting, Runtime
from planish.graph.relevance.patience import PatienceClock
from planish.graph.relevance.relevant import Relevance

PATIENCE_S = 6.0
"""Seconds of a processor after which what is not yet looked at stays unknown."""
THOROUGH_S = 20.0
"""The same where nobody waits for it to begin a search."""
_RULES, _ALONE = 0.2, 0.7
"""The shares of them after which the runtime's rules, and passes alone, stay unknown."""
_AFTER = 3
"""After so many rewriting passes, those that leave the fewest nodes, the runtime's passes are looked at."""


def analyse(examiner: Examiner, patience_s: float = PATIENCE_S) -> Relevance:
    """Find out which passes change a model at all, alone and after each other (section 3.2 of the paper).

    First each rewriting pass is tried alone; then each that changed nothing, after those that did. A pass is
    not tried on a model that lacks its operators, and counts as failing where the runtime refuses its result.
    Whatever goes wrong is noted, and passes about which too little is known may matter.

    Args:
        examiner: of the model.
        patience_s: seconds of a processor for all.
    """
    try:
        return _analyse(examiner, patience_s)
    except Exception as error:  # noqa: BLE001
        every = tuple(each.name for each in passes_of_kind(*EXACT))
        runtime = tuple(each.name for each in passes_of_kind("rule", "transformer"))
        reason = error.message if isinstance(error, PlanishError) else f"{type(error).__name__}: {error}"
        return Relevance((), runtime=runtime, untried=every, problems=(f"the model as it came: {reason}",))


def _analyse(examiner: Examiner, patience_s: float) -> Relevance:
    until = PatienceClock(examiner, patience_s)
    found = Rewriting(examiner)
    runtime = Runtime(examiner)
    runtime.look(())
    rules = [each.name for each in passes_of_kind("rule") if found.may_matter(each.name)]
    looked = until(_RULES, rules, runtime.try_rule)
    names = [each.name for each in passes_of_kind(*EXACT)]
    # Alone before after each other: there are as many of these as passes, and of pairs their square.
    tried = until(_ALONE, names, found.try_alone)
    until(1, found.strongest()[:_AFTER], lambda name: runtime.look((name,)))
    # Only those that were tried alone: of the others nothing is known yet.
    pairs = found.pairs(names[:tried])
    done = until(1, pairs, found.try_after)
    matter = runtime.names(rules[looked:])
    untried = [name for name in names[tried:] if found.may_matter(name)]
    silent = [name for name in names if not found.has_said(name) and name not in untried]
    others = [each.name for each in passes_of_kind("rule", "transformer") if each.name not in matter]
    return Relevance(
        alone=tuple(found.alone),
        after=found.after,
        failing=found.failing,
        runtime=matter,
        without=(*silent, *others),
        untried=tuple(untried),
        pairs=done,
        unknown=len(pairs) - done,
        seconds=until.spent,
        missing=runtime.missing(),
        problems=(*found.problems, *runtime.problems),
    )
