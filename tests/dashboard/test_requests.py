"""What is let in, what is refused, and how the command ends."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from typer.testing import CliRunner

from dashboard.conftest import COMMAND, Dashboard, Show, Start, environment
from dashboard.stores import add_run, measured, store_of
from planish.cc.object_cache import open_cache
from planish.cli.commands import app
from planish.core.installation import install_command
from planish.store import open_store


def refused(*words: object) -> tuple[int, str]:
    """Return the exit code of a dashboard that does not begin, and its one line."""
    ended = CliRunner().invoke(app, ["dashboard", "--no-browser", *map(str, words)])
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    return ended.exit_code, ended.stderr


def test_other_names_of_this_machine_are_refused(shared: Dashboard) -> None:
    assert shared.get("/s/main")[0] == 200
    assert shared.get("/s/main", Host="localhost:9000")[0] == 200
    for name in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", ""):
        status, text = shared.get("/s/main", Host=name)
        assert (status, text.count("\n")) == (403, 1)
        assert shared.get("/static/dashboard.js", Host=name)[0] == 403


def test_hosts_and_clients_have_a_column_where_there_are_several(
    tmp_path: Path, shared: Dashboard, show: Show
) -> None:
    with open_store(tmp_path / "planish.db") as store:
        one = add_run(store, [measured(0, 1e-3), measured(1, 2e-3)])
        mixed = [replace(measured(i, 1e-3), host=f"oak{i}", client="ann" if i else "bob") for i in range(2)]
        several = add_run(store, mixed, searcher="genetic")
    page = show(tmp_path / "planish.db").removeprefix(shared.url)
    plain, shown = (shared.get(f"{page}/runs/{run_id}")[1] for run_id in (one, several))
    for text in ("<th>host</th>", "<th>client</th>", "<td>oak1</td>", "<td>ann</td>"):
        assert text not in plain
        assert text in shown


def test_another_site_opens_no_store(tmp_path: Path, shared: Dashboard) -> None:
    store_of(tmp_path / "planish.db")
    data = (tmp_path / "planish.db").read_bytes()
    for origin in ("http://evil.example", "null", ""):
        assert shared.get("/open?name=a.db", "POST", data, Origin=origin)[0] == 403
    assert shared.get("/open?name=a.db", "POST", data)[0] == 403
    assert '"page":' in shared.get("/open?name=a.db", "POST", data, Origin=shared.url)[1]


def test_other_machines_need_a_token(tmp_path: Path, dashboard: Start) -> None:
    store_of(tmp_path / "planish.db")
    started = dashboard(tmp_path / "planish.db", host="0.0.0.0")
    token = started.url.partition("?token=")[2]
    assert len(token) >= 32
    for path in ("/", "/s/main", "/s/main/events", "/static/htmx.js", "/s/main?token=guess"):
        status, text = started.get(path)
        assert (status, text) == (403, "Open the address that planish dashboard printed: it holds a token.\n")
    assert started.get(f"/s/main?sort=gain&token={token}")[0] == 303
    cookie = f"planish-{started.port}={token}"
    assert started.get("/s/main", Cookie=cookie)[0] == 200
    assert started.get("/s/main", Cookie=f"planish-{started.port}=guess")[0] == 403
    for url in started.urls:
        host = urlsplit(url).hostname
        assert host not in (None, "", "0.0.0.0")
        opener = build_opener(HTTPCookieProcessor(CookieJar()))
        with opener.open(url, timeout=240) as answer:  # the token of the address becomes a cookie
            assert answer.status == 200


def test_pages_run_no_script_of_others(tmp_path: Path, shared: Dashboard, show: Show) -> None:
    (run_id,) = store_of(tmp_path / "planish.db")
    page = show(tmp_path / "planish.db").removeprefix(shared.url)
    for path in (page, f"{page}/runs/{run_id}", "/builds", "/nothing"):
        _, text = shared.get(path)
        assert "<script>" not in text
        assert "style=" not in text


def test_what_is_not_there(shared: Dashboard) -> None:
    for path in (
        "/s/other",
        "/s/main/runs/ffffffff",
        "/static/..%2fapp.py",
        "/static/nothing.js",
        "/nothing",
    ):
        assert shared.get(path)[0] == 404
    for query in ("page=0", "page=-1", "page=999999999999", "sort=nothing", "level=%00", "text=%ff"):
        assert shared.get(f"/s/main?{query}")[0] == 200


def test_a_store_that_cannot_be_read(tmp_path: Path) -> None:
    code, line = refused("--store", tmp_path / "none.db")
    assert (code, "there is no store" in line) == (4, True)
    (tmp_path / "text.db").write_text("no store at all, but text")
    code, line = refused("--store", tmp_path / "text.db")
    assert (code, "is not an SQLite database" in line) == (4, True)
    store_of(tmp_path / "old.db")
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.execute("UPDATE planish_version SET version_num = '1'")
    code, line = refused("--store", tmp_path / "old.db")
    assert (code, "has the schema 1" in line) == (4, True)


def test_a_port_in_use_and_an_address_of_another_machine(tmp_path: Path) -> None:
    store_of(tmp_path / "planish.db")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code, line = refused("--store", tmp_path / "planish.db", "--port", port)
    assert (code, f"port {port} of 127.0.0.1 is in use" in line) == (2, True)
    assert refused("--store", tmp_path / "planish.db", "--host", "192.0.2.1")[0] == 2
    assert refused("--store", tmp_path / "planish.db", "--host", "no.such.host.invalid")[0] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_the_store_was_only_read(
    number: signal.Signals, tmp_path: Path, dashboard: Start
) -> None:
    (run_id,) = store_of(tmp_path / "planish.db")
    before = (tmp_path / "planish.db").read_bytes()
    started = dashboard(tmp_path / "planish.db")
    for path in ("/s/main", f"/s/main/runs/{run_id}"):
        assert started.get(path)[0] == 200
    with socket.create_connection(("127.0.0.1", started.port)) as listening:
        listening.sendall(b"GET /s/main/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert listening.recv(4)
        started.process.send_signal(number)
        _, err = started.process.communicate(timeout=300)
    assert (started.process.returncode, err) == (0, "")
    assert (tmp_path / "planish.db").read_bytes() == before


SLOW_CHART = """
import runpy, time
from planish.dashboard.run_page import RunView

