"""The table of a campaign."""

from __future__ import annotations

from collections.abc import Iterator

from planish.levels.llvm.passes import elements
from soundness.campaign import Failure, Tally
from soundness.examiner import UNSOUND

_WIDTH = 40


def write_table(tally: Tally) -> Iterator[str]:
    """Return the lines: one for each pass, then the sums, then the failures.

    Columns: lists about the pass alone, how many of these changed the code (a pass that changes nothing was
    not tested), lists of many that hold it, and the failures that it has part in after minimisation.
    """
    yield f"{'pass':<{_WIDTH}} tier  alone changed  lists  crashed  wrong"
    for text, element in elements().items():
        alone = sum(n for (name, where), n in tally.lists.items() if name == text and where != "lists")
        lists = tally.lists[text, "lists"]
        wrong = sum(f.kind in UNSOUND and text in f.short for f in tally.failures)
        other = sum(f.kind not in UNSOUND and text in f.short for f in tally.failures)
        if alone or lists:
            yield (
                f"{_short(text):<{_WIDTH}} {element.tier:>4} {alone:>6} {tally.changed[text]:>7} {lists:>6}"
                f" {other:>8} {wrong:>6}"
            )
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tally.kinds.most_common())
    yield f"{tally.kinds.total():,} lists: {kinds}; {tally.executed:,} different programs were run"
    yield from map(_line, dict.fromkeys(tally.failures))


def _line(failure: Failure) -> str:
    short = ",".join(failure.short)
    return f"{failure.kind}: {failure.subject}: {short}: {failure.detail[:200]} ({failure.folder})"


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
