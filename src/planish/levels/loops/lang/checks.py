"""What makes statements a program: ranks, order, disjoint and complete writes, reads in range, memory."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import combinations
from math import prod

from planish.core.errors import ProgramError, did_you_mean
from planish.levels.loops.lang.draft import RESERVED, Draft, Shapes, axes_of, uses
from planish.levels.loops.lang.element_types import WHOLE, check_numbers, check_whole_numbers
from planish.levels.loops.lang.program import (
    DTYPES,
    INDICES,
    POSITIONS,
    Access,
    Program,
    accesses,
    number_text,
)
from planish.levels.loops.lang.subscripts import check_gathers, check_spread, index_ranges, is_spread

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_drafts(drafts: Sequence[Draft], shapes: Shapes) -> None:
    """Check all that needs no sizes; raises ProgramError."""
    if not drafts:
        raise ProgramError("the program has no statement", "Write one, such as C[m,n] += A[m,k] * B[k,n].")
    _check_names(drafts)
    for draft in drafts:
        _check_target(draft)
        _check_parts(draft)
        _check_reduction(draft)
    _check_ranks(drafts, shapes)
    _check_order(drafts)
    check_gathers(drafts, shapes)


def _check_names(drafts: Sequence[Draft]) -> None:
    """Refuse names that the text notation could not read back."""
    used = [a for d in drafts for a in uses(d)]
    for tensor in (*(a.tensor for a in used if a.tensor != POSITIONS), *(d.tensor for d in drafts)):
        if tensor in RESERVED or not _NAME.fullmatch(tensor):
            raise ProgramError(f"'{tensor}' is no name for a tensor", "Use letters, digits and _.")
    for axis in (axis for a in used for i in a.index for axis, _ in i.terms):
        if not _NAME.fullmatch(axis):
            raise ProgramError(f"'{axis}' is no name for an axis", "Use letters, digits and _.")


def _check_target(draft: Draft) -> None:
    for subscript in draft.subscripts:
        if not subscript.index().terms or any(c == 0 for _, c in subscript.terms):
            raise ProgramError(
                f"the target {draft} must have an axis in each subscript",
                "A target may scale axes, add them up, and add an offset (2*t + i + 8).",
            )
        if subscript.offset < 0:
            raise ProgramError(
                f"the target {draft} begins before its tensor",
                "Write all of a larger tensor, and read the part that counts: O[t] = P[t + 1].",
            )
    for axis in draft.axes:
        if draft.axes.count(axis) > 1:
            raise ProgramError(f"axis '{axis}' stands twice in the target {draft}", "Use two axes.")


def _check_parts(draft: Draft) -> None:
    if len(draft.parts) == 1:
        return
    joined = [s for s in draft.subscripts if len(s.terms) > 1]
    n = len(joined[0].terms) if joined else 1
    if any(c != 1 for s in draft.subscripts for _, c in s.terms):
        raise ProgramError(
            f"the target {draft} is both joined and scaled", "Join the parts in a tensor of their own first."
        )
    if len(joined) > 1 or n != len(draft.parts):
        raise ProgramError(
            f"the target {draft} takes {n} parts, not {len(draft.parts)}"
            if len(joined) < 2
            else f"the target {draft} is joined along two dimensions",
            "A concatenation adds one axis for each part: O[r, a + b] = A[r,a] | B[r,b].",
        )
    if not joined:
        return
    axes = [axis for axis, _ in joined[0].terms]
    for part, own in zip(draft.parts, axes, strict=True):
        for axis in axes_of(part):
            if axis in axes and axis != own:
                raise ProgramError(
                    f"part '{part}' of {draft} has axis '{axis}', but '{own}' is its place",
                    "Write the axes in the order of the parts.",
                )


def _check_reduction(draft: Draft) -> None:
    reduced = [axis for part in draft.parts for axis in axes_of(part) if axis not in draft.axes]
    if reduced and draft.reduce is None:
        raise ProgramError(
            f"axis '{reduced[0]}' is not in the target {draft}",
            "Write += (or max=, min=, *=) to reduce it, or add it to the target.",
        )
    if draft.reduce is not None and not reduced and not draft.spread:
        raise ProgramError(
            f"{draft} reduces nothing: every axis is in the target",
            "Write =; a reduction starts anew and does not add to the old content.",
        )


def _check_ranks(drafts: Sequence[Draft], shapes: Shapes) -> None:
    first: dict[str, Access] = {}
    for access in (a for d in drafts for a in uses(d)):
        known = first.setdefault(access.tensor, access)
        if len(known.index) != len(access.index):
            raise ProgramError(
                f"{known} and {access} differ in rank: {len(known.index)} and {len(access.index)}",
                f"Write as many subscripts each time, or rename one {access.tensor}.",
            )
    for tensor, shape in shapes.items():
        if tensor not in first:
            raise ProgramError(
                f"a shape is given for '{tensor}', which no statement has", did_you_mean(tensor, first)
            )
        if len(shape) != len(first[tensor].index):
            raise ProgramError(
                f"{first[tensor]} and its shape {list(shape)} differ in rank: "
                f"{len(first[tensor].index)} and {len(shape)}",
                "Give one extent for each subscript.",
            )
        if any(n < 1 for n in shape):
            raise ProgramError(f"tensor {tensor} has shape {list(shape)}", "Extents are at least 1.")


def _check_order(drafts: Sequence[Draft]) -> None:
    last = {d.tensor: i for i, d in enumerate(drafts)}
    for i, draft in enumerate(drafts):
        for access in (a for part in draft.parts for a in accesses(part)):
            if access.tensor == draft.tensor:
                raise ProgramError(
                    f"{draft} reads its own target", f"Give the result another name than {draft.tensor}."
                )
            if last.get(access.tensor, -1) > i:
                raise ProgramError(
                    f"{access} is read before {access.tensor} is written",
                    "Move the statement that writes it up.",
                )


def check_program(program: Program, given: Shapes) -> None:
    """Check all that needs sizes; raises ProgramError."""
    for tensor in program.inputs:
        if tensor in given:
            _check_whole(tensor, program)
    for statement in program.statements:
        for access in accesses(statement.value):
            _check_range(access, program)
    for statement in program.statements:
        check_spread(statement, program)
    for tensor in program.written:
        _check_writes(tensor, program)
    _check_positions(program)
    if program.arithmetic == WHOLE:
        check_whole_numbers(program)
    else:
        check_numbers(program)
    _check_memory(program)


def _check_positions(program: Program) -> None:
    """Refuse axes whose elements the arithmetic cannot count."""
    # Up to which every whole number is one of the type.
    most = {"float32": 1 << 24, "float64": 1 << 53, WHOLE: 1 << 31}[program.arithmetic]
    found = (
        {"an axis that stands in a value": program.type[POSITIONS].size} if POSITIONS in program.type else {}
    )
    # Whole numbers count as far as anybody has memory.
    counted = {by: n for by, n in index_ranges(program).items() if program.type[by].dtype not in INDICES}
    found |= {f"a dimension that {by} subscripts": n for by, n in counted.items()}
    for what, n in found.items():
        if n - 1 > most:
            raise ProgramError(
                f"{what} has {n:,} elements, but {program.arithmetic} counts to {most:,}",
                "Give smaller sizes, or --dtype float64.",
            )


def _check_range(access: Access, program: Program) -> None:
    for d, (index, n) in enumerate(zip(access.index, program.type[access.tensor].shape, strict=True)):
        low, high = index.bounds(program.size)
        if access.pad is None and (low < 0 or high >= n):
            larger = f", or give --shape {access.tensor}=..." if access.tensor in program.inputs else ""
            raise ProgramError(
                f"{access} reads {low}..{high} of dimension {d}, which is 0..{n - 1}",
                f"Write pad({access}, 0){larger}, or smaller sizes.",
            )


def _check_whole(tensor: str, program: Program) -> None:
    """Refuse axes that alone walk a dimension, and not all of it: most likely a slip."""
    those = [a for s in program.statements for a in accesses(s.value) if a.tensor == tensor]
    for d, n in enumerate(program.type[tensor].shape):
        used = {a.index[d] for a in those}
        # With a window or an offset, to read a part is most likely meant.
        if all(i.offset == 0 and [c for _, c in i.terms] == [1] for i in used):
            axis = max((i.terms[0][0] for i in used), key=lambda axis: program.size[axis])
            if program.size[axis] != n:
                raise ProgramError(
                    f"axis '{axis}' has size {program.size[axis]}, but dimension {d} of {tensor} has {n}",
                    "Make them equal.",
                )


def _check_writes(tensor: str, program: Program) -> None:
    targets = [s.target for s in program.statements if s.target.tensor == tensor]
    boxes = [tuple(i.bounds(program.size) for i in t.index) for t in targets]
    for (a, first), (b, second) in combinations(zip(boxes, targets, strict=True), 2):
        # Boxes overlap only where they do so in every dimension.
        if all(low <= high2 and low2 <= high for (low, high), (low2, high2) in zip(a, b, strict=True)):
            raise ProgramError(
                f"{second} writes what {first} has written", "Give the second result a name of its own."
            )
    shape = program.type[tensor].shape
    for box in boxes:
        for d, (_, high) in enumerate(box):
            if high >= shape[d]:
                raise ProgramError(
                    f"{tensor} is written up to {high} in dimension {d}, which is 0..{shape[d] - 1}",
                    f"Give a larger --shape {tensor}=..., or none.",
                )
    if is_spread(targets[0]):  # it is filled first
        return
    # No two overlap, so their sizes add up to the whole only where nothing is left out.
    if sum(prod(high - low + 1 for low, high in box) for box in boxes) != prod(shape):
        raise ProgramError(
            f"{tensor} has shape {list(shape)}, but parts of it are never written",
            "Write them, or give no --shape and leave no gaps.",
        )


def _check_memory(program: Program) -> None:
    need = sum(t.size * DTYPES[t.dtype] for _, t in program.types)
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > have:
        largest = max(program.types, key=lambda item: item[1].size)
        raise ProgramError(
            f"the tensors need {_gib(need)}, but this machine has {_gib(have)}: "
            f"{largest[0]}{list(largest[1].shape)} is the largest",
            "Give smaller sizes.",
        )


def _gib(n: int) -> str:
    return f"{number_text(round(n / 2**30, 1))} GiB"
