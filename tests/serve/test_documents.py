"""Candidates as clients submit them: their options have the types of their steps."""

from dataclasses import dataclass
from typing import Any

import pytest

from planish.core import Candidate, ProgramError, Step
from planish.serve.documents import read_candidate


@dataclass(frozen=True)
class Resize(Step):
    """Resize a value by operations, of which each has numbers and names of its own."""

    value: str
    by: tuple[tuple[Any, ...], ...] = ()


def read(**options: Any) -> Candidate:
    return read_candidate([["Resize", options]], {"Resize": Resize}, 10)


def test_what_a_step_leaves_open_may_be_anything() -> None:
    found = read(value="x", by=[["slice", 0, [1, 2]], ["pad", None, True]])
    assert found == Candidate((Resize("x", (("slice", 0, (1, 2)), ("pad", None, True))),))


@pytest.mark.parametrize("options", [{"value": 1}, {"value": "x", "by": 3}, {"value": "x", "by": [4]}])
def test_all_else_has_its_type(options: dict[str, Any]) -> None:
    with pytest.raises(ProgramError, match="step 'Resize': "):
        read(**options)
