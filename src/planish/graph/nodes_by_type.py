"""Nodes of a model by type, on the way through a selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planish.graph.passes import Selection
from planish.graph.relevance import Examiner, ExaminerError
from planish.graph.text_tables import aligned

_LISTED = 6


@dataclass(frozen=True)
class Nodes:
    """Counts by type; a pass that fails has none.

    Args:
        counts: after so many passes of the list; the model as it came is the first.
        after: as the runtime runs it.
        usual: as the runtime runs it by default.
    """

    counts: Sequence[Counter[str] | None] = ()
    after: Counter[str] | None = None
    usual: Counter[str] | None = None

    @staticmethod
    def count(examiner: Examiner, chosen: Selection) -> Nodes:
        """Count the nodes of a selection."""
        lists = [chosen.rewrites[:length] for length in range(len(chosen.rewrites) + 1)]
        made = (chosen.rewrites, sorted(chosen.disabled), chosen.session.get("optimization", ""))
        return Nodes(
            [_counted(lambda each=each: examiner.counts(each)) for each in lists],
            _counted(lambda: examiner.optimised(*made).counts),
            _counted(lambda: examiner.optimised(()).counts),
        )

    def to_json(self) -> Mapping[str, Any]:
        """Give what `read` reads."""
        return {"counts": list(self.counts), "after": self.after, "usual": self.usual}

    @staticmethod
    def read(told: Mapping[str, Any]) -> Nodes:
        """Read what `to_json` gave."""
        return Nodes(
            [_counter(each) for each in told.get("counts", ())],
            _counter(told.get("after")),
            _counter(told.get("usual")),
        )

    def change(self, place: int) -> str:
        """Tell what the pass of this place changed: `-35 Identity +2 Constant`; the most first."""
        before, after = [*self.counts[place : place + 2], None, None][:2]
        if before is None or after is None:
            return "-"
        changes = {name: after[name] - before[name] for name in before.keys() | after.keys()}
        changed = sorted((n for n in changes if changes[n]), key=lambda name: (-abs(changes[name]), name))
        told = [f"{changes[name]:+d} {name}" for name in changed[:_LISTED]]
        more = [f"and {len(changed) - _LISTED} more types"] if len(changed) > _LISTED else []
        return " ".join([*told, *more]) or "no change of counts"

    def table(self) -> str:
        """List the nodes by type: as they came, rewritten, and as the runtime runs them."""
        columns = (self.counts[0], self.counts[-1], self.after, self.usual)
        names = sorted({name for each in columns if each for name in each})
        total = ["all", *("-" if each is None else str(sum(each.values())) for each in columns)]
        rows = [
            [name, *("-" if each is None else str(each[name] or "") for each in columns)] for name in names
        ]
        head = ["", "as it came", "rewritten", "as it runs", "as it runs by default"]
        return aligned([head, total, *rows], texts=(0,))


def _counter(told: Mapping[str, int] | None) -> Counter[str] | None:
    return None if told is None else Counter(told)


def _counted(count: Callable[[], Mapping[str, int]]) -> Counter[str] | None:
    try:
        return Counter(count())
    except ExaminerError:  # what cannot be counted is shown as such
        return None
