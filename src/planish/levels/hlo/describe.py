"""Description and export of a patch: its edits, what they change, and files for compilers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from planish.core import Candidate, Task, canonical_json
from planish.levels.hlo.edits import Edit, EditableModule, Freeze, finished
from planish.levels.hlo.ir.mlir import context, functions, ir, strip_uids, uid_of, walk
from planish.levels.hlo.ir.normal import entry_text, named_location, normal_text
from planish.levels.hlo.patch import extended, original, replay
from planish.levels.hlo.scored import ScoredProgram

CONTEXT_LINES = 2
SCOPE = "/"
"""Parts of a layer's name: `jit(step)/update/mul`."""
FAR = 6
"""Operations that are followed from a value to what it is used for."""


def described(task: Task[ScoredProgram], candidate: Candidate) -> Mapping[str, str]:
    """Show what a patch does: `edits` and `diff`.

    Args:
        task: the module.
        candidate: the patch.

    Raises:
        ScheduleError: an edit is not legal.
    """
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
    for number, step in enumerate(candidate.steps, 1):
        yield f"{number}. {step}"
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

    Args:
        module: the module.
        uid: the operation's id.

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


OPTIMISED, COMPILED, PATCH, DIFF = "optimised.mlir", "main.mlir", "patch.json", "changes.diff"


def export_module(task: Task[ScoredProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write a patched module.

    Args:
        task: the original module.
        candidate: the patch.
        path: the folder; made where it is missing.

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
        OPTIMISED: normal_text(whole),
        COMPILED: entry_text(finished(module), module.function),
        PATCH: f"[{edits}]\n",
        DIFF: difference(original(program), module) + "\n",
    }
    path.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    return [path / name for name in texts]
