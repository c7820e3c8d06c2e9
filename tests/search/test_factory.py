"""Searchers by name, and their options."""

import sys
from typing import Annotated, Any

import pytest

from planish.core import PlanishError
from planish.search import (
    Option,
    OptionValue,
    describe_searcher,
    fitting_searchers,
    make_searcher,
    split_settings,
)
from planish.search.factory import options_of, read_options
from planish.search.genetic import Genetic
from planish.testing.synthetic import Lattice
from search.spaces import TIME, Trail

OURS = [
    "annealing",
    "beam-bfs",
    "beam-dfs",
    "exhaustive",
    "genetic",
    "gevo",
    "greedy1",
    "greedy2",
    "model-guided",
    "nsga2",
    "portfolio",
    "random",
    "random-minimize",
]
TRAIL = Trail([[1], [0]], {0: 1, 1: 2})


def test_all_searchers_are_installed_and_fit_a_space_that_offers_all() -> None:
    assert set(OURS) <= set(fitting_searchers(Lattice()))


def test_a_space_that_is_walked_fits_some() -> None:
    assert set(fitting_searchers(TRAIL)) & set(OURS) == {"beam-bfs", "beam-dfs", "greedy1", "greedy2"}


@pytest.mark.parametrize("name", OURS)
def test_a_searcher_is_made_by_name(name: str) -> None:
    lattice = Lattice()
    first, second = (make_searcher(name, lattice, [TIME], 5).ask(4) for _ in range(2))
    assert 1 <= len(first) <= 4
    assert first == second


def test_options_reach_the_searcher() -> None:
    searcher = make_searcher("genetic", Lattice(), [TIME], 0, {"population": "7", "mutation": 0.5})
    assert isinstance(searcher, Genetic)
    assert len(searcher.ask(100)) == 7


def test_a_pair_that_does_not_fit_names_those_that_do() -> None:
    with pytest.raises(PlanishError) as error:
        make_searcher("genetic", TRAIL, [TIME], 0)
    needs = "searcher 'genetic' needs what Trail does not offer: crossover, mutate, sample"
    assert error.value.message == needs
    assert "Searchers that fit: beam-bfs, beam-dfs, greedy1, greedy2" in error.value.hint


def test_an_unknown_searcher_names_the_nearest() -> None:
    with pytest.raises(PlanishError, match=r"unknown searcher 'genetics'. Did you mean 'genetic'\?"):
        make_searcher("genetics", Lattice(), [TIME], 0)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(PlanishError, match=r"unknown option 'popluation'. Did you mean 'population'\?"):
        make_searcher("genetic", Lattice(), [TIME], 0, {"popluation": 3})
    with pytest.raises(PlanishError, match=r"unknown option 'width'. Known: none"):
        make_searcher("greedy1", Lattice(), [TIME], 0, {"width": 3})


def test_a_searcher_whose_library_is_missing_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "planish.search.genetic", None)
    assert set(OURS) - set(fitting_searchers(Lattice())) == {"genetic"}


@pytest.mark.parametrize("name", OURS)
def test_a_searcher_describes_itself(name: str) -> None:
    info = describe_searcher(name)
    assert info.name == name
    assert info.summary.endswith((".", ")."))
    assert info.needs
    assert all(option.option.help for option in info.options)
    assert all(option.read(option.default) == option.default for option in info.options)


def test_the_description_lists_needs_and_options() -> None:
    info = describe_searcher("beam-dfs")
    assert info.needs == ("extend", "steps")
    assert [(option.name, option.default) for option in info.options] == [("width", 4), ("depth", 10)]


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
