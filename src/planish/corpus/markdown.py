"""Tables of cards, as Markdown."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write the lines of a table; an upright stroke in a cell, which would end it, becomes a slash."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
