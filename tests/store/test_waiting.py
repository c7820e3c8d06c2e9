"""A lost connection is waited for, and the wait is shown."""

from types import SimpleNamespace

import pytest

from planish.store import session
from planish.store.session import LostConnectionError, persist


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=clock.sleep))
    return clock


def server(clock: Clock, back: float) -> str:
    """Ask a server that is away for so many seconds."""
    begins = clock.now + back

    def ask(again: bool) -> str:
        del again
        if clock.now < begins:
            raise LostConnectionError("the server is away")
        return "here"

    return persist(ask)


def test_a_long_wait_is_shown_once_and_so_is_its_end(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    assert server(clock, 30) == "here"
    begin, end = caplog.messages
    assert begin.startswith("The store does not answer; waiting, at most 11")
    assert end == "The store answers again; it goes on"


def test_a_short_one_is_not_shown(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    assert server(clock, 0.3) == "here"
    assert caplog.messages == []


def test_who_stays_away_is_given_up(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    began = clock.now
    with pytest.raises(LostConnectionError):
        server(clock, 1e4)
    assert clock.now - began <= session.PATIENCE_S
    assert len(caplog.messages) == 1
