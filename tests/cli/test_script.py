"""Interrupts while a console script imports what it needs, by real processes that signal themselves there."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

INTERRUPTED = """
import importlib.abc, os, signal, sys
class Interrupts(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from planish.cli.script import {script}
sys.argv = ["planish", {word!r}]
{script}()
"""


def interrupted(module: str, script: str, word: str = "--version", shell: str = "") -> tuple[int, str, str]:
    """Run a script that is interrupted when it imports a module; give its exit code and what it says."""
    command = [sys.executable, "-c", INTERRUPTED.format(module=module, script=script, word=word)]
    wrapped = ["sh", "-c", f'{shell} exec "$@"', "sh", *command]
    done = subprocess.run(wrapped, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("module", "script", "word"),
    [
        ("planish.cc.command", "cc", "--version"),
        ("planish.cc.arguments", "cxx", "--version"),
        ("planish.cc.command", "main", "cc"),
    ],
)
def test_an_interrupted_import_ends_a_script_in_silence(module: str, script: str, word: str) -> None:
    assert interrupted(module, script, word) == (-signal.SIGINT, "", "")


def test_an_interrupt_is_reported_once_commands_are_imported() -> None:
    code, out, err = interrupted("planish.cli.commands", "main")
    assert (code, out) == (128 + signal.SIGINT, "")
    assert err.startswith("planish: error: interrupted")
    assert err.count("\n") == 1


def test_an_interrupt_that_is_ignored_stays_so() -> None:
    code, out, err = interrupted("planish.cli.commands", "main", shell="trap '' INT;")
    assert (code, err) == (0, "")
    assert out.startswith("planish ")
