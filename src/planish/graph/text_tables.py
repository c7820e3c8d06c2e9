"""Numbers and tables of texts, as this level shows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


def aligned(rows: Sequence[Sequence[str]], texts: Collection[int]) -> str:
    """Write rows of one length as columns.

    Args:
        rows: the first is the head.
        texts: columns that are aligned to the left; the others are numbers.
    """
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(width) if place in texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def milliseconds(seconds: float) -> str:
    """Write a time: `12.34 ms`."""
    return f"{1e3 * seconds:#.4g} ms"


def times(before: Mapping[str, float] | None, after: Mapping[str, float] | None, what: str) -> str:
    """Write how many times less a quantity is than it was: `1.24x`; `-` where one is not known."""
    return "-" if before is None or after is None or not after[what] else f"{before[what] / after[what]:.2f}x"
