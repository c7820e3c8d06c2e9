"""The dashboard as a process, and a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from dashboard.stores import store_of

TESTS = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "cli.lattices"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@dataclass
class Dashboard:
    """A running dashboard.

    Args:
        process: the command.
        urls: as they were printed, without the last slash.
    """

    process: subprocess.Popen[str]
    urls: list[str]

    @property
    def url(self) -> str:
        return self.urls[0]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].partition("/")[0])

    def get(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, str]:
        """Ask for a page; return the status and the text."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=240)
        try:
            connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONWARNINGS": "error"}


Start = Callable[..., Dashboard]
Show = Callable[[Path], str]


def _start(started: list[subprocess.Popen[str]], store: object, host: str = "127.0.0.1") -> Dashboard:
    words = ["dashboard", "--store", str(store), "--port", "0", "--host", host, "--no-browser"]
    process = subprocess.Popen(
        [*COMMAND, *words], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    started.append(process)
    assert process.stdout
    said = ""
    while (line := process.stdout.readline()) and not line.startswith("Ctrl-C"):
        said += line
    found = re.findall(r"http://\S+", said)
    assert found, (said, process.stderr and process.stderr.read())
    return Dashboard(process, [url.rstrip("/") for url in found])


def _kill(started: list[subprocess.Popen[str]]) -> None:
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def dashboard() -> Iterator[Start]:
    """Start dashboards; they are killed at the end."""
    started: list[subprocess.Popen[str]] = []
    yield partial(_start, started)
    _kill(started)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """Start a dashboard of a store with one run, which no test changes.

    One that is started for a test has to load the code of all charts first.
    """
    started: list[subprocess.Popen[str]] = []
    path = tmp_path_factory.mktemp("dashboard") / "planish.db"
    store_of(path)
    yield _start(started, path)
    _kill(started)


@pytest.fixture
def show(shared: Dashboard) -> Show:
    """Open a store that does not change in the dashboard of all tests; return the address of its runs."""

    def opened(store: Path) -> str:
        _, answer = shared.get("/open?name=a.db", "POST", store.read_bytes(), Origin=shared.url)
        return shared.url + json.loads(answer)["page"]

    return opened


@dataclass(frozen=True)
class Live:
    """A dashboard and its store, to which tests add runs.

    Args:
        url: the dashboard's.
        path: the store's.
    """

    url: str
    path: Path

    def run_url(self, run_id: str) -> str:
        return f"{self.url}/s/main/runs/{run_id}"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Start a dashboard of a store to which the tests of a module add runs of their own."""
    started: list[subprocess.Popen[str]] = []
    path = tmp_path_factory.mktemp("live") / "planish.db"
    store_of(path)
    yield Live(_start(started, path).url, path)
    _kill(started)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Start a browser; its loop of events, while it runs, keeps `asyncio.run` from tests of other modules."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
    ]
    expect.set_options(timeout=120_000)  # the dashboard gives way to whatever else this machine does
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@dataclass
class Seen:
    """What a page did that it must not do."""

    problems: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])


def _is_problem(message: ConsoleMessage) -> bool:
    # To htmx a request that a newer one replaces is an error, too.
    replaced = message.text.startswith(("htmx:afterRequest", "htmx:sendAbort"))
    return message.type == "error" and not replaced


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open a page; errors in its console, and requests that leave the dashboard, fail the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    opened, seen = context.new_page(), Seen()
    opened.set_default_timeout(120_000)
    opened.on("console", lambda each: seen.problems.append(each.text) if _is_problem(each) else None)
    opened.on("pageerror", lambda each: seen.problems.append(str(each)))
    opened.on("request", lambda each: seen.requests.append(each.url))
    yield opened
    context.close()
    outside = [url for url in seen.requests if not url.startswith(("http://127.0.0.1:", "data:"))]
    assert not outside
    assert not seen.problems
