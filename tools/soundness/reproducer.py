"""What a failure leaves behind: everything that shows it again without planish."""

from __future__ import annotations

from pathlib import Path

from soundness.cases import Case
from soundness.examiner import Examiner, Verdict
from soundness.minimise import minimised


def reproduce(examiner: Examiner, case: Case, verdict: Verdict, folder: Path) -> tuple[str, ...]:
    """Make a failing list short, and write the program, the lists and the answers into a folder.

    Args:
        examiner: of the subject that it fails on.
        case: the list.
        verdict: how it fails.
        folder: made here.

    Returns:
        The short list.
    """
    short = minimised(
        case.passes, lambda passes: examiner.examine(case.pipeline(passes)).kind == verdict.kind
    )
    pipeline = case.pipeline(short)
    folder.mkdir(parents=True, exist_ok=True)
    for place, ir in enumerate(examiner.subject.modules):
        (folder / f"program{place}.ll").write_text(ir, errors="surrogateescape")
    (folder / "list.txt").write_text(f"{case.pipeline(case.passes)}\n{pipeline}\n")
    (folder / "expected.txt").write_bytes(examiner.expected.output)
    shown = examiner.examine(pipeline)
    if shown.answer is not None:
        (folder / "got.txt").write_bytes(shown.answer.output)
    (folder / "README.txt").write_text(_story(examiner, pipeline, shown))
    return short


def _story(examiner: Examiner, pipeline: str, verdict: Verdict) -> str:
    subject, expected = examiner.subject, examiner.expected
    guilty = [
        f"program{place}.ll"
        for place in range(len(subject.modules))
        if examiner.examine(pipeline, [place]).kind == verdict.kind
    ]
    return f"""{subject.name}: {verdict.kind}: {verdict.detail}

Transform: opt -passes='{pipeline}' program0.ll -o program0.bc
Link all modules with -lm, and run the program with the arguments: {" ".join(subject.running.args) or "none"}.
It must write expected.txt and end with exit code {expected.code}.
Modules of which one alone, transformed, fails: {", ".join(guilty) or "none"}.
"""
