"""Writing a program that was made faster, and how `opt` makes it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeVar

from planish.core import PlanishError
from planish.isolation import End, in_child
from planish.llvm.functions.attributes import without_optnone
from planish.llvm.hot.faster import Faster
from planish.llvm.modules.export import write_module
from planish.llvm.modules.forked_work import whole_backend
from planish.llvm.modules.script import BegunNames, begun_names, write_script
from planish.llvm.program import IRProgram

Answer = TypeVar("Answer")


def export_faster(program: IRProgram, faster: Faster, folder: Path) -> Sequence[Path]:
    """Write a program before and after, its bitcode and object, a manifest, and a script that repeats it.

    Args:
        program: that was made faster.
        faster: what came of it.
        folder: made where it is missing.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM does not survive it.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ir = without_optnone(program.ir)
    text, names = _survived(partial(_text, faster.made.bitcode), str), partial(begun_names, ir, faster.recipe)
    write_script(faster.recipe, _survived(names, BegunNames), folder)
    return write_module(folder, ir, text, faster.made.bitcode, faster.made.code, manifest(faster))


def manifest(faster: Faster) -> dict[str, object]:
    """Tell all of a result but its code, as JSON has it."""
    return {
        "llvm": whole_backend().version,
        "baseline_s": faster.baseline_s,
        "ratio": asdict(faster.ratio) if faster.ratio else None,
        "verdict": faster.verdict_word,
        "functions": [asdict(each) for each in faster.functions],
        "samples": faster.samples,
        "tried": faster.tried,
        "seconds": faster.seconds,
        "recipe": asdict(faster.recipe),
    }


def _survived(work: Callable[[], Answer], answer: type[Answer]) -> Answer:
    found = in_child(work, answer)
    if isinstance(found, End):
        raise PlanishError(f"LLVM does not survive what it did before: {found.detail}")
    return found


def _text(bitcode: bytes) -> str:
    with closing(whole_backend().parse(bitcode)) as module:
        return module.text()
