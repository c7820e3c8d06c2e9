"""What the reference of the notation shows can be run."""

import re
from pathlib import Path

import pytest

from planish.levels.loops.lang.draft import Draft, axes_of, gathers, parts_of
from planish.levels.loops.lang.parse import parse, read_statements

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "notation.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [row.replace("\\|", "|") for row in re.findall(r"^\| [^`\n]* \| `(.*)` \|$", TEXT, re.MULTILINE)]


def axes(draft: Draft) -> set[str]:
    return {*draft.axes, *(a for part in draft.parts for a in axes_of(part))}


@pytest.mark.parametrize("text", ROWS)
def test_rows(text: str) -> None:
    drafts = read_statements(text)
    named = {axis for draft in drafts for axis in axes(draft)}
    looked_up = [parts_of(g)[0] for draft in drafts for part in draft.parts for g in gathers(part)]
    shapes = {table.tensor: (3,) * len(table.index) for table in looked_up}
    assert parse(text, dict.fromkeys(named, 3), shapes).outputs


def test_the_example_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(ROWS) > 10
    exec(code[0], {})
    assert capsys.readouterr().out.startswith("C[m, n] += (A[m, k] * B[k, n]); D[m, n] = relu(")
