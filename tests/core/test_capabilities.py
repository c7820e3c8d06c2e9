"""The catalogue of capabilities: each names its implementers and its users, and has some."""

import inspect
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from planish.core import Level, Program, capabilities

ALL = {
    name: found
    for name, found in vars(capabilities).items()
    if getattr(found, "_is_protocol", False) and found.__module__ == capabilities.__name__
}
SOURCE = Path(capabilities.__file__).parents[1]


@pytest.mark.parametrize("name", ALL)
def test_each_names_its_implementers_and_its_users(name: str) -> None:
    text = " ".join((ALL[name].__doc__ or "").split())
    assert re.search(r"Offered by .+; used by .+\.$", text)


@pytest.mark.parametrize("name", ALL)
def test_each_is_asked_for_somewhere(name: str) -> None:
    others = (file.read_text() for file in SOURCE.rglob("*.py") if SOURCE / "core" not in file.parents)
    assert any(re.search(rf"\b{name}\b", text) for text in others)


LEVELS = [
    entry.load() for entry in entry_points(group="planish.levels") if entry.value.startswith("planish.")
]
OPTIONAL = [
    name
    for name, found in vars(Level).items()
    if inspect.isfunction(found) and not getattr(found, "__isabstractmethod__", False)
]


@pytest.mark.parametrize("name", OPTIONAL)
def test_each_default_of_a_level_is_overridden_by_one(name: str) -> None:
    """Otherwise it is no choice of levels, and belongs where it is called."""
    assert any(getattr(level, name) is not getattr(Level, name) for level in LEVELS)


def test_a_level_without_its_required_methods_cannot_be_made() -> None:
    class Empty(Level[Program]):
        name = "empty"

    with pytest.raises(TypeError, match="abstract"):
        Empty()  # pyright: ignore[reportAbstractUsage]
