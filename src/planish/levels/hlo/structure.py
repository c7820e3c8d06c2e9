"""Edits that the structure of a StableHLO module suggests, exact ones first.

A value dominates a later one where every way from the network's input to that one leads through it. So what
is between the two is a block, of whatever kind: a residual block, an inverted one, attention, a step of a
recurrence, or several of these. Without it the later value is the earlier one, and all else fits as it did.

The learning rate of a training step is the constant by which its updates are multiplied. GEVO-ML's edit that
makes training better has larger gradients; a larger learning rate does the same, as the paper shows (section
6.2). To find it by chance takes one edit for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from planish.core import ScheduleError
from planish.levels.hlo.edits import (
    DeleteOp,
    DropChannels,
    Edit,
    EditableModule,
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
    SinkTransposes,
    TileBatch,
    batch_size,
    identity_of,
)
from planish.levels.hlo.flops import HEAVY, flops_of, group
from planish.levels.hlo.ir.mlir import TensorType, Value, ir, maker, uid_of, walk
from planish.levels.hlo.patch import extended

_INPUT = ""
"""Instead of an operation: the argument that the network reads."""


@dataclass(frozen=True)
class NetworkBlock:
    """A part of a network that can be left out.

    Args:
        entry: the value that it begins with, by name.
        exit: the operation whose result is of the same type, and then is that value.
    """

    entry: str
    exit: str
    flops: int

    @property
    def bypass(self) -> DeleteOp:
        """The edit that leaves it out."""
        return DeleteOp(self.exit, ((self.entry, ()),))


def blocks(module: EditableModule) -> list[NetworkBlock]:
    """Find the blocks of a function that hold a convolution or a product, those that compute most first.

    Of those with the same convolutions and products one counts: the first whose exit joins several ways, as
    the sum at the end of a residual block does, else the first; with its nearest entry.
    """
    if not module.arguments[""]:
        return []
    stream = _Stream(module)
    found: dict[frozenset[str], NetworkBlock] = {}
    for exit_ in stream.order:
        for entry in stream.entries(exit_):
            between = stream.between(entry, exit_)
            heavy = frozenset(uid for uid in between if group(module.infos[uid]) in HEAVY)
            if heavy:
                known = found.get(heavy)
                # Behind a residual sum come operations of the same type, such as its activation: to leave out
                # up to the sum keeps those.
                if known is None or (stream.joins(exit_) and not stream.joins(known.exit)):
                    flops = sum(stream.flops[uid] for uid in between)
                    found[heavy] = NetworkBlock(stream.value(entry), exit_, flops)
    return sorted(found.values(), key=lambda block: -block.flops)


class _Stream:
    """The operations that depend on a function's main input, as a graph.

    The main input is the argument on which the most computation depends; weights are others, and what
    depends on them alone is not part of the stream.
    """

    def __init__(self, module: EditableModule) -> None:
        live = module.live()
        self._facts, self._module = module.infos, module
        # Dead operations would join paths that lead to no result.
        every = [uid for uid in module.blocks[""] if uid in live]
        self.flops = {uid: flops_of(module, uid) for uid in every}
        # What is read inside of an operation counts, too.
        self._reads = {
            uid: [module.name(value) for op in walk(module.op(uid)) for value in op.operands] for uid in every
        }
        # The argument on which the most computation depends; of equals the first.
        work = [
            sum(self.flops[user] for user in self._after(f"arg{number}"))
            for number in range(len(module.arguments[""]))
        ]
        self.argument = work.index(max(work))
        self.order = list(self._after(f"arg{self.argument}"))
        self._inner = frozenset(self.order)
        self._position = {uid: number for number, uid in enumerate(self.order)}
        self._above: dict[str, str] = {}
        for uid in self.order:
            # The nearest operation through which every way from the main input leads: as Cooper, Harvey and
            # Kennedy do ("A simple, fast dominance algorithm", 2001); without cycles one pass is enough.
            self._above[uid] = reduce(self._common, self._owners(uid))

    def entries(self, uid: str) -> Iterator[str]:
        """List what dominates an operation and gives its type, the nearest first."""
        type_ = self._type(uid)
        if type_ is None or not self._module.is_target(uid):
            return
        while uid != _INPUT:
            uid = self._above[uid]
            if self._type(uid) == type_:
                yield uid

    def between(self, entry: str, exit_: str) -> frozenset[str]:
        """List what the exit needs that the entry does not give, itself included."""
        found: set[str] = set()
        waiting = [exit_]
        while waiting:
            uid = waiting.pop()
            if uid != entry and uid in self._inner and uid not in found:
                found.add(uid)
                waiting += self._owners(uid)
        return frozenset(found)

    def joins(self, uid: str) -> bool:
        """Return whether an operation reads several values of the stream."""
        return len(set(self._owners(uid))) > 1

    def value(self, uid: str) -> str:
        """Name the value of an operation, or of the main input."""
        return f"arg{self.argument}" if uid == _INPUT else f"{uid}#0"

    def _type(self, uid: str) -> TensorType | None:
        if uid == _INPUT:
            return self._module.arguments[""][self.argument]
        results = self._facts[uid].results
        return results[0] if len(results) == 1 else None

    def _after(self, value: str) -> Mapping[str, None]:
        """List the operations that depend on an argument, in order."""
        found: dict[str, None] = {}
        for uid, reads in self._reads.items():
            if any(read == value or read.partition("#")[0] in found for read in reads):
                found[uid] = None
        return found

    def _owners(self, uid: str) -> list[str]:
        """List what an operation reads of the stream."""
        main = f"arg{self.argument}"
        owners = (_INPUT if read == main else read.partition("#")[0] for read in self._reads[uid])
        return [owner for owner in owners if owner == _INPUT or owner in self._inner]

    def _common(self, one: str, other: str) -> str:
        """Return the nearest that dominates both, or is one of them."""
        while one != other:
            # The later one goes up: a dominator always stands before what it dominates.
            if one == _INPUT or (other != _INPUT and self._position[other] > self._position[one]):
                one, other = other, one
            one = self._above[one]
        return one


CONVOLUTIONS = 2
"""So many follow each other at least, where another layout saves transposes."""


PRODUCTS = ("Lower", "Fold", "Hoist", "Share")
"""Kinds that go together: convolutions become products. IREE is slower where transposes sink among these."""

LAYOUTS = ("Relayout", "SinkTransposes", "Fold", "Hoist", "Share")
"""Kinds that go together: convolutions stay, and have their channels last."""


def together(module: EditableModule, kinds: Sequence[str], may: Callable[[str], bool]) -> list[Edit]:
    """List exact edits to be made together, each kind found in what those before it give.

    Args:
        kinds: in order: `PRODUCTS` or `LAYOUTS`.
        may: whether a kind of edit may be made, by name.
    """
    found: list[Edit] = []
    for kind in kinds:
        edits = _STAGES[kind](module) if may(kind) else []
        after = _after(module, edits)
        if after is not None:
            found += edits
            module = after
    return found


def alone(module: EditableModule, may: Callable[[str], bool]) -> list[Sequence[Edit]]:
    """List the exact edits of each kind, of the unchanged module, that give another one."""
    found = [_STAGES[kind](module) for kind in _STAGES if may(kind)]
    return [edits for edits in found if _after(module, edits) is not None]


def _after(module: EditableModule, edits: Sequence[Edit]) -> EditableModule | None:
    """Return the module after some edits; None where there is none, or it is the same or not legal."""
    if not edits:
        return None
    try:
        after = extended(module, tuple(edits))
    except ScheduleError:
        return None
    return after if identity_of(after) != identity_of(module) else None


_STAGES: Mapping[str, Callable[[EditableModule], Sequence[Edit]]] = {
    "Lower": lambda module: [Lower(uid, forms[0]) for uid, forms in Lower.match(module).items()],
    "Fold": Fold.enumerate,
    "Relayout": lambda m: [Relayout(found)] if len(found := Relayout.match(m)) >= CONVOLUTIONS else [],
    "SinkTransposes": SinkTransposes.enumerate,
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


def approximate(module: EditableModule, kinds: Sequence[str] = ()) -> list[Edit]:
    """List shorter loops, frozen parameters, blocks left out, crops, fewer channels and lower ranks."""
    return [edit for kind, edits in _LISTED.items() if not kinds or kind in kinds for edit in edits(module)]


def cropped(module: EditableModule) -> list[Shrink]:
    """List crops of the images that a function is given, those that cut least first, and half of a size."""
    given = [edit for edit in Shrink.enumerate(module) if edit.value.startswith("arg")]
    return [edit for edit in given if edit.stride == 1 or edit.mean]


def _widths(module: EditableModule) -> list[DropChannels]:
    """List the mildest cut of each product's channels, if it is mild; those that compute most first."""
    found = sorted(DropChannels.match(module).items(), key=lambda item: -flops_of(module, item[0]))
    mildest = ((size, edit) for uid, size in found for edit in DropChannels.variants(uid, size)[:1])
    return [edit for size, edit in mildest if edit.keep >= MILD * size][:WIDTHS]


