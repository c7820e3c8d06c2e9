"""The files by which the project is kept are well formed, and name commands that exist."""

import re
from pathlib import Path
from typing import Any

import pytest

import planish

ROOT = Path(__file__).parents[2]
YAML = sorted([*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"])


def read(path: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with planish[docs]")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_files_for_services_are_well_formed(path: Path) -> None:
    assert read(path)


def test_what_is_cited_is_this_version() -> None:
    assert str(read(ROOT / "CITATION.cff")["version"]) == planish.__version__


@pytest.mark.parametrize(
    "name", [".github/workflows/ci.yml", ".github/workflows/release.yml", "docs/release.md"]
)
def test_targets_of_make_exist(name: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    used = re.findall(r"\bmake ([a-z-]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert used
    assert set(used) <= set(targets)


def test_hooks_run_what_make_lint_runs() -> None:
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = "".join(
        makefile.partition(f"\n{target}:")[2].partition("\n\n")[0] for target in ("style", "types")
    )
    tools = {Path(hook["entry"].split()[0]).name for hook in hooks}
    assert tools == set(re.findall(r"\$\(BIN\)/([\w-]+)", lint))
