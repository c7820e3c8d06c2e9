"""From a patch to the module that it gives."""

from __future__ import annotations

from functools import lru_cache

from planish.core import Candidate, ScheduleError
from planish.hlo.edits import EDITS, Draft, Edit, fixed_operations
from planish.hlo.ir import chosen_function, functions, load, number
from planish.hlo.program import Program


def replay(program: Program, candidate: Candidate) -> Draft:
    """Apply a patch to the original module; the same patch gives the same module in every process.

    Args:
        program: the original.
        candidate: the patch.

    Returns:
        The edited module, verified; it is to be cloned before it is changed.

    Raises:
        ScheduleError: an edit is illegal where it comes, or the module is not valid in the end.
    """
    draft = original(program)
    if not candidate.steps:
        return draft
    return extended(draft, candidate.steps)


def extended(draft: Draft, steps: tuple[object, ...]) -> Draft:
    """Apply more edits to a copy of an edited module; raises ScheduleError as `replay` does."""
    changed = draft.clone()
    for step in steps:
        if not isinstance(step, Edit):
            raise ScheduleError(f"{step} is no edit of a module", f"Known: {', '.join(EDITS)}.")
        step.apply(changed)
    changed.verify()
    return changed


@lru_cache(maxsize=4)
def original(program: Program) -> Draft:
    """Give the unchanged module, its operations numbered."""
    root = load(program.text)
    chosen = chosen_function(root)
    function = dict(functions(root))[chosen]
    number(function)
    return Draft(root, chosen, fixed_operations(function))
