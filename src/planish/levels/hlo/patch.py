"""Patches: their replay, their features, their description and their export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from functools import lru_cache
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import Candidate, FeatureSchema, ScheduleError, Task, canonical_json
from planish.levels.hlo.edits import EDITS, Edit, EditableModule, Freeze, applied, finished
from planish.levels.hlo.flops import GROUPS, HEAVY, bytes_of, flops_of, group
from planish.levels.hlo.ir.mlir import context, functions, ir, number, strip_uids, uid_of, walk
from planish.levels.hlo.ir.normal import chosen_function, entry_text, load, named_location, normal_text
from planish.levels.hlo.program import Program
from planish.levels.hlo.scored import ScoredProgram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def replay(program: Program, candidate: Candidate) -> EditableModule:
    """Apply a patch to the original module; the same patch gives the same module in every process.

    Returns:
        The edited module, verified; clone it before it is changed.

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
        raise ScheduleError(f"expected an edit of a module, got {other}", f"Known: {', '.join(EDITS)}.")
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
    """The module as it came."""

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
    """Describe patches; (patches, width of `SCHEMA`)."""
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
    """Count the FLOPs of what the results need, and the bytes that it gives."""
    live, infos = module.live(), module.infos
    return sum(flops_of(module, uid) for uid in live), sum(bytes_of(infos[uid]) for uid in live)


CONTEXT_LINES = 2
SCOPE = "/"
"""Parts of a layer's name: `jit(step)/update/mul`."""
FAR = 6
"""Operations that are followed from a value to what it is used for."""


def described(task: Task[ScoredProgram], candidate: Candidate) -> Mapping[str, str]:
    """Show what a patch does: `edits` and `diff`; raises ScheduleError where an edit is not legal."""
    program = task.program.module
    edits = "\n".join(_explained(original(program), candidate)) or "(unchanged)"
    return {"edits": edits, "diff": difference(original(program), replay(program, candidate))}


def difference(before: EditableModule, after: EditableModule) -> str:
    """Compare two modules by their text, in which each value is named after its operation's id."""
    one, other = (_named_text(module).splitlines() for module in (before, after))
    lines = list(unified_diff(one, other, "before", "after", n=CONTEXT_LINES, lineterm=""))
    return "\n".join(lines) or "(no difference)"


def _explained(module: EditableModule, candidate: Candidate) -> Iterator[str]:
    """List the edits, each with the operations that it names as they are when it comes."""
    for index, step in enumerate(candidate.steps, 1):
        yield f"{index}. {step}"
        if isinstance(step, Edit):
            yield from (f"   {line}" for line in _operations(module, step))
        # Step by step: an edit may name what an earlier one made.
        module = extended(module, (step,))


def _operations(module: EditableModule, edit: Edit) -> Iterator[str]:
    named = [getattr(edit, field, "") for field in ("op", "a", "b", "before", "user")]
    for uid in dict.fromkeys(named):
        if uid in module.infos:
            info = module.infos[uid]
            result = f" of {info.results[0]}" if info.results else ""
            yield f"{uid}: {info.name}{result}{where(module, uid)}"
    if isinstance(edit, Freeze):
        known = Freeze.match(module)
        for position in edit.results:
            (name, *_) = known[position]
            yield f"result {position} stays {named_location(module.value(name).location) or name}"


def where(module: EditableModule, uid: str) -> str:
    """Describe the layer of an operation.

    Returns:
        Its layer, by its location; that of its user, where its own has no parts; and the function's
        arguments that it works on in that layer. Begins with a comma; empty where nothing is known.
    """
    way = list(_way(module, uid))
    layers = [named_location(module.op(each).location) for each in way]
    text = f", in {layers[0]}" if layers[0] else ""
    layer = next((layer for layer in layers if SCOPE in layer), layers[0])
    text += f", used in {layer}" if layer != layers[0] else ""
    scope = layer.rpartition(SCOPE)[0]
    here = (each for each, known in zip(way, layers, strict=True) if known.rpartition(SCOPE)[0] == scope)
    arguments = next(filter(None, (_arguments(module, each) for each in here)), [])
    return f"{text}, with {', '.join(arguments)}" if arguments else text


def _way(module: EditableModule, uid: str) -> Iterator[str]:
    """Follow a value, from the operation that makes it to its first user, and so on."""
    for _ in range(FAR):
        yield uid
        users = [user for result in module.users(uid) for user, _ in result]
        if not users:
            return
        uid = users[-1]


def _arguments(module: EditableModule, uid: str) -> list[str]:
    """Name the function's arguments that an operation takes."""
    names = (module.name(operand) for operand in module.op(uid).operands)
    taken = [module.value(name) for name in dict.fromkeys(names) if name.startswith("arg")]
    return [name for value in taken if (name := named_location(value.location))]


def _named_text(module: EditableModule) -> str:
    copy = module.root.clone().operation
    function = dict(functions(copy))[module.function]
    for op in walk(function)[1:]:
        op.location = ir.Location.name(f"op{uid_of(op)}", context=context())
    strip_uids(copy)
    text = function.get_asm(use_name_loc_as_prefix=True, assume_verified=True)
    assert isinstance(text, str)
    return text


OPTIMIZED, COMPILED, PATCH, DIFF = "optimized.mlir", "main.mlir", "patch.json", "changes.diff"


def export_module(task: Task[ScoredProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write a patched module.

    Returns:
        The files: the whole module with the names of its layers; the function that was evolved, alone and as
        `main`, which is what compilers take; the patch; and what it changes.

    Raises:
        ScheduleError: an edit is not legal.
        OSError: a file cannot be written.
    """
    program = task.program.module
    module = replay(program, candidate)
    whole = finished(module).clone().operation
    strip_uids(whole)
    edits = ",\n ".join(canonical_json(step.to_json()) for step in candidate.steps)
    texts = {
        OPTIMIZED: normal_text(whole),
        COMPILED: entry_text(finished(module), module.function),
        PATCH: f"[{edits}]\n",
        DIFF: difference(original(program), module) + "\n",
    }
    path.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    return [path / name for name in texts]
