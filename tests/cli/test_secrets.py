"""A password in a store's location is never printed, whatever is wrong with the location."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from amounts import examples
from cli.conftest import PROGRAM
from planish.cli.commands import app
from planish.core.errors import redact
from planish.measure.machine_lock import holder_of, opened_lock

SECRET = "Xyzzy7Plugh"
PASSWORDS = (SECRET, f"@{SECRET}", f"{SECRET}:/@", f"/{SECRET}?", f"#{SECRET}%", f"a:{SECRET}", f"{SECRET}&x")
URLS = (
    "postgresql://me:{}@forge:1/planish",
    "postgresql+psycopg://me:{}@[::1]/planish?sslmode=disable",
    "postgresql://forge/planish?password={}",
    "postgresql://me@forge:1/planish?user=me&password={}&sslmode=require",
    "postgresql://forge/planish?host=/run/x&sslpassword={}&passfile={}",
    "postgres://:{}@/planish?host=/run/x",
    "sqlite://me:{}@/planish.db",
    "sqlite:////tmp/planish.db?password={}",
    "mysql://me:{}@forge/planish",
    "host=forge user=me password={} dbname=planish",
    "jdbc:postgresql://forge/planish?user=me&password={}",
)


class _Talkative(psycopg.OperationalError):
    """An error of the driver that repeats all that it was told."""


def _refuse(*words: Any, **options: Any) -> None:
    raise _Talkative(f"connection failed: {words} {options}\nand again: {options}")


def _location(url: str, password: str, escaped: bool) -> str:
    return url.replace("{}", quote(password, safe="") if escaped else password)


@st.composite
def _mistyped(draw: st.DrawFn) -> str:
    """Draw a location with a password; at most one character beside it is changed or left out."""
    url = draw(st.sampled_from(URLS))
    before, _, after = url.partition("{}")
    if draw(st.booleans()):
        before = _changed(draw, before)
    else:
        after = _changed(draw, after) if after else after
    return _location(f"{before}{{}}{after}", draw(st.sampled_from(PASSWORDS)), draw(st.booleans()))


def _changed(draw: st.DrawFn, text: str) -> str:
    position = draw(st.integers(0, len(text)))
    typed = draw(st.sampled_from(["", " ", "/", ":", "@", "?", "&", ";", "=", "x", "1"]))
    return text[:position] + typed + text[position + 1 :]


READS = (
    ("runs", "--store", "{}"),
    ("--debug", "runs", "--store", "{}"),
    ("--debug", "tune", PROGRAM, "--trials", "1", "--store={}"),
    ("--debug", "runs", "merge", "{}"),
)
"""Commands that read a location."""
MISTAKES = (("show", "{}"), ("tune", "{}"), ("{}",), ("tune", PROGRAM, "--trials", "{}"), ("tune", "--{}"))
"""Commands that expect something else there."""


def _failed(words: tuple[str, ...], location: str) -> str:
    """Run a command that fails, and return what it printed."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.chdir(folder)
        patch.setattr(psycopg, "connect", _refuse)
        done = CliRunner().invoke(app, [word.replace("{}", location) for word in words])
        assert not list(Path(folder).iterdir())
    assert done.exit_code
    return done.stdout + done.stderr


@pytest.mark.usefixtures("lattice", "place")
@settings(max_examples=examples(60), deadline=None)
@given(location=_mistyped(), words=st.sampled_from(READS))
@example(location=f"postgresql://me.{SECRET}@forge/planish", words=READS[1])
@example(location=f"postgresql://me:{SECRET}forge/planish", words=READS[1])
@example(location=f"postgresql:/me:{SECRET}@forge/planish", words=READS[1])
@example(location=f"host=forge assword={SECRET}", words=READS[1])
@example(location=f"sqlite:///e:{SECRET}@/planish.db", words=READS[2])
def test_a_password_is_not_printed_however_the_location_is_mistyped(
    location: str, words: tuple[str, ...]
) -> None:
    assert SECRET not in _failed(words, location)


@pytest.mark.usefixtures("lattice", "place")
@pytest.mark.parametrize("url", URLS)
def test_a_password_is_not_printed_where_no_location_is_expected(url: str) -> None:
    for password in PASSWORDS[:3]:
        for words in MISTAKES:
            assert SECRET not in _failed(words, _location(url, password, escaped=False))


@pytest.mark.usefixtures("lattice")
def test_a_mistyped_location_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for location in (f"postgresql:/me:{SECRET}@forge/x", f"me:{SECRET}@forge/x", f"password={SECRET}"):
        assert CliRunner().invoke(app, ["tune", PROGRAM, "--trials", "1", "--store", location]).exit_code == 4
    assert not list(tmp_path.iterdir())


TEXTS: Mapping[str, str] = {
    "postgresql://forge:5432/planish": "postgresql://forge:5432/planish",
    "the store postgresql://me@forge/x fails: no": "the store postgresql://me@forge/x fails: no",
    "see https://example.org/a: it tells": "see https://example.org/a: it tells",
    "/home/me/a:b/c.db": "/home/me/a:b/c.db",
    "tune --store postgresql://me:pw@forge/x --seed 1": "tune --store postgresql://me:***@forge/x --seed 1",
    "'postgresql://me:p w@forge/x'": "'postgresql://me:***@forge/x'",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_keeps_all_but_passwords(text: str) -> None:
    assert redact(text) == TEXTS[text]


def test_the_command_line_of_another_process_is_shown_without_its_password(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    os.close(opened_lock(lock))
    code = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, 2); print(flush=True); input()"
    words = [sys.executable, "-c", code, str(lock), f"--store=postgresql://me:{SECRET}@forge/planish"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        holder = holder_of(lock)
        process.communicate("\n")
    assert holder is not None
    assert holder.pid == process.pid
    assert SECRET not in holder.command
