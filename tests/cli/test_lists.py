"""What is offered: commands, levels, searchers, targets."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import planish as package
from cli.conftest import Planish
from planish.core import processor, registry
from planish.core.installation import install_command

COMMANDS = [
    *("tune", "compile", "inspect", "batch", "measure", "show", "report", "dashboard", "serve", "validate"),
    *("export", "compare"),
    *("passes", "bench-passes"),
    *("levels", "searchers", "targets"),
]
DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_version(planish: Planish) -> None:
    assert planish("--version").out == f"planish {package.__version__}\n"


def test_without_a_command_there_is_help(planish: Planish) -> None:
    said = planish()
    assert (said.code, said.err) == (0, "")
    assert said.out == planish("--help").out
    assert [line.split()[0] for line in said.out.partition("Commands:\n")[2].splitlines()] == [
        *COMMANDS,
        *("cc", "c++", "size"),
        "runs",
        "corpus",
        "learn",
        "models",
        "policy",
    ]


def test_the_reference_page_is_made_from_the_commands() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import commands; print(commands.page(), end='')"],
        env=os.environ | {"PYTHONPATH": str(DOCUMENT.parents[1])}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert made == DOCUMENT.read_text(encoding="utf-8"), "run docs/commands.py"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(planish: Planish, command: str) -> None:
    _, _, section = DOCUMENT.read_text().partition(f"## planish {command}\n")
    section = section.partition("\n## ")[0]
    words = {word.rstrip(",") for word in planish(command, "--help").out.split()}
    options = {word for word in words if word.startswith("--")} - {"--help"}
    assert options
    assert {option for option in options if not re.search(rf"{option}\b", section)} == set()


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from planish.cli.commands import app; app(['--help'])"
    show = f"try:\n    {code.replace('; ', chr(10) + '    ')}\nfinally:\n    print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert "Usage: planish" in done.stdout
    heavy = {"numpy", "sqlalchemy", "llvmlite", "plotly", "rich", "planish.store", "planish.levels.loops"}
    assert not heavy & set(done.stdout.splitlines()[-1].split())


@pytest.mark.usefixtures("lattice")
def test_levels(planish: Planish) -> None:
    assert "lattice   1         yes     time_s, gflops   knobs    random, genetic" in planish("levels").out
    (level,) = json.loads(planish("levels", "--format", "json").out)["levels"]
    assert level["name"] == "lattice"
    assert (level["spaces"], level["searchers"]) == (["knobs"], ["random", "genetic"])
    assert level["objectives"][1] == {
        "name": "gflops",
        "unit": "GFLOPS",
        "direction": "up",
        "exact": False,
    }


def test_a_level_without_its_libraries_says_how_to_install_them(
    planish: Planish, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("planish.levels.graph.installed.version", version)
    needs = f"needs onnx, which is not installed. Install it with: {install_command('graph')}"
    out = planish("levels").out
    assert re.search(r"^ *graph +\d+ +no ", out, re.MULTILINE)
    assert re.search(r"^ *loops +\d+ +yes ", out, re.MULTILINE)
    assert f"\ngraph: the level 'graph' {needs}\n" in out
    listed = json.loads(planish("levels", "--format", "json").out)["levels"]
    missing = {level["name"]: level["missing"] for level in listed}
    assert missing["graph"].endswith(needs)
    assert missing["loops"] == ""


def test_searchers_with_needs_and_options(planish: Planish) -> None:
    said = planish("searchers")
    assert "beam-dfs\n  Beam search, depth first" in said.out
    assert "  needs extend, steps\n  --set width=4  how many" in said.out
    listed = json.loads(planish("searchers", "--format", "json").out)["searchers"]
    assert [searcher["name"] for searcher in listed] == registry.names("planish.searchers")
    genetic = next(searcher for searcher in listed if searcher["name"] == "genetic")
    assert genetic["needs"] == ["crossover", "mutate", "sample"]
    assert genetic["options"][0]["name"] == "population"


@pytest.mark.usefixtures("lattice")
def test_targets_of_a_level_that_has_nothing_particular_to_tell(planish: Planish) -> None:
    assert planish("targets").out == f"lattice\n  processor  {processor()}\n"
    listed = json.loads(planish("targets", "--format", "json").out)["targets"]
    assert listed == {"lattice": {"processor": processor()}}


def test_targets_of_loops(planish: Planish) -> None:
    machine = json.loads(planish("targets", "--format", "json").out)["targets"]["loops"]
    assert machine["processor"]
    assert "portable" in machine["back ends"]
