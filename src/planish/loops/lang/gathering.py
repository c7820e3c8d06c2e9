"""Tensors that are subscripted by the elements of another: `E[I[t], d]`.

As an expression it is `gather0` of two accesses: the table's, which has 0 for the subscript that is gathered
(here that of dimension 0), and the index tensor's. An index is cut to a whole number and brought into the
range of the dimension, so that no element outside the table is ever read. An input that is nothing but
indices may be of whole numbers where all else is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core.errors import ProgramError
from planish.loops.lang.draft import Draft
from planish.loops.lang.extents import Shapes
from planish.loops.lang.program import GATHER, Access, Apply, Expr, Index, Program, Statement


def gather(tensor: str, subscripts: Sequence[Index | Access]) -> Access | Apply:
    """Read a tensor by subscripts of which one at most is an access.

    Raises:
        ProgramError: several are.
    """
    found = [(d, s) for d, s in enumerate(subscripts) if isinstance(s, Access)]
    index = tuple(Index(()) if isinstance(s, Access) else s for s in subscripts)
    if not found:
        return Access(tensor, index)
    if len(found) > 1:
        names = " and ".join(s.tensor for _, s in found)
        raise ProgramError(
            f"{tensor} is subscripted by {len(found)} tensors, {names}", "One subscript may be a tensor."
        )
    dimension, by = found[0]
    return Apply(f"{GATHER}{dimension}", (Access(tensor, index), by))


def is_gather(expr: Expr) -> bool:
    """Whether an expression reads a table by the elements of another tensor."""
    return isinstance(expr, Apply) and expr.function.startswith(GATHER)


def parts_of(expr: Expr) -> tuple[Access, int, Access]:
    """Give the table's access, the dimension that is gathered, and the index tensor's access."""
    assert isinstance(expr, Apply)
    table, by = expr.args
    assert isinstance(table, Access)
    assert isinstance(by, Access)
    return table, int(expr.function.removeprefix(GATHER)), by


def gathers(expr: Expr) -> Iterator[Expr]:
    """List the gathers of an expression."""
    if is_gather(expr):
        yield expr
    elif isinstance(expr, Apply):
        for arg in expr.args:
            yield from gathers(arg)


def tables(expr: Expr) -> frozenset[Access]:
    """Name the accesses of tables in an expression."""
    return frozenset(parts_of(g)[0] for g in gathers(expr))


def index_tensors(statements: Sequence[Statement]) -> frozenset[str]:
    """Name the tensors that subscript others."""
    return frozenset(parts_of(g)[2].tensor for s in statements for g in gathers(s.value))


def value_tensors(statements: Sequence[Statement]) -> frozenset[str]:
    """Name the tensors that are read as anything else."""
    return frozenset(tensor for s in statements for tensor in _values(s.value))


def _values(expr: Expr) -> Iterator[str]:
    if is_gather(expr):
        yield parts_of(expr)[0].tensor
    elif isinstance(expr, Access):
        yield expr.tensor
    elif isinstance(expr, Apply):
        for arg in expr.args:
            yield from _values(arg)


def index_ranges(program: Program) -> dict[str, int]:
    """Give each tensor whose elements are indices the longest dimension that they subscript."""
    found: dict[str, int] = {}
    for table, dimension, by in (parts_of(g) for s in program.statements for g in gathers(s.value)):
        found[by.tensor] = max(found.get(by.tensor, 1), program.type[table.tensor].shape[dimension])
    return found


def check_gathers(drafts: Sequence[Draft], shapes: Shapes) -> None:
    """Refuse tables that are no inputs, or whose shape nobody tells; raises ProgramError."""
    written = {d.tensor for d in drafts}
    for each in (g for d in drafts for p in d.parts for g in gathers(p)):
        table, _, by = parts_of(each)
        if table.tensor in written:
            raise ProgramError(
                f"{each} subscripts {table.tensor} by a tensor, but the program writes {table.tensor}",
                "Only an input can be subscripted so.",
            )
        if table.tensor not in shapes:
            raise ProgramError(
                f"nothing tells the shape of {table.tensor}, which {by} subscripts",
                f"Give --shape {table.tensor}=...",
            )
