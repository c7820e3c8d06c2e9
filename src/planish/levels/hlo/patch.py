"""Replay of a patch, and its features: the operations that it touches, and what remains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING

from planish.core import Candidate, FeatureSchema, ScheduleError
from planish.levels.hlo.edits import EDITS, Edit, EditableModule, applied
from planish.levels.hlo.flops import GROUPS, HEAVY, bytes_of, flops_of, group
from planish.levels.hlo.ir.mlir import functions, number
from planish.levels.hlo.ir.normal import chosen_function, load
from planish.levels.hlo.program import Program

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def replay(program: Program, candidate: Candidate) -> EditableModule:
    """Apply a patch to the original module; the same patch gives the same module in every process.

    Args:
        program: the original.
        candidate: the patch.

    Returns:
        The edited module, verified; it is to be cloned before it is changed.

    Raises:
        ScheduleError: an edit is illegal where it comes, or the module is not valid in the end.
    """
    module = original(program)
    return extended(module, candidate.steps) if candidate.steps else module


def extended(module: EditableModule, steps: tuple[object, ...]) -> EditableModule:
    """Apply more edits to a copy of an edited module; raises ScheduleError as `replay` does."""
    edits = [step for step in steps if isinstance(step, Edit)]
    if len(edits) < len(steps):
        other = next(step for step in steps if not isinstance(step, Edit))
        raise ScheduleError(f"{other} is no edit of a module", f"Known: {', '.join(EDITS)}.")
    return applied(module, edits)


@lru_cache(maxsize=4)
def original(program: Program) -> EditableModule:
    """Return the unchanged module, its operations numbered."""
    root = load(program.text)
    chosen = chosen_function(root)
    function = dict(functions(root))[chosen]
    number(function)
    return EditableModule(root, chosen)


LAYERS = 32
"""Layers that there is room for; those of a deeper module share it evenly."""
OF_PATCH = (
    "edits",
    "tile",  # examples of a tile, as log2; 0 where the batch is whole
    "layers touched",
)
OF_REMAINING = (
    "remaining FLOPs",  # of operations that the results need; of a loop one iteration; log2(1 + x)
    "remaining share of FLOPs",  # of the original's
    "remaining bytes",  # of these operations' results; log2(1 + x)
    "remaining share of bytes",
    "remaining operations",  # log2(1 + x)
)
OF_MODULE = ("FLOPs", "bytes", "operations", "layers")
"""Of the original, as log2(1 + x)."""
FIELDS = ("op", "a", "b", "before", "user")
"""Fields of edits that name an operation which the edit touches."""

SCHEMA = FeatureSchema(
    "hlo/patch",
    5,
    (
        *OF_PATCH,
        *[f"times {kind}" for kind in EDITS],
        *[f"touched of kind {kind}" for kind in GROUPS],
        *[f"touched in layer {layer}" for layer in range(LAYERS)],
        *OF_REMAINING,
        *[f"remaining of kind {kind}" for kind in GROUPS],  # log2(1 + x)
        *OF_MODULE,
    ),
)
"""Touched operations are counted by the fields of edits that name operations, each once an edit.

A layer begins with a convolution or contraction of the original, in the order of its text; layer 0 is what
comes before the first. An operation that an edit made is of the layer of the operation after it.
"""


class Original:
    """The module as it came.

    Args:
        module: unchanged.
    """

    def __init__(self, module: EditableModule) -> None:
        infos = module.infos
        self.kind = {uid: group(info) for uid, info in infos.items()}
        self.layer: dict[str, int] = {}
        layer = 0
        for uid in sorted(infos, key=int):  # they are numbered in the order of the text
            layer += self.kind[uid] in HEAVY
            self.layer[uid] = layer
        self.layers = layer + 1
        self.flops, self.bytes = _totals(module)

    def column(self, uid: str) -> int:
        """Return the index of an operation's layer among the columns of layers."""
        layer = self.layer[uid]
        return layer if self.layers <= LAYERS else layer * LAYERS // self.layers


def patch_features(
    original: Original, candidates: Sequence[Candidate], modules: Iterable[EditableModule]
) -> NDArray[np.float32]:
    """Describe patches; (patches, width of `SCHEMA`).

    Args:
        original: the module.
        candidates: legal ones.
        modules: the modules that they give, in the same order.
    """
    import numpy as np  # here: to import it takes long

    found = np.zeros((len(candidates), SCHEMA.width), np.float32)
    for row, candidate, module in zip(found, candidates, modules, strict=True):
        row[:] = [*_of_patch(original, candidate, module), *_of_remaining(original, module)]
    return found


def _of_patch(original: Original, candidate: Candidate, module: EditableModule) -> list[float]:
    edits, touched, layers = Counter[str](), Counter[str](), Counter[int]()
    for edit, uids in _touched(original, candidate):
        edits[type(edit).__name__] += 1
        touched.update(original.kind[uid] for uid in uids)
        layers.update(original.column(uid) for uid in uids)
    return [
        len(candidate.steps),
        log2(module.tiles.examples if module.tiles else 1),
        len(layers),
        *[edits[kind] for kind in EDITS],
        *[touched[kind] for kind in GROUPS],
        *[layers[layer] for layer in range(LAYERS)],
    ]


def _touched(original: Original, candidate: Candidate) -> Iterator[tuple[Edit, Sequence[str]]]:
    """List the edits with the original's operations that they touch, or whose position they touch."""
    # Prefix of the ids that an edit made, to the operation that they stand next to.
    anchor: dict[str, str] = {}

    def own(uid: str) -> str:
        return uid if uid in original.layer else anchor.get(uid.partition(".")[0], "")

    for edit in candidate.steps:
        assert isinstance(edit, Edit)
        named = {position: own(getattr(edit, position, "")) for position in FIELDS}
        uids = [uid for uid in dict.fromkeys(named.values()) if uid]
        if uids:
            anchor[edit.id_prefix] = named["before"] or uids[0]
        yield edit, uids


def _of_remaining(original: Original, module: EditableModule) -> list[float]:
    flops, size = _totals(module)
    remaining = Counter(group(module.infos[uid]) for uid in module.live())
    return [
        log2(1 + flops),
        flops / max(1, original.flops),
        log2(1 + size),
        size / max(1, original.bytes),
        log2(1 + remaining.total()),
        *[log2(1 + remaining[kind]) for kind in GROUPS],
        log2(1 + original.flops),
        log2(1 + original.bytes),
        log2(1 + len(original.layer)),
        log2(1 + original.layers),
    ]


def _totals(module: EditableModule) -> tuple[int, int]:
    """Count the FLOPs of what the results need, and the bytes of its results."""
    live, infos = module.live(), module.infos
    return sum(flops_of(module, uid) for uid in live), sum(bytes_of(infos[uid]) for uid in live)
