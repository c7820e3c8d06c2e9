"""A real bash asks for what may come next, as it does when the user presses TAB."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Kept

ASK = r"""
eval "$("$PLANISH" --show-completion bash)"
COMP_WORDS=($LINE) COMP_CWORD=$AT
_planish_completion "$PLANISH"
printf '%s\n' "${COMPREPLY[@]}"
"""


def completed(line: str, at: int, tmp_path: Path) -> list[str]:
    command = tmp_path / "planish"
    command.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from planish.cli.script import main; main()" "$@"\n'
    )
    command.chmod(0o755)
    environment = {**os.environ, "PLANISH": str(command), "LINE": line, "AT": str(at)}
    done = subprocess.run(
        ["bash", "-c", ASK], env=environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "at", "expected"),
    [
        ("planish va", 1, "validate"),
        ("planish tune x --searcher gene", 4, "genetic"),
        ("planish tune x --level ll", 4, "llvm"),
        ("planish tune x --seco", 3, "--seconds"),
    ],
)
def test_the_shell_completes_commands_options_and_names(
    tmp_path: Path, line: str, at: int, expected: str
) -> None:
    assert completed(line, at, tmp_path) == [expected]


def test_the_shell_completes_runs(tmp_path: Path, kept: Kept) -> None:
    assert completed("planish report " + kept.run[:2], 2, tmp_path) == [kept.run]


def test_a_store_that_is_not_there_offers_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANISH_STORE", str(tmp_path / "absent.db"))
    assert completed("planish show 1", 2, tmp_path) == []
