"""Tools over HTTP: answers, refusals, disconnects, restarts and the end."""

import json
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli import lattices
from planish.cli.commands import app
from planish.store import open_store
from serve.conftest import TOKENS, Service, serving

BEARER = f"Bearer {TOKENS['agent']}"


def steps(*position: int) -> list[Any]:
    return [["Set", {"knob": knob, "value": value}] for knob, value in enumerate(position) if value]


def test_a_client_reads_what_the_task_is(service: Service) -> None:
    found = service.call("describe")
    assert found["level"] == "lattice"
    assert found["program"].startswith("lattice 20x20x20")
    assert found["objectives"] == [{"name": "time_s", "unit": "s", "direction": "down", "exact": False}]
    assert found["baseline"]["steps"] == steps(1)
    assert found["baseline"]["values"]["time_s"] > 0
    assert found["steps"]["Set"]["required"] == ["knob", "value"]
    assert service.call("legal_steps")["next_steps"] == steps(1)[:1] + [
        ["Set", {"knob": knob, "value": 1}] for knob in (1, 2)
    ]


def test_a_candidate_is_measured_and_is_a_trial_of_a_run(service: Service) -> None:
    found = service.call("evaluate", steps=steps(3, 2))
    assert (found["outcome"], found["conclusive"], found["verdict"]) == ("measured", False, "undecided")
    low, high = found["intervals"]["time_s"]
    assert low <= found["values"]["time_s"] <= high
    assert found["gain"] > 0
    assert {"Set"} == {name for name, _ in found["next_steps"]}
    assert found["complete"]
    again = service.call("evaluate", "other", steps=steps(3, 2))
    assert (again["trial"], again["cached"]) == (found["trial"], True)
    with open_store(service.store, read_only=True) as store:
        (run,) = store.runs()
        assert (run.searcher, run.status, run.trials) == ("clients", "running", found["trial"] + 1)
    status, page = service.send("GET", f"/s/main/runs/{run.id}", Host="localhost")
    assert (status, "clients" in page) == (200, True)


def test_a_failure_is_an_answer(service: Service) -> None:
    found = service.call("evaluate", steps=steps(0, 0, 19))
    assert found["outcome"] == "failed"
    assert found["failure"]["stage"] == "build"
    assert (found["verdict"], found["conclusive"]) == ("failed", True)
    assert service.call("evaluate", steps=steps(0, 99))["outcome"] == "failed"