def draw(view):
    print("drawing", flush=True)
    time.sleep(600)

RunView._search = draw
runpy.run_module("cli.lattices", run_name="__main__")
"""


def test_a_chart_that_is_being_drawn_does_not_delay_the_end(tmp_path: Path) -> None:
    (run,) = store_of(tmp_path / "planish.db")
    words = ["dashboard", "--store", str(tmp_path / "planish.db"), "--port", "0", "--no-browser"]
    command = [sys.executable, "-c", SLOW_CHART, *words]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = int(process.stdout.readline().rpartition(":")[2].strip("/\n"))
        try:
            with socket.create_connection(("127.0.0.1", port)) as client:
                head = f"GET /s/main/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
                client.sendall(head.encode())
                while process.stdout.readline() != "drawing\n":
                    pass
                process.send_signal(signal.SIGINT)
                assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("has_browser", [False, True], ids=["none", "one"])
def test_a_browser_is_opened_where_there_is_one(has_browser: bool, tmp_path: Path) -> None:
    store_of(tmp_path / "planish.db")
    opened, script = tmp_path / "opened", tmp_path / "browser"
    script.write_text(f"#!/bin/sh\necho $1 > {opened}.part && mv {opened}.part {opened}\n")
    script.chmod(0o755)
    windows = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    plain = {name: value for name, value in environment().items() if name not in windows}
    command = [*COMMAND, "dashboard", "--store", str(tmp_path / "planish.db"), "--port", "0"]
    with subprocess.Popen(
        command,
        env=plain | ({"BROWSER": str(script)} if has_browser else {}),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        shown = [process.stdout.readline() for _ in range(2 if has_browser else 3)]
        while has_browser and not opened.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    url = shown[0].split()[-1]
    if has_browser:
        assert opened.read_text().strip() == url
    else:
        assert shown[2] == "No browser was found: open the address in one.\n"


def test_what_planish_cc_compiled(tmp_path: Path, dashboard: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANISH_CACHE", str(tmp_path / "cache"))
    store_of(tmp_path / "planish.db")
    made = tmp_path / "build" / "a.o"
    made.parent.mkdir()
    made.write_bytes(b"")
    about = b'{"text": [1000, 900], "functions": [["main", 500, 400, ["mem2reg"]]]}'
    note = b"\0".join([os.fsencode(made), b"a.c", b"searched", b"1.5", about])
    open_cache().put("builds", "ab" * 20, note)
    status, text = dashboard(tmp_path / "planish.db").get("/builds")
    assert status == 200
    for shown in ("a.c", "1,000", "900", "-10.0 %", "main", "mem2reg"):
        assert shown in text


def test_the_libraries_may_be_missing() -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from planish.cli.script import main; main()"
    command = [sys.executable, "-c", code, "dashboard"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert ended.returncode == 5
    assert ended.stderr.count("\n") == 1
    assert install_command("serve") in ended.stderr
