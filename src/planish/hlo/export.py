"""Writing a result for use without planish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planish.core import Candidate, Task, canonical_json
from planish.hlo.describe import difference
from planish.hlo.ir import entry_text, normal_text
from planish.hlo.ir.uids import strip_uids
from planish.hlo.patch import original, replay
from planish.hlo.scored import ScoredProgram

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
    module = task.program.module
    draft = replay(module, candidate)
    whole = draft.finished().clone().operation
    strip_uids(whole)
    texts = {
        OPTIMISED: normal_text(whole),
        COMPILED: entry_text(draft.finished(), draft.function),
        PATCH: _lines(candidate),
        DIFF: difference(original(module), draft) + "\n",
    }
    path.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    return [path / name for name in texts]


def _lines(candidate: Candidate) -> str:
    """Write a patch as JSON, one edit in a line."""
    edits = ",\n ".join(canonical_json(step.to_json()) for step in candidate.steps)
    return f"[{edits}]\n"
