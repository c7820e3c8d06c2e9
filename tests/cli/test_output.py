"""Text of workers, programs and stored runs on the terminal."""

import sqlite3
from collections.abc import Callable

import pytest

from cli.conftest import Kept, Planish
from planish.cli.output import document, facts, guarded, remark, say, table
from planish.core import PlanishError
from store.resealing import reseal

STEERING = "\x1b]0;title\x07a\x1b[2J\x08\x9b31mb\x7f"


def in_table(text: str) -> None:
    table([text], [[text]])


def as_fact(text: str) -> None:
    facts({text: text})


def as_document(text: str) -> None:
    document({text: text})


def fail(text: str) -> None:
    def action() -> None:
        raise PlanishError(text)

    assert guarded(action, debug=False) != 0


@pytest.mark.parametrize(
    "write",
    [
        say,
        remark,
        fail,
        in_table,
        as_fact,
        as_document,
    ],
    ids=["text", "remark", "error", "table", "facts", "document"],
)
def test_no_text_steers_the_terminal(
    write: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"{STEERING}\tGröße")
    said = "".join(capsys.readouterr())
    assert not [c for c in said if not (c.isprintable() or c in "\n\t")]
    assert "title" in said


def test_a_host_name_does_not_steer_the_terminal(kept: Kept, planish: Planish) -> None:
    with sqlite3.connect(kept.place) as connection:
        connection.execute("UPDATE runs SET host = ?", (STEERING,))
    connection.close()
    reseal(kept.place)
    said = planish("show", kept.run)
    assert "title" in said.out
    assert not {"\x1b", "\x07", "\x9b", "\x08"} & set(said.out)
