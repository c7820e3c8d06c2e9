"""Tables of costs with more lists: what is known of a function is kept, and the rest is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from planish.core import PlanishError
from planish.corpus.labelling.ranking import Passes
from planish.learn.cost_table import FAILED, Columns, CostRow, CostTable


@dataclass(frozen=True)
class Widened:
    """Puts what lists cost beside what a table has of the same functions.

    Args:
        table: of the same objectives as the rows.
    """

    table: CostTable

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each function is in the table, by its identity."""
        return {identity: place for place, identity in enumerate(self.table.identities.tolist())}

    def lacks(self, lists: Sequence[Passes]) -> list[Passes]:
        """Give the lists that the table does not have."""
        return [passes for passes in lists if passes not in self.table.columns.lists]

    def columns(self, more: Columns) -> Columns:
        """Give the columns of widened rows: the table's lists, then those of the rows.

        Raises:
            PlanishError: the table is of another LLVM or machine, or counts other things.
        """
        held = self.table.columns
        for name in ("llvm", "machine", "objectives"):
            if getattr(held, name) != getattr(more, name):
                what = f"a table with {name} {getattr(held, name)} cannot have more lists beside"
                raise PlanishError(f"{what} {getattr(more, name)}", "Make another: planish corpus costs.")
        return replace(more, lists=(*held.lists, *more.lists))

    def row(self, more: CostRow) -> CostRow:
        """Give a function's row, with the table's costs before its own.

        Raises:
            PlanishError: it does not cost after -Oz what the table says: the two are of different tools.
        """
        place = self.places[more.identity]
        baseline = self.table.baseline[place].tolist()
        if baseline != list(more.baseline):
            what = f"{more.identity} costs {baseline} after -Oz in the table, and {list(more.baseline)} here"
            raise PlanishError(what, "Make another table.")
        known = [None if costs[0] == FAILED else costs for costs in self.table.costs[place].tolist()]
        return replace(more, costs=[*known, *more.costs])
