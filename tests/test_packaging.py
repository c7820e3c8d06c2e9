"""What is installed is whole, and importing it is light."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires, version
from pathlib import Path
from zipfile import ZipFile

import pytest

import planish
from planish.core import registry
from planish.levels.loops.backends import PREFERRED

ROOT = Path(__file__).parents[1]
OFFERS = [
    (group, name) for group in ("planish.levels", "planish.searchers") for name in registry.names(group)
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the wheel and list what is in it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with ZipFile(path) as archive:
        return archive.namelist()


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: list[str]) -> None:
    source = ROOT / "src"
    files = {str(f.relative_to(source)) for f in source.rglob("*") if f.is_file() and f.suffix != ".pyc"}
    packed = {name for name in wheel if ".dist-info/" not in name}
    assert packed == files
    assert "planish/py.typed" in packed


def test_the_wheel_holds_the_license(wheel: list[str]) -> None:
    licenses = f"planish-{planish.__version__}.dist-info/licenses"
    assert f"{licenses}/LICENSE" in wheel
    assert f"{licenses}/src/planish/report/static/LICENSE-plotly.txt" in wheel


def dependencies() -> set[str]:
    """Name the modules of everything that planish requires, extras apart."""
    needed = [text for text in requires("planish") or [] if "extra ==" not in text]
    names = {re.split(r"[^\w.-]", text)[0].lower() for text in needed}
    return {
        module for module, owners in packages_distributions().items() if names & {o.lower() for o in owners}
    }


@pytest.mark.parametrize("module", ["planish", "planish.core", "planish.core.registry"])
def test_importing_loads_no_dependency(module: str) -> None:
    assert {"numpy", "sqlalchemy", "llvmlite"} <= dependencies()
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert module in done.stdout.split()
    assert not dependencies() & set(done.stdout.split())


@pytest.mark.parametrize(("group", "name"), OFFERS)
def test_what_is_offered_can_be_loaded(group: str, name: str) -> None:
    assert callable(registry.load(group, name))


def test_a_level_and_searchers_are_offered() -> None:
    assert registry.names("planish.levels") == ["graph", "hlo", "llvm", "loops"]
    assert {"exhaustive", "genetic", "random"} <= set(registry.names("planish.searchers"))


def test_back_ends_of_loops_are_offered_like_those_of_other_packages() -> None:
    assert set(PREFERRED) <= set(registry.names("planish.loops.backends"))


@pytest.mark.parametrize("before", ["", "einsum", "tuning.api", "tuning.validate"])
def test_public_names_are_what_they_say_whatever_was_imported_before(before: str) -> None:
    code = f"""
import planish{f", planish.{before}" if before else ""}
for name in planish.__all__:
    print(name, type(getattr(planish, name)).__name__, type(getattr(planish, name)).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    kinds = {name: set(found) for name, *found in map(str.split, done.stdout.splitlines())}
    assert kinds.keys() == set(planish.__all__)
    for name, found in kinds.items():
        wanted = {"module"} if name in ("plot", "callbacks") else {"function", "type", "str"}
        assert found <= wanted, name


def test_the_version_is_one() -> None:
    assert version("planish") == planish.__version__
