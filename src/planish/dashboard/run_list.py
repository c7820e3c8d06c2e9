"""The list of a store's runs: filtered, sorted and in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planish.core import StoreError
from planish.core.wording import amount, improvement, verdict_word
from planish.dashboard.runs import COMPARING, RunSummary
from planish.dashboard.views import READ_S, ROWS, Rendered, Sections, View, fill

SORTS: Mapping[str, Callable[[RunSummary], Any]] = {
    "age": lambda each: -each.run.started if each.run else 0.0,
    "level": lambda each: each.level,
    "program": lambda each: each.program.lower(),
    "status": lambda each: each.status,
    "gain": lambda each: each.gain or 0.0,
    "verdict": lambda each: each.verdict.kind if each.verdict else "",
    "trials": lambda each: each.run.trials if each.run else 0,
}
"""What a list of runs can be sorted by."""


@dataclass(frozen=True)
class RunsQuery:
    """Choice of runs.

    Args:
        text: words that are in the program, the level, the searcher or the id.
        level: of the runs; empty for all.
        status: of the runs; empty for all.
        verdict: kind of the verdict; empty for all.
        sort: a name of `SORTS`, with `-` before it for the other direction.
        page: from 1.
    """

    text: str = ""
    level: str = ""
    status: str = ""
    verdict: str = ""
    sort: str = "age"
    page: int = 1

    def chooses(self, run: RunSummary) -> bool:
        """Return whether a run is shown."""
        about = f"{run.id} {run.level} {run.program} {run.run.searcher if run.run else ''}".lower()
        return (
            all(word in about for word in self.text.lower().split())
            and self.level in ("", run.level)
            and self.status in ("", run.status)
            and self.verdict in ("", run.verdict.kind if run.verdict else "")
        )

    def sorted(self, runs: Iterable[RunSummary]) -> list[RunSummary]:
        """Return the runs in their order; of equals the newest is first."""
        name = self.sort.removeprefix("-")
        return sorted(runs, key=SORTS.get(name, SORTS["age"]), reverse=self.sort.startswith("-"))


@dataclass(frozen=True)
class RunsView(View):
    """The list of a store's runs."""

    query: RunsQuery = RunsQuery()
    template = "runs.html.jinja"
    drawn = False

    def stamp(self) -> object:
        return self.runs.source.version

    def sections(self) -> Sections:
        return {"runs": self._list}

    def page(self) -> Mapping[str, Any]:
        known, _ = self.runs.summaries(0) if not self.runs.source.error else ([], True)
        return {
            "levels": sorted({each.level for each in known if each.level}),
            "statuses": ("running", COMPARING, "finished", "stopped", "interrupted", "failed"),
            "verdicts": ("better", "same", "worse", "undecided", "failed", "open", "nothing"),
        }

    def _list(self) -> Rendered:
        source, query = self.runs.source, self.query
        if source.error:
            raise StoreError(source.error)
        known, whole = self.runs.summaries(READ_S)
        found = query.sorted(each for each in known if query.chooses(each))
        pages = max(1, -(-len(found) // ROWS))
        page = min(max(1, query.page), pages)
        return Rendered(
            fill(
                "runs_list.html.jinja",
                key=self.key,
                query=query,
                rows=[_run_row(each) for each in found[(page - 1) * ROWS : page * ROWS]],
                count=len(found),
                total=len(known),
                page=page,
                pages=pages,
                columns=_RUN_COLUMNS,
                whole=whole,
            ),
            whole,
        )


_RUN_COLUMNS = (
    ("run", ""),
    ("level", "level"),
    ("program", "program"),
    ("status", "status"),
    ("best", ""),
    ("gain", "-gain"),
    ("verdict", "verdict"),
    ("trials", "-trials"),
    ("age", "age"),
)
"""Heads of the columns, and how a click on each sorts first; empty for one that is not sorted by."""


def _run_row(each: RunSummary) -> Mapping[str, Any]:
    objective = each.objective
    value = "" if each.value is None or objective is None else amount(each.value, objective.unit)
    gain = "" if each.gain is None or objective is None else improvement(each.gain, objective)
    kind = each.verdict.kind if each.verdict else ""
    return {
        "summary": each,
        "value": value,
        "gain": gain,
        "kind": kind,
        "word": verdict_word(kind, objective) if objective else kind,
    }
