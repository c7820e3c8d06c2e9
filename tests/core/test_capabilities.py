"""The catalogue of capabilities: each says who offers it and who uses it, and somebody does."""

import inspect
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from planish.core import capabilities, level_capabilities

ALL = {
    name: found
    for module in (capabilities, level_capabilities)
    for name, found in vars(module).items()
    if inspect.isclass(found) and found.__module__ == module.__name__
}
SOURCE = Path(capabilities.__file__).parents[1]
ALONE = {"CanReplaceBaseline", "KnowsPrograms", "SuitsSpaces"}
"""Those that one offers, and that say why."""


@pytest.mark.parametrize("name", ALL)
def test_each_says_who_offers_and_who_uses_it(name: str) -> None:
    told = " ".join((ALL[name].__doc__ or "").split())
    assert re.search(r"Offered by .+; used by .+\.$", told)


@pytest.mark.parametrize("name", ALL)
def test_each_is_asked_for_somewhere(name: str) -> None:
    others = (file.read_text() for file in SOURCE.rglob("*.py") if SOURCE / "core" not in file.parents)
    assert any(re.search(rf"\b{name}\b", text) for text in others)


LEVELS = {entry.name: entry for entry in entry_points(group="planish.levels") if "planish." in entry.value}


@pytest.mark.parametrize("name", [name for name in ALL if (ALL[name].__doc__ or "").startswith("A level")])
def test_levels_offer_what_the_catalogue_says(name: str) -> None:
    told = (ALL[name].__doc__ or "").partition("Offered by")[2].partition("; used by")[0]
    offering = {level for level in LEVELS if isinstance(LEVELS[level].load()(), ALL[name])}
    assert offering == {level for level in LEVELS if f"`{level}`" in told}
    assert len(offering) + ("example" in told) > 1 or name in ALONE


@pytest.mark.parametrize("name", sorted(ALONE))
def test_one_that_is_offered_once_says_why(name: str) -> None:
    assert "One level alone" in (ALL[name].__doc__ or "")
