"""Entry points of other packages that cannot be used: all others are listed, and the package is named."""

import json
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.core import registry
from planish.core.registry import level_of
from planish.levels.loops import backends

Offer = Callable[[str, str], None]

BROKEN = {
    "name": ("plugged:Annealing", "", "AttributeError: module 'plugged' has no attribute 'Annealing'"),
    "import": ("plugged:Annealing", "import absent_library", "ModuleNotFoundError: No module named 'absent_"),
    "syntax": ("plugged:Annealing", "class Annealing(", "SyntaxError: "),
    "needs": (
        "plugged:Annealing",
        "class Annealing: library = None",
        "searcher 'anneal' has no attribute 'needs'",
    ),
    "library": (
        "plugged:Annealing",
        "class Annealing: needs = object",
        "searcher 'anneal' has no attribute 'library'",
    ),
}
"""By what is broken: the entry point, the module, and the reason."""


def _forget() -> None:
    for cached in (
        registry._installed,  # pyright: ignore[reportPrivateUsage]
        registry._entries,  # pyright: ignore[reportPrivateUsage]
        backends.backend_names,
        backends.backend_named,
        backends.available_backends,
    ):
        cached.cache_clear()
    sys.modules.pop("plugged", None)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Offer]:
    """Return a function that installs a distribution `other-package 0.1` of one module and its entries."""

    def put(module: str, entries: str) -> None:
        info = tmp_path / "other_package-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 0.1\n")
        (info / "entry_points.txt").write_text(entries)
        (tmp_path / "plugged.py").write_text(module)
        monkeypatch.syspath_prepend(tmp_path)
        _forget()

    yield put
    monkeypatch.undo()
    _forget()


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_searcher_is_one_line_beside_all_others(install: Offer, planish: Planish, kind: str) -> None:
    value, module, reason = BROKEN[kind]
    install(module, f"[planish.searchers]\nanneal = {value}\n")
    cannot = f"searcher 'anneal' cannot be loaded from other-package 0.1 ({value}): {reason}"
    listed = planish("searchers")
    assert listed.code == 0
    assert "\ngenetic\n" in listed.out
    (line,) = listed.err.splitlines()
    assert line.startswith(f"planish: {cannot}")
    used = planish("tune", "C[m] += A[m,k]", "--size", "m=4,k=4", "--searcher", "anneal")
    assert used.code == 2
    assert used.error.startswith(cannot)
    assert used.error.endswith("Fix or uninstall other-package. --debug shows where it failed.")


def test_a_broken_level_is_one_line_and_others_are_found(install: Offer, planish: Planish) -> None:
    install("", "[planish.levels]\nalien = plugged:Alien\n")
    listed = planish("levels", "--format", "json")
    assert listed.code == 0
    assert {"loops", "llvm"} <= {level["name"] for level in json.loads(listed.out)["levels"]}
    assert "level 'alien' cannot be loaded from other-package 0.1 (plugged:Alien): " in listed.err
    assert level_of("C[m] += A[m,k]").name == "loops"


def test_a_broken_back_end_is_not_among_those_that_work(install: Offer, planish: Planish) -> None:
    install("", "[planish.loops.backends]\nalien = plugged:Alien\n")
    assert "alien" in backends.backend_names()
    assert "portable" in backends.available_backends()
    assert "alien" not in backends.available_backends()
    used = planish("tune", "C[m] += A[m,k]", "--size", "m=4,k=4", "--backend", "alien", "--trials", "1")
    assert used.code == 2
    assert "back end 'alien' cannot be loaded from other-package 0.1 (plugged:Alien): " in used.error


def test_two_packages_of_one_name_leave_all_others(install: Offer, planish: Planish) -> None:
    install("class Genetic: ...", "[planish.searchers]\ngenetic = plugged:Genetic\n")
    listed = planish("searchers")
    assert listed.code == 0
    assert "\nrandom\n" in listed.out
    assert "'genetic' is offered by two packages, " in listed.err
    assert "other-package 0.1 (plugged:Genetic)" in listed.err