def test_a_history_and_the_best(service: Service) -> None:
    for value in (5, 6, 7):
        service.call("evaluate", steps=steps(value))
    found = service.call("history", limit=2)
    assert [each["steps"] for each in found["trials"]] == [steps(6), steps(7)]
    newest = found["trials"][-1]["trial"]
    assert service.call("history", after=newest)["trials"] == []
    assert [each["trial"] for each in service.call("history", after=newest - 1)["trials"]] == [newest]
    best = service.call("best")["best"]
    assert best["values"]["time_s"] == min(
        each["values"]["time_s"] for each in service.call("history", limit=100)["trials"] if "values" in each
    )


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        ('{"steps": 3}', 400, "bad_request", "steps is a list"),
        ('{"steps": [["Set"]]}', 400, "bad_request", "a step is"),
        ('{"steps": [["Set", {"knob": 0, "value": 1}, 2]]}', 400, "bad_request", "a step is"),
        ('{"steps": [["Sett", {}]]}', 422, "unknown_step", "Did you mean 'Set'?"),
        ('{"steps": [["Set", {"knob": 0, "size": 1}]]}', 422, "unknown_step", "'Set' does not take"),
        ('{"steps": [], "baseline": 1}', 400, "bad_request", "no argument 'baseline'"),
        ("[]", 400, "bad_request", "JSON object"),
        ('{"steps"', 400, "bad_request", "not valid JSON"),
        ('{"steps": [["Set", {"knob": 0, "value": NaN}]]}', 400, "bad_request", "NaN is not a number"),
        ("[" * 100_000, 400, "bad_request", ""),
        (json.dumps({"steps": [["Set", {"knob": 0, "value": 1}]] * 501}), 400, "bad_request", "501 steps"),
        ("x" * 300_000, 413, "too_large", "262,144 bytes"),
        (b"\xff\xfe", 400, "bad_request", "not valid JSON"),
        ('{"steps": [["\\ud800", {}]]}', 400, "bad_request", "not valid JSON"),
        ("{}", 400, "bad_request", "needs the argument 'steps', or 'text'"),
        ('{"steps": [], "text": ""}', 400, "bad_request", "needs the argument 'steps', or 'text'"),
        ('{"text": ""}', 422, "unknown_step", "not read from text"),
        ('{"text": 3}', 400, "bad_request", "text is a text"),
    ],
)
def test_what_is_no_candidate_is_refused(
    service: Service, body: str | bytes, status: int, code: str, says: str
) -> None:
    got, answer = service.send("POST", "/api/evaluate", body, Authorization=BEARER)
    assert (got, answer["error"]["code"]) == (status, code)
    assert says in answer["error"]["message"]
    assert "\n" not in answer["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/api/best", {}, 401),
        ("POST", "/api/best", {"Authorization": "Bearer guess"}, 401),
        ("POST", "/api/best", {"Authorization": f"Basic {TOKENS['agent']}"}, 401),
        ("POST", f"/api/best?token={TOKENS['agent']}", {}, 400),
        ("POST", "/api/best", {"Authorization": BEARER, "Origin": "http://evil.example"}, 403),
        ("POST", "/api/nothing", {"Authorization": BEARER}, 404),
        ("POST", "/api/best/more", {"Authorization": BEARER}, 404),
        ("GET", "/api/best", {"Authorization": BEARER}, 405),
    ],
)
def test_who_is_refused(
    service: Service, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    got, answer = service.send(method, path, b"", **headers)
    assert (got, set(answer)) == (status, {"error"})
    assert set(answer["error"]) == {"code", "message"}


def test_the_interface_is_described(service: Service) -> None:
    status, found = service.send("GET", "/api/openapi.json")
    assert (status, found["openapi"]) == (200, "3.1.0")
    assert set(found["paths"]) == {
        f"/api/{tool}" for tool in ("describe", "legal_steps", "evaluate", "compare", "history", "best")
    }


def test_a_client_that_leaves_loses_nothing(service: Service) -> None:
    body = json.dumps({"steps": steps(11, 3)})
    with socket.create_connection(("127.0.0.1", service.port)) as leaving:
        head = f"POST /api/evaluate HTTP/1.1\r\nHost: localhost\r\nAuthorization: {BEARER}\r\n"
        leaving.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    found = service.call("evaluate", "other", steps=steps(11, 3))
    assert found["outcome"] == "measured"
    with open_store(service.store, read_only=True) as store:
        (run,) = store.runs()
        hashes = [trial.candidate.text for trial in store.each_trial(run.id, _steps())]
    assert len(hashes) == len(set(hashes))


def _steps() -> Any:
    from planish.testing.synthetic import Set

    return {"Set": Set}


def test_many_clients_at_once(service: Service) -> None:
    wanted = [steps(a, b) for a in (13, 14) for b in range(1, 6)]
    with ThreadPoolExecutor(16) as pool:
        asked = [
            pool.submit(service.call, "evaluate", client, steps=each) for each in wanted for client in TOKENS
        ]
        answers = [each.result() for each in asked]
    assert {each["outcome"] for each in answers} == {"measured"}
    assert len({each["trial"] for each in answers}) == len(wanted)


@pytest.mark.slow
def test_a_comparison_settles(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        service.call("evaluate", steps=steps(9, 10, 10))
        found = service.call("compare")
        assert (found["conclusive"], found["verdict"]) == (True, "faster")
        winner = found["finalists"][0]
        assert (winner["steps"], winner["conclusive"]) == (steps(9, 10, 10), True)
        low, high = winner["interval"]
        assert 1 < low <= winner["gain"] <= high
        assert service.call("compare") == found  # nothing new: nothing is measured again
        again = service.call("evaluate", steps=steps(9, 10, 10))
        assert (again["conclusive"], again["verdict"]) == (True, "faster")
        assert service.call("evaluate", steps=steps(1, 1))["conclusive"] is False
        assert service.call("best")["comparison"] == found


def test_a_restarted_service_measures_nothing_twice_and_keeps_quotas(tmp_path: Path) -> None:
    with serving(tmp_path, "--quota", "2") as service:
        before = service.call("evaluate", steps=steps(3))
        run = service.call("describe")["run"]
        service.process.send_signal(signal.SIGKILL)
        service.process.wait()
    with serving(tmp_path, "--quota", "2") as service:
        assert service.call("describe")["run"] == run
        assert service.call("describe")["used"]["evaluations"] == 1
        assert service.call("describe", "other")["used"]["evaluations"] == 0
        after = service.call("evaluate", steps=steps(3))  # what is known costs nothing
        assert (after["trial"], after["cached"]) == (before["trial"], True)
        assert service.call("evaluate", steps=steps(4))["cached"] is False
        status, answer = service.post("evaluate", steps=steps(5))
        assert (status, answer["error"]["code"]) == (429, "quota")
        assert [each["client"] for each in service.call("history", limit=2)["trials"]] == ["agent"] * 2
        service.call("evaluate", "other", steps=steps(5))


def test_a_signal_answers_what_waits(tmp_path: Path) -> None:
    with serving(tmp_path, "--option", "pause=0.3") as service, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(service.post, "evaluate", steps=steps(value)) for value in (3, 4)]
        while service.call("describe")["used"]["evaluations"] < 2:
            pass
        service.process.terminate()
        _, err = service.process.communicate(timeout=240)
        assert (service.process.returncode, err) == (0, "")
        assert {each.result()[0] for each in waiting} <= {200, 503}
    with open_store(tmp_path / "planish.db", read_only=True) as store:
        (run,) = store.runs()
        assert run.status == "finished"


@pytest.mark.slow
def test_a_signal_ends_a_comparison(tmp_path: Path) -> None:
    with serving(tmp_path, "--option", "pause=0.3") as service, ThreadPoolExecutor(1) as pool:
        comparing = pool.submit(service.post, "compare")
        while service.call("describe")["used"]["comparisons"] < 1:
            pass
        service.process.terminate()
        _, err = service.process.communicate(timeout=240)
        assert (service.process.returncode, err) == (0, "")
        assert comparing.result()[0] in (200, 503)


def test_a_port_in_use_a_wrong_file_of_tokens_and_a_wrong_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lattices.install(monkeypatch.setattr)

    def refused(*words: object) -> tuple[int, str]:
        store = str(tmp_path / "planish.db")
        ended = CliRunner().invoke(app, ["serve", "lattice 6x4x4", *map(str, words), "--store", store])
        assert ended.stderr.count("\n") == 1, ended.stderr
        return ended.exit_code, ended.stderr

    tokens = tmp_path / "tokens.txt"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code, line = refused("--port", port, "--tokens", tokens)
    assert (code, f"port {port} of 127.0.0.1 is in use" in line) == (2, True)
    assert re.fullmatch(r"agent \S{32}\n", tokens.read_text())
    assert tokens.stat().st_mode & 0o77 == 0
    tokens.write_text("agent short\n")
    code, line = refused("--port", 0, "--tokens", tokens)
    assert (code, "line 1 of" in line) == (2, True)
    tokens.unlink()
    code, line = refused("--port", 0, "--tokens", tokens, "--option", "fail=yes")
    assert (code, "the baseline" in line) == (2, True)
