"""The documentation builds without a warning, without a network, and shows all that is public."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import planish
from planish import core, store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a warning ends the build."""
    if find_spec("sphinx") is None and "CI" not in os.environ:
        pytest.skip("sphinx is not installed: pip install 'planish[docs]'")
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    # A proxy that nothing answers: what asks the network fails.
    offline = os.environ | dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [*build, "-d", str(out / "doctrees"), "docs", str(out)],
        cwd=ROOT, env=offline, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_built(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in ROOT.glob("docs/**/*.md")}
    assert pages
    assert [str(page) for page in pages if not (site / page).exists()] == []


@pytest.mark.parametrize("module", [planish, core, store], ids=lambda module: module.__name__)
def test_what_is_public_is_in_the_reference(site: Path, module: object) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in site.glob("reference/python/*.html"))
    listed = {name: getattr(module, name) for name in vars(module)["__all__"]}
    public = [name for name, value in listed.items() if isinstance(value, type) or module is planish]
    assert [name for name in public if name[0] != "_" and f'.{name}">' not in text] == []


def test_it_needs_nothing_from_elsewhere(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert not [tag for tag in ('src="http', 'rel="stylesheet" type="text/css" href="http') if tag in text]
