"""What a patch does: its edits one by one, and the module before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff

from planish.core import Candidate, Task
from planish.hlo.edits import Draft, Edit
from planish.hlo.ir import functions, ir, named_location, uid_of, walk
from planish.hlo.ir.context import context
from planish.hlo.ir.uids import strip_uids
from planish.hlo.patch import extended, original, replay
from planish.hlo.scored import scored_program

CONTEXT_LINES = 2


def described(task: Task, candidate: Candidate) -> Mapping[str, str]:
    """Show what a patch does: `edits` and `diff`.

    Args:
        task: the module.
        candidate: the patch.

    Raises:
        ScheduleError: an edit is not legal.
    """
    module = scored_program(task.program).module
    edits = "\n".join(_explained(original(module), candidate)) or "(unchanged)"
    return {"edits": edits, "diff": difference(original(module), replay(module, candidate))}


def difference(before: Draft, after: Draft) -> str:
    """Compare two modules by their text, in which each value is named after its operation's id."""
    one, other = (_named_text(draft).splitlines() for draft in (before, after))
    lines = list(unified_diff(one, other, "before", "after", n=CONTEXT_LINES, lineterm=""))
    return "\n".join(lines) or "(no difference)"


def _explained(draft: Draft, candidate: Candidate) -> Iterator[str]:
    """List the edits, each with the operations that it names as they are when it comes."""
    for number, step in enumerate(candidate.steps, 1):
        yield f"{number}. {step}"
        if isinstance(step, Edit):
            yield from (f"   {told}" for told in _operations(draft, step))
        draft = extended(draft, (step,))


def _operations(draft: Draft, edit: Edit) -> Iterator[str]:
    named = [getattr(edit, field, "") for field in ("op", "a", "b", "before", "user")]
    for uid in dict.fromkeys(named):
        if uid in draft.mirror.facts:
            fact = draft.mirror.facts[uid]
            layer = named_location(draft.op(uid).location)
            result = f" of {fact.results[0]}" if fact.results else ""
            yield f"{uid}: {fact.name}{result}{f', in {layer}' if layer else ''}"


def _named_text(draft: Draft) -> str:
    copy = draft.root.clone().operation
    function = dict(functions(copy))[draft.function]
    for op in walk(function)[1:]:
        op.location = ir.Location.name(f"op{uid_of(op)}", context=context())
    strip_uids(copy)
    text = function.get_asm(use_name_loc_as_prefix=True, assume_verified=True)
    assert isinstance(text, str)
    return text
