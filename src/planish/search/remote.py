"""Searcher that asks an HTTP endpoint for candidates: a program of another kind, such as a language model.

The endpoint only proposes. It receives a reason for each proposal that is not legal in the space. planish
verifies, measures and counts the budget as for any searcher, and the time that the endpoint takes is a part
of it.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanSample,
    CanStep,
    Failed,
    Measured,
    Objective,
    PlanishError,
    SearchContext,
    Space,
    Step,
    Trial,
    rng,
)
from planish.core.step import candidate_from_json
from planish.search.factory import Option
from planish.search.rounds import TrialRounds, TrialRoundSearcher

TOKEN = "PLANISH_REMOTE_TOKEN"
"""The environment variable with the token that is sent, where the endpoint wants one."""
_SECRET = "token|key|secret|passw|auth"
_ANSWER_MOST = 4 << 20
_DRAWS = 64
_VAIN_MOST = 5
"""Answers in a row without a legal candidate, after which the search ends."""
_DETAIL_MOST = 500


class _Here(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the token is for the endpoint alone."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        del args, options


_OPENER = urllib.request.build_opener(_Here)


class Remote(TrialRoundSearcher):
    """Asks an HTTP endpoint, such as a language model, what to try."""

    needs = Space

    def __init__(
        self,
        space: Space,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
        *,
        url: Annotated[str, Option("the endpoint: http://HOST:PORT/PATH")] = "",
        batch: Annotated[int, Option("candidates that are asked for at once", least=1, most=1000)] = 8,
        timeout: Annotated[float, Option("seconds to wait for an answer", least=0.1)] = 120.0,
    ) -> None:
        self._space, self._objectives, self._seed = space, objectives, seed
        self._url, self._batch, self._timeout = url, batch, timeout
        self._ended = ""
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise PlanishError(
                f"searcher 'remote' has no endpoint: url={url!r}",
                'Add the endpoint: searcher_options={"url": "http://HOST:PORT/"}.',
            )
        _refuse_secrets(url)
        super().__init__(self._rounds())

    @property
    def notes(self) -> Sequence[str]:
        """Return why the search ended, where that was the endpoint's doing."""
        return (self._ended,) if self._ended else ()

    def _rounds(self) -> TrialRounds:
        yield ()  # nothing is asked before the search begins
        known = _known_steps(self._space, self._seed)
        results: Mapping[str, Trial | None] = {}
        rejected, vain, number = list[dict[str, Any]](), 0, 0
        while vain < _VAIN_MOST:
            answer = self._ask(number, results, rejected)
            if not answer:
                self._ended = f"the endpoint {self._url} proposed nothing more"
                return
            legal, rejected = self._legal(answer, known)
            vain = 0 if legal else vain + 1
            number += 1
            results = (yield legal) if legal else {}
        self._ended = f"the endpoint {self._url} proposed no legal candidate in {_VAIN_MOST} answers"

    def _legal(
        self, answer: Sequence[Any], known: Mapping[str, type[Step]]
    ) -> tuple[list[Candidate], list[dict[str, Any]]]:
        """Return the candidates of an answer that are legal, and the others with the reason."""
        legal, rejected = dict[str, Candidate](), list[dict[str, Any]]()
        for raw in answer[: self._batch]:
            try:
                candidate = candidate_from_json(raw, known)
                _check(self._space, candidate)
            except (PlanishError, TypeError, ValueError, AttributeError, LookupError) as error:
                rejected.append({"steps": raw, "why": str(error)[:_DETAIL_MOST]})
            else:
                legal[candidate.hash] = candidate
        return list(legal.values()), rejected

    def _ask(
        self, number: int, results: Mapping[str, Trial | None], rejected: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any]:
        """Ask the endpoint.

        Raises:
            PlanishError: it cannot be reached, or its answer is none.
        """
        start = self._space.start()
        asked: dict[str, Any] = {
            "round": number,
            "count": self._batch,
            "seed": self._seed,
            "objectives": [
                {"name": o.name, "unit": o.unit, "direction": o.direction} for o in self._objectives
            ],
            "start": json.loads(start.text),
            "results": [_result(trial) for trial in results.values() if trial is not None],
            "rejected": list(rejected),
        }
        if isinstance(self._space, CanStep):
            asked["next_steps"] = [step.to_json() for step in self._space.steps(start)]
        headers = {"Content-Type": "application/json"}
        if token := os.environ.get(TOKEN):
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self._url, json.dumps(asked).encode(), headers)
        try:
            with _OPENER.open(request, timeout=self._timeout) as answer:
                text = answer.read(_ANSWER_MOST + 1)
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            why = f"HTTP status {error.code}, {why}" if isinstance(error, urllib.error.HTTPError) else why
            raise PlanishError(
                f"the endpoint {self._url} does not answer: {why}",
                "Start it, and run the same command again: it resumes the search.",
            ) from error
        return _candidates(self._url, text)


def _refuse_secrets(url: str) -> None:
    """Raise PlanishError where a URL holds a password or token: it is stored with the run, and shown."""
    parts = urlsplit(url)
    if parts.password or any(re.search(_SECRET, name, re.IGNORECASE) for name, _ in parse_qsl(parts.query)):
        raise PlanishError(
            "the endpoint's url holds a password or token, which would be stored with the run",
            f"Leave it out of the url, and set {TOKEN} in the environment.",
        )


def _candidates(url: str, text: bytes) -> Sequence[Any]:
    try:
        found = json.loads(text) if len(text) <= _ANSWER_MOST else None
    except (ValueError, RecursionError):
        found = None
    match found:
        case {"candidates": list() as candidates}:
            return candidates
        case _:
            hint = (
                'Answer {"candidates": [[[NAME, {OPTION: VALUE}], ...], ...]}; an empty list ends the search.'
            )
            raise PlanishError(f"the answer of {url} has no candidates: {text[:80]!r}", hint)


def _check(space: Space, candidate: Candidate) -> None:
    """Raise PlanishError where a space that is walked does not have a candidate."""
    if not isinstance(space, CanStep):
        return
    here = space.start()
    for index, step in enumerate(candidate.steps):
        legal = space.steps(here)
        if step not in legal:
            shown = ", ".join(str(each) for each in legal[:20])
            raise PlanishError(f"step {index + 1}, {step}, is not legal there", f"Legal: {shown}.")
        here = space.extend(here, step)


def _known_steps(space: Space, seed: int) -> Mapping[str, type[Step]]:
    """Return the steps that candidates of a space have, by name."""

    def steps() -> Iterator[Step]:
        yield from space.start().steps
        if isinstance(space, CanStep):
            yield from space.steps(space.start())
        if isinstance(space, CanSample):
            for index in range(_DRAWS):
                try:
                    yield from space.sample(rng(seed, index)).steps
                except PlanishError:  # none was found
                    continue

    return {type(step).__name__: type(step) for step in steps()}


def _result(trial: Trial) -> dict[str, Any]:
    """Return the outcome of a candidate."""
    found: dict[str, Any] = {"steps": json.loads(trial.candidate.text)}
    if isinstance(trial.outcome, Measured):
        return {**found, "values": dict(trial.outcome.values)}
    failed = trial.outcome
    kind = "failed" if isinstance(failed, Failed) else "lost"
    return {**found, kind: f"{failed.stage}: {failed.reason}: {failed.detail}"[:_DETAIL_MOST]}
