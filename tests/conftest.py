"""Options and fixtures of the whole test suite."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import settings

from amounts import examples
from golden_text import Golden
from planish.core import STOPPING
from planish.sandbox import workers
from planish.tuning import budget
from prepared_workers import PreparedWorkers
from quick_runs import shorten_comparisons, shorten_timing

pytest_plugins = ["ray_fleet"]  # fixtures of clusters

_BEGUN = time.monotonic()
_SLOW = pytest.StashKey[bool]()
_SPAWNED = vars(workers)["_spawned"]

# What starts in the background ignores Ctrl-C (under nohup, hang-ups), and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:

    def go_on(number: int, frame: FrameType | None) -> None:
        """Ignore a signal; unlike `SIG_IGN`, a started process does not inherit this."""

    signal.signal(signal.SIGHUP, go_on)

# How long an example takes is no property of the code. Each run draws other examples.
settings.register_profile("planish", deadline=None, max_examples=examples(100))
settings.load_profile("planish")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )
    parser.addoption(
        "--minutes",
        type=float,
        help="run tests marked slow last, and skip those that would begin later than this",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--minutes") is not None:
        cases = Counter[str]()
        for item in items:
            name, mark = item.nodeid.partition("[")[0], item.get_closest_marker("slow")
            item.stash[_SLOW] = mark is not None and cases[name] >= mark.kwargs.get("after", 0)
            cases[name] += 1
        items.sort(key=lambda item: item.stash[_SLOW])


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("--minutes")
    if minutes is not None and item.stash[_SLOW] and time.monotonic() > _BEGUN + 60 * minutes:
        pytest.skip(f"slow, and {minutes:g} minutes have passed (--minutes)")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare texts with the files in tests/golden: `golden.check("name.txt", text)`."""
    return Golden(update=bool(request.config.getoption("--update-golden")))


@pytest.fixture(autouse=True)
def own_signals() -> Generator[None]:
    """Put signals' handlers back: a command that is interrupted leaves them ignored, as its process ends."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Keep data and caches of the tests apart; no test waits for timed runs of other processes."""
    lock = tmp_path_factory.mktemp("lock") / "lock"
    lock.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PLANISH_LOCK", str(lock))
        yield


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have temporary files made in a folder of the test, which is returned."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a process is started."""

    def refused(*_: object, **__: object) -> None:
        pytest.fail("a process is started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refused)
    monkeypatch.setattr(os, "fork", refused)
    monkeypatch.setattr(workers, "_spawned", refused)


@pytest.fixture(scope="session", autouse=True)
def prepared_workers() -> Generator[PreparedWorkers]:
    """Have workers start with all libraries loaded."""
    prepared = PreparedWorkers()
    with pytest.MonkeyPatch.context() as patch:
        if sys.platform == "linux":
            patch.setattr(workers, "_spawned", prepared.start)
        yield prepared
    prepared.close()


@pytest.fixture
def new_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start workers in new interpreters, as those of users are."""
    monkeypatch.setattr(workers, "_spawned", _SPAWNED)


@pytest.fixture(scope="session", autouse=True)
def short_and_complete_comparisons() -> Generator[None]:
    """Have runs time and compare shortly, without a limit of time; tests of these limits set them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "LEAST_S", 600.0)
        shorten_comparisons(patch.setattr)
        shorten_timing(patch.setattr)
        yield