def _ranks(module: EditableModule) -> list[Factor]:
    """List the mildest rank of each product's weights, those that compute most first."""
    found = sorted(Factor.match(module).items(), key=lambda item: -flops_of(module, item[0]))
    return [edit for uid, useful in found for edit in Factor.variants(uid, useful)[:1]][:WIDTHS]


_LISTED: Mapping[str, Callable[[EditableModule], Sequence[Edit]]] = {
    "Shorten": Shorten.enumerate,
    "Freeze": lambda module: Freeze.enumerate(module)[:PARAMETERS],
    "Bypass": lambda module: [block.bypass for block in blocks(module)[:BLOCKS]],
    "Shrink": cropped,
    "DropChannels": _widths,
    "Factor": _ranks,
}
"""Kind of edit to what lists some. The paper's edits alone are drawn as in the paper."""


FACTORS = (3.0, 10.0, 30.0)
"""By which all learning rates are multiplied; the paper's by hand is 30."""

_UPDATES = ("stablehlo.subtract", "stablehlo.add")
_FORMS = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert", "stablehlo.negate")


def larger_steps(module: EditableModule) -> Iterator[Sequence[Edit]]:
    """List patches that multiply the learning rate of all parameters alike; none where nothing is trained."""
    rates = learning_rates(module)
    if rates:
        yield from ([ScaleConstant(uid, factor) for uid in rates] for factor in FACTORS)


