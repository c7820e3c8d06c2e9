"""Patches that a module's structure suggests: exact edits, then those that leave out work.

The learning rate of a training step is the constant by which its updates are multiplied. GEVO-ML's edit that
makes training better has larger gradients; a larger learning rate does the same, as the paper shows (section
6.2). To find it by chance takes one edit for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from planish.core import ScheduleError
from planish.levels.hlo.edits import (
    DeleteOp,
    Draft,
    DropChannels,
    Edit,
    Factor,
    Fold,
    Freeze,
    Hoist,
    Lower,
    Narrow,
    Quantize,
    Relayout,
    ScaleConstant,
    Share,
    Shorten,
    Shrink,
    Sink,
    TileBatch,
    batch_size,
    identity_of,
)
from planish.levels.hlo.flops import flops_of
from planish.levels.hlo.network_blocks import blocks
from planish.levels.hlo.patch import extended

CONVOLUTIONS = 2
"""So many follow each other at least, where another layout saves transposes."""


PRODUCTS = ("Lower", "Fold", "Hoist", "Share")
"""Kinds that go together: convolutions become products. IREE is slower where transposes sink among these."""

LAYOUTS = ("Relayout", "Sink", "Fold", "Hoist", "Share")
"""Kinds that go together: convolutions stay, and have their channels last."""


def together(draft: Draft, kinds: Sequence[str], may: Callable[[str], bool]) -> list[Edit]:
    """List exact edits to be made together, each kind found in what those before it give.

    Args:
        draft: the unchanged module.
        kinds: in order: `PRODUCTS` or `LAYOUTS`.
        may: whether a kind of edit may be made, by name.
    """
    found: list[Edit] = []
    for kind in kinds:
        edits = _STAGES[kind](draft) if may(kind) else []
        after = _after(draft, edits)
        if after is not None:
            found += edits
            draft = after
    return found


def alone(draft: Draft, may: Callable[[str], bool]) -> list[Sequence[Edit]]:
    """List the exact edits of each kind, of the unchanged module, that give another one."""
    found = [_STAGES[kind](draft) for kind in _STAGES if may(kind)]
    return [edits for edits in found if _after(draft, edits) is not None]


def _after(draft: Draft, edits: Sequence[Edit]) -> Draft | None:
    """Return the module after some edits; None where there is none, or it is the same or not legal."""
    if not edits:
        return None
    try:
        after = extended(draft, tuple(edits))
    except ScheduleError:
        return None
    return after if identity_of(after) != identity_of(draft) else None


def _lowered(draft: Draft) -> list[Edit]:
    """List one form of each convolution."""
    found: dict[str, Edit] = {}
    for edit in Lower.enumerate(draft):
        found.setdefault(edit.op, edit)
    return list(found.values())


def _relaid(draft: Draft) -> list[Edit]:
    found = Relayout.match(draft)
    return [Relayout(found)] if len(found) >= CONVOLUTIONS else []


_STAGES: Mapping[str, Callable[[Draft], Sequence[Edit]]] = {
    "Lower": _lowered,
    "Fold": Fold.enumerate,
    "Relayout": _relaid,
    "Sink": Sink.enumerate,
    "Hoist": Hoist.enumerate,
    "Share": Share.enumerate,
}


BLOCKS = 20
"""Blocks that are left out: those that compute most."""

WIDTHS = 10
"""Products whose channels are cut, or whose weights have a lower rank: those that compute most."""

MILD = 3 / 4
"""Least share of the channels that are kept."""

PARAMETERS = 20
"""Parameters that are frozen, one by one, with their moments."""


def approximate(draft: Draft, kinds: Sequence[str] = ()) -> list[Edit]:
    """List loops with fewer steps, frozen parameters, blocks left out, crops, fewer channels and lower ranks.

    Args:
        draft: a module.
        kinds: names of the edits that may be made; all when empty.
    """
    return [edit for kind, edits in _LISTED.items() if not kinds or kind in kinds for edit in edits(draft)]


def cropped(draft: Draft) -> list[Shrink]:
    """List crops of the pictures that a function is given, those that cut least first, and half of a size."""
    given = [edit for edit in Shrink.enumerate(draft) if edit.value.startswith("arg")]
    return [edit for edit in given if edit.stride == 1 or edit.mean]


def _widths(draft: Draft) -> list[DropChannels]:
    """List the mildest cut of each product's channels, if it is mild; those that compute most first."""
    found = sorted(DropChannels.match(draft).items(), key=lambda item: -flops_of(draft, item[0]))
    mildest = ((size, edit) for uid, size in found for edit in DropChannels.variants(uid, size)[:1])
    return [edit for size, edit in mildest if edit.keep >= MILD * size][:WIDTHS]


