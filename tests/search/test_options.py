"""Options: declared in a constructor, read from texts."""

from typing import Annotated, Any

import pytest

from planish.core import PlanishError
from planish.search import Option, OptionValue, split_settings
from planish.search.factory import options_of, read_options


def _factory(
    space: Any,
    *,
    width: Annotated[int, Option("how wide", least=1, most=9)] = 4,
    chance: Annotated[float, Option("how often", least=0, most=1)] = 0.5,
    greedy: bool = False,
    name: str = "best",
    speed: float = 1.0,
) -> None:
    del space, width, chance, greedy, name, speed


def test_options_are_found_with_their_types_defaults_and_help() -> None:
    found = [(o.name, o.kind, o.default, o.option.help, o.legal) for o in options_of(_factory).values()]
    assert found == [
        ("width", int, 4, "how wide", "a whole number, at least 1, at most 9"),
        ("chance", float, 0.5, "how often", "a number, at least 0, at most 1"),
        ("greedy", bool, False, "", "true or false"),
        ("name", str, "best", "", "a text"),
        ("speed", float, 1.0, "", "a number"),
    ]


CONVERTED: list[tuple[str, OptionValue, OptionValue]] = [
    ("width", "7", 7),
    ("width", 7, 7),
    ("chance", "0.25", 0.25),
    ("chance", "1e-3", 0.001),
    ("chance", 1, 1.0),
    ("greedy", "true", True),
    ("greedy", "False", False),
    ("greedy", True, True),
    ("name", "7", "7"),
]


@pytest.mark.parametrize(("name", "value", "expected"), CONVERTED, ids=repr)
def test_values_are_converted(name: str, value: OptionValue, expected: OptionValue) -> None:
    read = read_options(_factory, {name: value})
    assert read == {name: expected}
    assert type(read[name]) is type(expected)


REFUSED: list[tuple[str, OptionValue]] = [
    ("width", "many"),
    ("width", "1.5"),
    ("width", 1.5),
    ("width", True),
    ("width", "0"),
    ("width", "10"),
    ("chance", "nan"),
    ("speed", "inf"),
    ("chance", -0.1),
    ("greedy", "yes please"),
    ("greedy", 1),
    ("name", 3),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=repr)
def test_a_value_that_is_not_legal_is_refused(name: str, value: OptionValue) -> None:
    with pytest.raises(PlanishError, match=f"option '{name}' takes .*, not "):
        read_options(_factory, {name: value})


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(PlanishError, match=r"unknown option 'widht'. Did you mean 'width'\?"):
        read_options(_factory, {"widht": 3})


def test_settings_are_split() -> None:
    assert split_settings(["width=3", " name = a=b "]) == {"width": "3", "name": "a=b"}
    assert split_settings([]) == {}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [(["width"], "not of the form"), (["=3"], "not of the form"), (["width=3", "width=4"], "given twice")],
)
def test_a_malformed_setting_is_refused(settings: list[str], problem: str) -> None:
    with pytest.raises(PlanishError, match=rf"{problem}.*\. Write each option once, as name=value"):
        split_settings(settings)
