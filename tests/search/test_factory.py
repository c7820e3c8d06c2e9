"""Searchers by name."""

import pytest

from planish.core import PlanishError, Space, registry
from planish.search import Genetic, describe_searcher, fitting_searchers, make_searcher
from planish.testing.lattice import Lattice
from search.trail import TIME, Trail

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
    "random-minimise",
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
    def load(group: str, name: str) -> object:
        if name == "genetic":
            raise ImportError("no module named 'absent'")
        return real(group, name)

    real = registry.load
    monkeypatch.setattr(registry, "load", load)
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
    assert info.needs == ("extend", "state", "steps")
    assert [(option.name, option.default) for option in info.options] == [("width", 4), ("depth", 10)]


@pytest.mark.parametrize("lacking", ["needs", "library"])
def test_what_a_searcher_lacks_is_said(lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {"needs": Space, "library": None}
    del attributes[lacking]
    bare = type("Bare", (), attributes)

    def load(*_: str) -> type:
        return bare

    monkeypatch.setattr(registry, "load", load)
    with pytest.raises(PlanishError, match=f"searcher 'bare' has no attribute '{lacking}'"):
        make_searcher("bare", Lattice(), [TIME], 0)