def _ranks(draft: Draft) -> list[Factor]:
    """List the mildest rank of each product's weights, those that compute most first."""
    found = sorted(Factor.match(draft).items(), key=lambda item: -flops_of(draft, item[0]))
    return [edit for uid, useful in found for edit in Factor.variants(uid, useful)[:1]][:WIDTHS]


def _bypasses(draft: Draft) -> list[Edit]:
    return [block.bypass for block in blocks(draft)[:BLOCKS]]


def _frozen(draft: Draft) -> list[Edit]:
    return list(Freeze.enumerate(draft)[:PARAMETERS])


_LISTED: Mapping[str, Callable[[Draft], Sequence[Edit]]] = {
    "Shorten": Shorten.enumerate,
    "Freeze": _frozen,
    "Bypass": _bypasses,
    "Shrink": cropped,
    "DropChannels": _widths,
    "Factor": _ranks,
}
"""Kind of edit to what lists some. The paper's edits alone are drawn as in the paper."""


FACTORS = (3.0, 10.0, 30.0)
"""By which all learning rates are multiplied; the paper's by hand is 30."""

_UPDATES = ("stablehlo.subtract", "stablehlo.add")
_FORMS = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert", "stablehlo.negate")


def larger_steps(draft: Draft) -> Iterator[Sequence[Edit]]:
    """List patches that multiply the learning rate of all parameters alike; none where nothing is trained."""
    rates = learning_rates(draft)
    if rates:
        yield from ([ScaleConstant(uid, factor) for uid in rates] for factor in FACTORS)


def learning_rates(draft: Draft) -> list[str]:
    """Find the constants in `parameter - constant * update`, for each result that is so made.

    Args:
        draft: a module; the update may be divided afterwards, as Adam's is.
    """
    end = draft.mirror.blocks[""][-1]
    steps = (_step(draft, value) for value in _operands(draft, end))
    rates = (_rate(draft, step) for step in steps if step)
    return list(dict.fromkeys(filter(None, rates)))


def _step(draft: Draft, value: str) -> str:
    """Return the value by which a result differs from a parameter; empty for what is no update."""
    operands = _operands(draft, value) if _made_by(draft, value) in _UPDATES else []
    others = [each for each in operands if not each.startswith("arg")]
    # One argument and one computed value: a sum of two parameters is no update, nor is one of two updates.
    return others[0] if len(operands) - len(others) == 1 else ""


def _rate(draft: Draft, value: str) -> str:
    """Find the constant that a value is multiplied by; empty where there is none."""
    made = _made_by(draft, value)
    if made in _FORMS or made == "stablehlo.divide":
        # The numerator alone: a constant below the line, such as Adam's epsilon, is no learning rate.
        return _rate(draft, _operands(draft, value)[0])
    if made != "stablehlo.multiply":
        return ""
    factors = _operands(draft, value)
    constants = (_constant(draft, each) for each in factors)
    return next(filter(None, constants), "") or next(filter(None, (_rate(draft, f) for f in factors)), "")


def _constant(draft: Draft, value: str) -> str:
    """Return the constant that a value is, in another form perhaps; empty where it is none."""
    while _made_by(draft, value) in _FORMS:
        value = _operands(draft, value)[0]
    return value.partition("#")[0] if _made_by(draft, value) == "stablehlo.constant" else ""


def _made_by(draft: Draft, value: str) -> str:
    fact = draft.mirror.facts.get(value.partition("#")[0])
    return fact.name if fact else ""


def _operands(draft: Draft, value: str) -> list[str]:
    return [draft.name(each) for each in draft.op(value.partition("#")[0]).operands]


