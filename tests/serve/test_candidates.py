"""Types of what clients submit."""

from typing import Any, Literal

import pytest

from planish.serve.candidates import fits


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, int, True),
        (True, int, False),
        (1.0, int, False),
        (1, float, True),
        (True, float, False),
        ("1", int, False),
        ("a", Literal["a", "b"], True),
        (1, Literal[1, 2], True),
        (True, Literal[1, 2], False),
        (None, int | None, True),
        ("", int | None, False),
        (("a", "b"), tuple[str, ...], True),
        (("a", 1), tuple[str, ...], False),
        ("ab", tuple[str, ...], False),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        (object(), Any, True),
    ],
)
def test_types_of_options(value: object, hint: Any, expected: bool) -> None:
    assert fits(value, hint) is expected
