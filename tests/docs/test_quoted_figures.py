"""Figures that pages quote stand in the stored output of the programs that print them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quoted-figures.md"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Quoted:
    """A row of the page."""

    page: str
    figures: tuple[str, ...]
    program: str
    stored: str
    line: str


def rows() -> list[Quoted]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    return [Quoted(page, tuple(figures.split(", ")), *others) for page, figures, *others in cells[2:]]


def numbers(text: str) -> list[Decimal]:
    return [Decimal(each.replace(",", "")) for each in NUMBER.findall(text)]


def problem(quoted: Quoted, page: str, stored: str) -> str:
    """Return what is wrong; "" where each figure stands in the page, and in the line of what is stored."""
    held = [" ".join(line.replace("|", " ").split()) for line in stored.splitlines()]
    lines = [line for line in held if quoted.line in line]
    if len(lines) != 1:
        return f"'{quoted.line}' is in {len(lines)} lines of {quoted.stored}"
    for figure in quoted.figures:
        wanted = numbers(figure)[0]
        if figure not in NUMBER.findall(page):
            return f"{quoted.page} does not quote {figure}"
        if wanted not in [each.quantize(wanted, ROUND_HALF_UP) for each in numbers(lines[0])]:
            return f"{figure} is not in: {lines[0]}"
    return ""


@pytest.mark.parametrize("quoted", rows(), ids=lambda quoted: quoted.line)
def test_a_quoted_figure_is_in_the_output_of_its_program(quoted: Quoted) -> None:
    page, stored = ((ROOT / name).read_text(encoding="utf-8") for name in (quoted.page, quoted.stored))
    assert problem(quoted, page, stored) == ""
    for script in re.findall(r"(?:experiments|benchmarks)/\S+\.py", quoted.program):
        assert (ROOT / script).is_file()


@pytest.mark.parametrize("page", ["docs/how-to/cost-models.md", "docs/how-to/pass-lists.md"])
def test_all_figures_of_a_page_are_listed(page: str) -> None:
    quoted = re.findall(r"\d+\.\d+", (ROOT / page).read_text(encoding="utf-8"))
    assert sorted(quoted) == sorted(figure for row in rows() if row.page == page for figure in row.figures)


def test_a_figure_that_does_not_follow_from_the_output_is_found() -> None:
    quoted = Quoted("page", ("1.3", "12,000"), "", "output", "ours 1")
    output = "| ours | 1.25 % | 12,000 |\n| theirs | 2.0 % | 9 |\n"
    assert problem(quoted, "saves 1.3 % of 12,000", output) == ""
    assert problem(quoted, "saves 1.2 % of 12,000", output) == "page does not quote 1.3"
    assert problem(quoted, "1.3, 12,000", output.replace("1.25", "1.24")).startswith("1.3 is not in: ours")
    assert problem(quoted, "1.3, 12,000", output * 2) == "'ours 1' is in 2 lines of output"