TILES = (2, 5, 10, 20)
"""Numbers of tiles; what lies between is for mutations."""

TOGETHER = 10
"""The number of tiles that is combined with other edits."""

CROPS = 1
"""Crops that cut least, to be combined with each block left out."""


class Structure:
    """Edits and patches that are worth a measurement, whatever a search finds.

    Args:
        draft: the unchanged module.
        kinds: names of the edits that may be made; all when empty.
    """

    def __init__(self, draft: Draft, kinds: Sequence[str] = ()) -> None:
        self._draft, self._kinds = draft, kinds
        self._tiles = _tiles(draft) if self._may("TileBatch") else []
        self._alone = alone(draft, self._may)
        self._together, self._layouts = (together(draft, way, self._may) for way in (PRODUCTS, LAYOUTS))
        self._left = extended(draft, tuple(self._together))
        self._approximate = approximate(draft, kinds)
        self._rates = [] if kinds else list(larger_steps(draft))

    def _may(self, kind: str) -> bool:
        return not self._kinds or kind in self._kinds

    def edits(self) -> list[Edit]:
        """List all edits, each of which may be added to a patch."""
        exact = [edit for edits in self._alone for edit in edits]
        return [*self._tiles, *exact, *self._approximate]

    def patches(self) -> Iterator[Sequence[Edit]]:
        """List patches: larger learning rates, what is exact, and approximate edits together with that.

        None of the edits stands in another's way, and each saves a part of what the others leave. So they are
        worth a measurement before chance puts them together. Where products can be narrowed, all others come
        with narrow ones first: what that costs is next to nothing.
        """
        yield from self._rates
        base, added = self._in_tiles(self._together), self._added()
        if base:
            yield base
        narrow = [*base, *self._narrowed()]
        if narrow != base:
            yield narrow
            yield from ([*narrow, edit] for edit in added)
        crops = [edit for edit in added if isinstance(edit, Shrink)]
        for crop in crops[:CROPS]:
            yield from ([*narrow, crop, edit] for edit in added if isinstance(edit, DeleteOp))
        yield from self._exact()
        yield from self._quantized()
        yield from ([*base, edit] for edit in added)

    def _exact(self) -> Iterator[Sequence[Edit]]:
        """List them by kind, together, and with convolutions as they are, for products may be slower."""
        yield from self._alone
        if self._together and self._tiles:
            yield self._together
        if self._layouts:
            yield self._layouts
        yield from ([*self._together, tile] for tile in self._tiles)

    def _in_tiles(self, exact: Sequence[Edit]) -> list[Edit]:
        """Return exact edits with the tiles that others are combined with."""
        size = -(-batch_size(self._draft) // TOGETHER) if self._tiles else 0
        return [*exact, *(tile for tile in self._tiles if tile == TileBatch(size, loop=True))]

    def _added(self) -> list[Edit]:
        """List the approximate edits of what exact ones leave, and those of what they made."""
        now, before = (draft.mirror.facts for draft in (self._left, self._draft))
        kept = [edit for edit in self._approximate if _named(edit) in ("", *now)]
        made = approximate(self._left, self._kinds) if self._together else []
        return [*kept, *(edit for edit in made if _named(edit) not in ("", *before))]

    def _narrowed(self) -> list[Narrow]:
        return list(Narrow.enumerate(self._left)) if self._may("Narrow") else []

    def _quantized(self) -> Iterator[Sequence[Edit]]:
        """List patches in which all products are of whole numbers, and convolutions are such, or are kept."""
        for exact in (self._together, self._layouts):
            found = Quantize.enumerate(extended(self._draft, tuple(exact))) if self._may("Quantize") else []
            if found:
                yield [*self._in_tiles(exact), *found]


def _named(edit: Edit) -> str:
    """Name the operation that an edit is of; empty where it is of a value or a result."""
    return getattr(edit, "op", "")


def _tiles(draft: Draft) -> list[TileBatch]:
    try:
        batch = batch_size(draft)
    except ScheduleError:
        return []
    sizes = {-(-batch // tiles): None for tiles in TILES}
    return [TileBatch(size, loop) for loop in (False, True) for size in sizes if size < batch]
