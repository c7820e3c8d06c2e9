"""The documentation is true: paths exist, links lead somewhere, the site builds, plug-ins install."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from runpy import run_path
from types import ModuleType

import pytest

import planish
from docs.plugins import EXAMPLES, install
from planish import core, store
from planish.core import PlanishError

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/**/*.md")])
UPDATED = run_path(str(ROOT / "docs" / "snippets.py"))["updated"]
FOLDERS = "src|tests|docs|benchmarks|examples|experiments"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_files_that_the_architecture_names_without_their_folder_exist() -> None:
    sources = ["/" + path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/**/*.py")]
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    short = [name for name in re.findall(r"`([\w/]+\.py)`", text) if not name.startswith("src/")]
    assert short
    assert [name for name in short if not any(path.endswith(f"/{name}") for path in sources)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_that_a_page_shows_is_that_of_the_example(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert UPDATED(text) == text, "run: python docs/snippets.py"


def test_code_that_an_example_lacks_is_an_error() -> None:
    with pytest.raises(LookupError, match="has no class or function Walk"):
        UPDATED("<!-- examples/demo.py: Walk -->\n```py\n```\n")


def test_every_extra_is_listed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = re.findall(r"^\| `([a-z]+)` \|", (ROOT / "docs/install.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(extras["optional-dependencies"])


def test_the_glossary_is_in_the_order_of_the_alphabet() -> None:
    rows = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("|---|---|\n")[2]
    words = re.findall(r"^\| (.+?) \|", rows, re.MULTILINE)
    assert words
    assert words == sorted(set(words), key=str.casefold)


def test_every_error_is_documented_with_its_exit_code() -> None:
    for module in walk_packages(planish.__path__, "planish."):
        with suppress(ImportError):  # of a library that is not installed
            import_module(module.name)
    text = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    documented = [
        (name, int(code)) for code, name in re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.MULTILINE)
    ]
    assert sorted(documented) == sorted((error.__name__, error.exit_code) for error in _family(PlanishError))


def _family(error: type[PlanishError]) -> Iterator[type[PlanishError]]:
    yield error
    for subclass in error.__subclasses__():
        if subclass.__module__.startswith("planish."):
            yield from _family(subclass)


def built_site(out: Path) -> Path:
    """Build the site, but for pages of highlighted source; a warning ends the build."""
    if find_spec("sphinx") is None and "CI" not in os.environ:
        pytest.skip("sphinx is not installed: pip install 'planish[docs]'")
    configured: list[str] = run_path(str(ROOT / "docs/conf.py"))["extensions"]
    extensions = [each for each in configured if each != "sphinx.ext.viewcode"]
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    # A proxy that nothing answers: what asks the network fails.
    offline = os.environ | dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [*build, "-d", str(out / "doctrees"), "-D", f"extensions={','.join(extensions)}", "docs", str(out)],
        cwd=ROOT, env=offline, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


# One test: each process of the test suite that had one of several would build the site.
@pytest.mark.slow
def test_the_site_has_every_page_and_all_that_is_public_and_needs_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    site = built_site(tmp_path)
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in ROOT.glob("docs/**/*.md")}
    assert pages
    assert [str(page) for page in pages if not (site / page).exists()] == []
    text = "".join(page.read_text(encoding="utf-8") for page in site.glob("reference/python/*.html"))
    for module in (planish, core, store):
        listed = {name: getattr(module, name) for name in vars(module)["__all__"]}
        public = [
            name
            for name, value in listed.items()
            if isinstance(value, type) or (module is planish and not isinstance(value, ModuleType))
        ]
        assert [name for name in public if name[0] != "_" and f'.{name}">' not in text] == []
    index = (site / "index.html").read_text(encoding="utf-8")
    assert not [tag for tag in ('src="http', 'rel="stylesheet" type="text/css" href="http') if tag in index]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plugin_searcher", "plugin_level", "plugin_backend"])
def test_a_plug_in_passes_its_tests(name: str, tmp_path: Path) -> None:
    install(name, tmp_path)
    suite = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(
        [*suite, "--import-mode=importlib", "-c", os.devnull, f"--rootdir={EXAMPLES / name}"],
        cwd=EXAMPLES / name, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
