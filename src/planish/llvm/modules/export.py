"""Writing an improved module, and how `opt` makes it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from planish.core import PlanishError
from planish.isolation import Watchdog, forked
from planish.llvm.modules.evaluation_budget import LIMITS
from planish.llvm.modules.forked_work import measured, whole_backend
from planish.llvm.modules.module_result import Improved
from planish.llvm.modules.script import REPEAT, STEPS, BegunNames, begun_names, write_script
from planish.llvm.modules.trying import Sizes
from planish.llvm.repeat_commands import OBJECT, OPTIMISED, PREPARED

MANIFEST, BITCODE = "manifest.json", "optimised.bc"

Answer = TypeVar("Answer")
Other = TypeVar("Other")


@dataclass(frozen=True)
class SizeRow:
    """What a function costs after -Oz and in the improved module, by both measures; 0: it is not there."""

    name: str
    bytes_before: int
    bytes_after: int
    instructions_before: int
    instructions_after: int

    @property
    def disagrees(self) -> bool:
        """Whether one measure became less and the other more."""
        changes = self.bytes_after - self.bytes_before, self.instructions_after - self.instructions_before
        return min(changes) < 0 < max(changes)


def compare_measures(improved: Improved) -> tuple[SizeRow, ...]:
    """Measure each function after -Oz and in the improved module, in bytes and in instructions.

    Raises:
        PlanishError: LLVM does not survive it.
    """
    modules = improved.before, improved.bitcode
    before, after = _survived_all([partial(_both_sizes, each) for each in modules], tuple[Sizes, Sizes])
    names = dict.fromkeys(name for sizes in (*before, *after) for name in sizes)
    order = [measure for pair in zip(before, after, strict=True) for measure in pair]
    return tuple(SizeRow(name, *(sizes.get(name, 0) for sizes in order)) for name in names)


def export_improved(code: str, improved: Improved, folder: Path) -> Sequence[Path]:
    """Write a module before and after, its bitcode and object, a manifest, and a script that repeats it.

    Args:
        code: the module that was improved, as text.
        improved: what came of it.
        folder: made where it is missing.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM does not survive it.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    works = partial(_printed, improved.bitcode), partial(begun_names, code, improved.recipe)
    (text, made), names = _survived_pair(*works, tuple[str, bytes] | BegunNames)
    write_script(improved.recipe, names, folder)
    return write_module(folder, code, text, improved.bitcode, made, _manifest(improved))


def write_module(
    folder: Path, before: str, after: str, bitcode: bytes, code: bytes, manifest: Mapping[str, object]
) -> Sequence[Path]:
    """Write what is made of a module into a folder that has the script.

    Returns:
        The files, those of the script too.

    Raises:
        OSError: one cannot be written.
    """
    (folder / PREPARED).write_text(before, encoding="utf-8", errors="surrogateescape")
    (folder / OPTIMISED).write_text(after, encoding="utf-8", errors="surrogateescape")
    (folder / BITCODE).write_bytes(bitcode)
    (folder / OBJECT).write_bytes(code)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return [folder / name for name in (PREPARED, OPTIMISED, BITCODE, OBJECT, MANIFEST, REPEAT, STEPS)]


def _manifest(improved: Improved) -> Mapping[str, object]:
    return {
        "llvm": whole_backend().version,
        "baseline": improved.baseline,
        "total": improved.total,
        "functions": [asdict(gain) for gain in improved.functions],
        "recipe": asdict(improved.recipe),
    }


def _survived_pair(one: Callable[[], Answer], other: Callable[[], Other], kinds: Any) -> tuple[Answer, Other]:
    """Do two works in children, side by side; `kinds` is the union of the types of their answers."""
    first, second = _survived_all([one, other], kinds)
    return cast("tuple[Answer, Other]", (first, second))


def _survived_all(works: Sequence[Callable[[], Answer]], kinds: Any) -> Sequence[Answer]:
    """Do works in children, side by side, since LLVM may crash."""

    def watched(place: int, watchdog: Watchdog) -> tuple[Answer]:
        watchdog.enter("work")
        return (works[place](),)

    answers: dict[int, Answer] = {}
    for done in forked(range(len(works)), watched, tuple[kinds], len(works), limits=LIMITS):
        if done.answer is None:
            why = done.given_up.detail if done.given_up else ""
            raise PlanishError(f"LLVM does not survive what it did before: {why}")
        (answers[done.item],) = done.answer
    return [answers[place] for place in range(len(works))]


def _both_sizes(bitcode: bytes) -> tuple[Sizes, Sizes]:
    """Give the bytes and the instructions of the functions of a module."""
    return measured(bitcode, "text_bytes").sizes, measured(bitcode, "instructions").sizes


def _printed(bitcode: bytes) -> tuple[str, bytes]:
    with closing(whole_backend().parse(bitcode)) as module:
        return module.text(), module.object_code()
