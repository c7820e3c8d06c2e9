"""The documentation says what is so: paths exist, links lead somewhere, exit codes are those of the code."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.einsum.planning import BudgetError
from planish.levels.graph.pass_probe import ExaminerError
from planish.levels.graph.rewriting import RewriteError
from planish.levels.graph.sessions import RefusedError
from planish.levels.llvm import execution
from planish.levels.loops.codegen.x86.vectors import NoRegisterError
from planish.sandbox.limits import LostError
from planish.store.session import LostConnectionError
from planish.tuning import batch

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/**/*.md")])
FOLDERS = "src|tests|docs|benchmarks|examples|experiments"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


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
    text = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    documented = [
        (name, int(code)) for code, name in re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.MULTILINE)
    ]
    assert sorted(documented) == sorted((error.__name__, error.exit_code) for error in _family(PlanishError))


def test_errors_of_modules_that_load_late_are_known() -> None:
    late: set[type[PlanishError]] = {
        batch.RegressionError,
        execution.NotRunnableError,
        ExaminerError,
        RefusedError,
    }
    late |= {RewriteError, BudgetError, NoRegisterError, LostError, LostConnectionError}
    assert late <= set(_family(PlanishError))


def _family(error: type[PlanishError]) -> Iterator[type[PlanishError]]:
    yield error
    for subclass in error.__subclasses__():
        if subclass.__module__.startswith("planish."):
            yield from _family(subclass)
