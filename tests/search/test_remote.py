"""The searcher that asks an HTTP endpoint: what it sends, what it takes, and what it refuses."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from planish.core import Failed, Measured, PlanishError, Searcher, Trial
from planish.search import make_searcher
from planish.testing.synthetic import Lattice, Set

Endpoint = Callable[[dict[str, Any]], Any]


@contextmanager
def answering(endpoint: Endpoint, status: int = 200) -> Generator[tuple[str, list[dict[str, Any]]]]:
    """Serve an endpoint; yield its address, and what it is asked."""
    asked = list[dict[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body | {"authorization": self.headers["Authorization"]})
            answer = endpoint(body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *args: Any, **options: Any) -> None:
            del args, options

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/ask", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def remote(url: str, batch: int = 8) -> Searcher:
    space = Lattice()
    return make_searcher("remote", space, (space.objective,), 7, {"url": url, "batch": batch})


def searched(searcher: Searcher, rounds: int = 100) -> list[Trial]:
    """Search on the lattice; return the trials."""
    space, found = Lattice(), list[Trial]()
    while rounds and (asked := searcher.ask(100)):
        trials = [Trial(each, space.outcome(each)) for each in asked]
        searcher.tell(trials)
        found += trials
        rounds -= 1
    return found


def step(knob: int, value: int) -> list[Any]:
    return ["Set", {"knob": knob, "value": value}]


def climb(body: dict[str, Any]) -> dict[str, Any]:
    """Go on from the best of the results, one step further each way; stop where none is better."""
    measured = [each for each in body["results"] if "values" in each]
    here = min(measured, key=lambda each: each["values"]["time_s"])["steps"] if measured else body["start"]
    if body["round"] == 6:
        return {"candidates": []}
    values = {each[1]["knob"]: each[1]["value"] for each in here}
    moved = [{**values, knob: values.get(knob, 0) + 1} for knob in range(3)]
    return {"candidates": [[step(knob, each[knob]) for knob in sorted(each)] for each in moved]}


def test_an_endpoint_searches() -> None:
    with answering(climb) as (url, asked):
        searcher = remote(url)
        assert not asked  # nothing is sent before the search begins
        trials = searched(searcher)
    assert [each["round"] for each in asked] == list(range(7))
    assert asked[0]["objectives"] == [{"name": "time_s", "unit": "s", "direction": "down"}]
    assert asked[0]["next_steps"] == [step(knob, 1) for knob in range(3)]
    assert {"steps", "values"} == set(asked[1]["results"][0])
    measured = [each.outcome.values["time_s"] for each in trials if isinstance(each.outcome, Measured)]
    assert min(measured) < 0.9 * measured[0]
    assert searcher.notes == (f"the endpoint {url} proposed nothing more",)


def test_what_is_not_legal_is_not_measured_and_is_explained() -> None:
    def endpoint(body: dict[str, Any]) -> dict[str, Any]:
        illegal = [[step(0, 5)], [["Move", {}]], [["Set", {"size": 1}]], "text", [step(0, 1), step(0, 99)]]
        return {"candidates": [[step(0, 1)], *illegal] if body["round"] == 0 else []}

    with answering(endpoint) as (url, asked):
        trials = searched(remote(url))
    assert [each.candidate.steps for each in trials] == [(Set(0, 1),)]
    rejected = asked[1]["rejected"]
    assert len(rejected) == 5
    assert "is not legal there" in rejected[0]["why"]
    assert "unknown step 'Move'" in rejected[1]["why"]


def test_failures_are_told() -> None:
    def endpoint(body: dict[str, Any]) -> dict[str, Any]:
        return {"candidates": [[step(2, 1)]] if body["round"] == 0 else []}

    with answering(endpoint) as (url, asked):
        searcher = remote(url)
        (candidate,) = searcher.ask(1)
        searcher.tell([Trial(candidate, Failed("build", "refused", "no vice"))])
        assert searcher.ask(1) == []
    assert asked[1]["results"] == [{"steps": [step(2, 1)], "failed": "build: refused: no vice"}]


def test_an_endpoint_that_proposes_nothing_legal_is_given_up() -> None:
    with answering(lambda _: {"candidates": [[step(0, 77)]]}) as (url, asked):
        searcher = remote(url)
        assert searched(searcher) == []
    assert len(asked) == 5
    assert searcher.notes == (f"the endpoint {url} proposed no legal candidate in 5 answers",)


@pytest.mark.parametrize(
    "answer", [b"no JSON", b"[]", b'{"candidates": 3}', b"[" * 100_000, b"x" * (5 << 20)]
)
def test_an_answer_that_is_none(answer: bytes) -> None:
    with (
        answering(lambda _: answer) as (url, _),
        pytest.raises(PlanishError, match="has no candidates") as error,
    ):
        remote(url).ask(1)
    assert len(str(error.value)) < 400


def test_an_endpoint_that_does_not_answer() -> None:
    with answering(lambda _: {}, status=500) as (url, _), pytest.raises(PlanishError, match="500"):
        remote(url).ask(1)
    with pytest.raises(PlanishError, match="does not answer"):
        remote(url).ask(1)


@pytest.mark.parametrize("url", ["", "localhost:80", "file:///etc/passwd", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(PlanishError, match="has no endpoint"):
        remote(url)


@pytest.mark.parametrize(
    "url", ["http://me:secret1@a/", "http://a/?token=secret1", "http://a/?n=1&API_KEY=secret1"]
)
def test_a_token_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(PlanishError, match="holds a password or token") as caught:
        remote(url)
    assert "secret1" not in str(caught.value)
    assert "PLANISH_REMOTE_TOKEN" in caught.value.hint


def test_a_token_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANISH_REMOTE_TOKEN", "secret")
    with answering(lambda _: {"candidates": []}) as (url, asked):
        assert remote(url).ask(1) == []
    assert asked[0]["authorization"] == "Bearer secret"
