"""What tutorials and how-to pages tell a reader to type works, and says what they show."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from docs import pages
from docs.pages import Block, blocks, commands, run
from docs.plugins import install
from ray_fleet import NEEDS_RAY

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("docs/tutorials/*.md"), *ROOT.glob("docs/how-to/*.md"), ROOT / "docs/cheat-sheet.md"]
)
OWN_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


SHORT = f"""#!{sys.executable}
import sys

if "tune" in sys.argv[1:2]:
    sys.path.append("{ROOT / "tests"}")
    from quick_runs import shorten_comparisons

    shorten_comparisons(setattr)
from planish.cli.script import main

main()
"""
"""The command `planish`, which compares shortly: pages show no result of a comparison that is fixed."""


@pytest.fixture(scope="module")
def commands_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install `planish` with short comparisons."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "planish").write_text(SHORT, encoding="utf-8")
    (folder / "planish").chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the plug-ins of the examples."""
    folder = tmp_path_factory.mktemp("plugins")
    for name in ("plugin_backend", "plugin_level", "plugin_searcher"):
        install(name, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_what_a_page_says_works(page: Path, plugins: Path, commands_folder: Path, tmp_path: Path) -> None:
    if page.name == "cluster.md":
        pytest.importorskip("ray", reason=NEEDS_RAY)
    for folder in ("benchmarks", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    path = os.pathsep.join([str(commands_folder), OWN_PATH])
    place = {"PATH": path, "PYTHONPATH": str(plugins), "PLANISH_STORE": str(tmp_path / "planish.db")}
    done = subprocess.run(
        [sys.executable, pages.__file__, str(page)], cwd=tmp_path, env=os.environ | place,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@contextmanager
def ray_started(command: str, place: dict[str, str]) -> Generator[None]:
    """Start Ray by a command of a page; it ends with the block."""
    with subprocess.Popen(
        ["bash", "-c", f"{command.strip()} --block"], stdout=subprocess.PIPE, text=True, process_group=0,
        env=os.environ | place,
    ) as process:  # fmt: skip
        assert process.stdout
        try:
            assert any("--block" in line for line in process.stdout)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=240)


def test_the_commands_that_start_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason=NEEDS_RAY)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    page = (
        (ROOT / "docs/how-to/cluster.md").read_text().replace("HEAD", "127.0.0.1").replace("6379", str(port))
    )
    head, host, search = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    # The token is kept at home.
    place = {"PATH": OWN_PATH, "HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0"}
    with ray_started(head, place), ray_started(host, place):
        done = subprocess.run(
            ["bash", "-c", f"{search.strip()} --trials 5 --store {tmp_path / 'planish.db'}"],
            env=os.environ | place,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "lower priority" not in done.stdout
    assert "planish show" in done.stdout


def test_commands_are_distinguished_from_their_output() -> None:
    page = "```console\n$ echo a \\\n    b\na b\n$ true\n```\n\n```sh\nrm -r /\n```\n"
    (block,) = blocks(page)
    assert block == Block("console", "$ echo a \\\n    b\na b\n$ true\n", 2)
    assert commands(block) == [("echo a \\\n    b", ["a b"]), ("true", [])]


@pytest.mark.parametrize("text", ["$ false\n", "$ echo no\nyes\n"], ids=["a failure", "another answer"])
def test_a_page_that_is_wrong_is_found(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```console\n{text}```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md:2"):
        run(page)