def learning_rates(module: EditableModule) -> list[str]:
    """Find the constants in `parameter - constant * update`, for each result that is so made."""
    steps = map(_step, module.op(module.blocks[""][-1]).operands)
    rates = (_rate(step) for step in steps if step is not None)
    return list(dict.fromkeys(uid_of(rate) for rate in rates if rate is not None))


def _step(value: Value) -> Value | None:
    """Return the value by which a result differs from a parameter; None for what is not an update."""
    op = maker(value)
    if op is None or op.name not in _UPDATES:
        return None
    # One argument and one computed value: a sum of two parameters is not an update, nor one of two updates.
    computed = [operand for operand in op.operands if maker(operand) is not None]
    return computed[0] if len(computed) == 1 else None


def _rate(value: Value) -> ir.Operation | None:
    """Find the constant that a value is multiplied by."""
    op = maker(value)
    if op is None:
        return None
    if op.name in _FORMS or op.name == "stablehlo.divide":
        # The numerator alone: a constant below the line, such as Adam's epsilon, is not a learning rate.
        return _rate(op.operands[0])
    if op.name != "stablehlo.multiply":
        return None
    found = (read(operand) for read in (_constant, _rate) for operand in op.operands)
    return next((each for each in found if each is not None), None)


def _constant(value: Value) -> ir.Operation | None:
    """Return the constant that a value is, in another form perhaps."""
    op = maker(value)
    while op is not None and op.name in _FORMS:
        op = maker(op.operands[0])
    return op if op is not None and op.name == "stablehlo.constant" else None


TILES = (2, 5, 10, 20)
"""Numbers of tiles; what lies between is for mutations."""

TOGETHER = 10
"""The number of tiles that is combined with other edits."""

CROPS = 1
"""Crops that cut least, to be combined with each block left out."""


class Structure:
    """Edits and patches that are worth a measurement, whatever a search finds."""

    def __init__(self, module: EditableModule, kinds: Sequence[str] = ()) -> None:
        self._module, self._kinds = module, kinds
        self._tiles = _tiles(module) if self._may("TileBatch") else []
        self._alone = alone(module, self._may)
        self._together, self._layouts = (together(module, way, self._may) for way in (PRODUCTS, LAYOUTS))
        self._left = extended(module, tuple(self._together))
        self._approximate = approximate(module, kinds)
        self._rates = [] if kinds else list(larger_steps(module))

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
        narrow = [*base, *(Narrow.enumerate(self._left) if self._may("Narrow") else [])]
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
        size = -(-batch_size(self._module) // TOGETHER) if self._tiles else 0
        return [*exact, *(tile for tile in self._tiles if tile == TileBatch(size, loop=True))]

    def _added(self) -> list[Edit]:
        """List the approximate edits of what exact ones leave, and those of what they made."""
        now, before = (module.infos for module in (self._left, self._module))
        kept = [edit for edit in self._approximate if _named(edit) in ("", *now)]
        made = approximate(self._left, self._kinds) if self._together else []
        return [*kept, *(edit for edit in made if _named(edit) not in ("", *before))]

    def _quantized(self) -> Iterator[Sequence[Edit]]:
        """List patches in which all products are of whole numbers, and convolutions are such, or are kept."""
        for exact in (self._together, self._layouts):
            found = Quantize.enumerate(extended(self._module, tuple(exact))) if self._may("Quantize") else []
            if found:
                yield [*self._in_tiles(exact), *found]


def _named(edit: Edit) -> str:
    """Name the operation that an edit is of; empty where it is of a value or a result."""
    return getattr(edit, "op", "")


def _tiles(module: EditableModule) -> list[TileBatch]:
    try:
        batch = batch_size(module)
    except ScheduleError:
        return []
    sizes = {-(-batch // tiles): None for tiles in TILES}
    return [TileBatch(size, loop) for loop in (False, True) for size in sizes if size < batch]
