"""`argmax` and `argmin` by what the language has: the extreme first, then the least position that has it.

::

    O[i] = argmax(X[i,k])      O_1[i] max= X[i,k]
                               O[i] min= where(X[i,k] == O_1[i], k, where(X[i,k] == X[i,k], inf, k))

As in NumPy, the first of equals is taken, and what is not a number comes before all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core.errors import ProgramError
from planish.loops.lang.draft import PLACES, Draft, Linear, fresh, position
from planish.loops.lang.program import Access, Apply, Const, Expr


def placed(draft: Draft, own: Sequence[str], names: set[str]) -> Iterator[Draft]:
    """Give the statements of one that is reduced by `argmax` or `argmin`.

    Args:
        draft: the statement, of one part.
        own: the axes of its value, but for those that reductions inside take away.
        names: of all tensors; grows.

    Raises:
        ProgramError: it looks along no axis, or along several.
    """
    function, value = str(draft.reduce), draft.parts[0]
    along = [axis for axis in own if axis not in draft.axes]
    if len(along) != 1:
        axes = ", ".join(f"'{axis}'" for axis in along)
        raise ProgramError(
            f"{function} for {draft} looks along {len(along)} axes{': ' if axes else ''}{axes}",
            "It looks along one: the axis of its argument that the target does not have.",
        )
    kept = [axis for axis in own if axis in draft.axes]
    if not isinstance(value, Access):
        # Computed twice, a value could be rounded in two ways, and be equal to itself nowhere.
        inner = Draft(fresh(draft.tensor, names), _plain([*kept, *along]), None, (value,))
        yield inner
        value = _read(inner)
    best = Draft(fresh(draft.tensor, names), _plain(kept), PLACES[function], (value,))
    yield best
    here = position(along[0])
    # Equal to itself is all but what is not a number.
    no_number = Apply("==", (value, value, Const(float("inf")), here))
    first = Apply("==", (value, _read(best), here, no_number))
    yield Draft(draft.tensor, draft.subscripts, "min", (first,))


def _plain(axes: Sequence[str]) -> tuple[Linear, ...]:
    return tuple(Linear(((axis, 1),)) for axis in axes)


def _read(draft: Draft) -> Expr:
    return Access(draft.tensor, tuple(s.index() for s in draft.subscripts))
