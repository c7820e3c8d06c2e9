"""The spaces of pass lists that a user can name."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from planish.core import unknown
from planish.llvm.passes.breaking import within
from planish.llvm.passes.catalogue import PassElement
from planish.llvm.passes.coreset import load_coreset
from planish.llvm.passes.random_lists import ListShape
from planish.llvm.passes.space import LONGEST, PassSpace

SPACES = ("passes", "uniform", "safe")
"""The names: what does best, what the thesis does, and what LLVM itself does by default."""

SMOOTHING = 0.5
"""What is added to each pass's count in the coreset, so that every pass can be drawn."""

_DEFAULTS = tuple(f"default<{level}>" for level in ("Oz", "Os", "O1", "O2", "O3"))

SHAPES = (
    ListShape(0.4),
    ListShape(0.2, ("sroa<modify-cfg>",), "first"),
    ListShape(0.15, ("default<Oz>",), "last"),
    ListShape(0.1, ("default<Oz>",), "first"),
    ListShape(0.15, _DEFAULTS, "anywhere"),
)
"""The shapes of lists that gained most over -Oz in a trial of 1,500 lists on 300 functions."""


def pass_space(
    name: str,
    elements: Sequence[PassElement],
    objective: str = "instructions",
    longest: int = LONGEST,
    coreset: Sequence[Sequence[str]] | None = None,
    ir: str = "",
    small: Callable[[], str] | None = None,
) -> PassSpace:
    """Make a space of pass lists by name.

    `passes` draws from all elements, the more often the more they occur in the coreset; `uniform` draws
    length and passes evenly, as the thesis does (4.3.2); `safe` is `passes` with tier 1 alone.

    Args:
        name: one of `SPACES`.
        elements: those that the back end runs.
        objective: what is to be made less; it chooses the coreset.
        longest: passes of the longest list.
        coreset: the lists to begin with, and to draw passes after; the shipped ones by default.
        ir: the module that the lists are for; what is known to break it is not in the space.
        small: gives what -Oz makes of it; it is asked where a policy observes.

    Raises:
        PlanishError: there is no such space.
    """
    if name not in SPACES:
        raise unknown("level 'llvm' has no space", name, SPACES)
    coreset = load_coreset(objective) if coreset is None else coreset
    kept = [element for element in elements if element.tier == 1 or name != "safe"]
    # Before what breaks the module goes, so that a list with such a pass loses it, and stays.
    texts = {element.text for element in kept}
    kept = [element for element in kept if within([element.text], ir)]
    seeds = _seeds(kept, [within(passes, ir) for passes in coreset if texts.issuperset(passes)])
    if name == "uniform":
        return PassSpace(kept, longest=longest, seeds=seeds, ir=ir, small=small, objective=objective)
    weights = _weights(kept, coreset)
    return PassSpace(
        kept, longest=longest, weights=weights, seeds=seeds, shapes=SHAPES, ir=ir, small=small,
        objective=objective,
    )  # fmt: skip


def oz_of(texts: Collection[str]) -> str | None:
    """Give LLVM's pipeline for small code among some passes: -Oz, or -O2 where it has no -Oz any more.

    On functions that are `minsize optsize` the two make code of the same size. None: it has neither.
    """
    return next((text for text in ("default<Oz>", "default<O2>") if text in texts), None)


def _seeds(elements: Sequence[PassElement], coreset: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Begin with LLVM's own pipeline for small code: -Oz, or -O2 where LLVM has no -Oz any more."""
    small = oz_of({element.text for element in elements})
    return [*([[small]] if small else []), *coreset]


def _weights(elements: Sequence[PassElement], coreset: Sequence[Sequence[str]]) -> dict[str, float]:
    """Count how often each pass occurs; LLVM's own pipelines count as unseen, for shapes bring them in."""
    seen = Counter(text for passes in coreset for text in passes)
    return {e.text: SMOOTHING + (0 if e.is_pipeline else seen[e.text]) for e in elements}
