"""Tables of costs with more lists: what is known of a function is kept, and the rest is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from planish.corpus.labelling.ranking import Passes
from planish.learn.alike_tables import COUNTED, require_alike, require_same_baseline
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
        held, hint = self.table.columns, "Make another: planish corpus costs."
        kinds = (*COUNTED, "objectives")
        require_alike(("the table that is widened", held), ("what is run now", more), kinds, hint)
        return replace(more, lists=(*held.lists, *more.lists))

    def row(self, more: CostRow) -> CostRow:
        """Give a function's row, with the table's costs before its own.

        Raises:
            PlanishError: it does not cost after -Oz what the table says: the two are of different tools.
        """
        place = self.places[more.identity]
        require_same_baseline(more.identity, self.table.baseline[place].tolist(), more.baseline)
        known = [None if costs[0] == FAILED else costs for costs in self.table.costs[place].tolist()]
        return replace(more, costs=[*known, *more.costs])
