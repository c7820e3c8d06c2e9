"""Measuring host as it is without Ray: what it reports, and when."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator

import pytest

from planish.core import Candidate, Measured
from planish.measure.ray_host import MeasuringHost, Message, Report, Requirements
from planish.sandbox.protocol import EvaluationReply
from planish.testing.synthetic import ScriptedEvaluator, action

KEY = 7
LONG = action("sleep", 60.0)


@pytest.fixture
def host() -> Iterator[MeasuringHost]:
    made = MeasuringHost(None)
    assert not made.begin(KEY, pickle.dumps(ScriptedEvaluator), 1, None, pickle.dumps(Requirements()))
    exchange(made, [action()])  # it has a worker now
    yield made
    made.leave()


def exchange(
    host: MeasuringHost, batch: list[Candidate], report_s: float = 0.0, left_s: float = math.inf
) -> Report:
    message = Message(KEY, [*enumerate(batch)], left_s, 60.0, report_s)
    report: Report = pickle.loads(host.exchange(pickle.dumps(message)))
    for reply in report.replies:
        assert isinstance(reply, EvaluationReply)
        assert isinstance(reply.outcome, Measured)
    return report


def test_results_of_short_evaluations_are_one_report_and_more_are_asked_for(host: MeasuringHost) -> None:
    batch = [action("sleep", 0.03 + index / 1e4) for index in range(8)]
    assert len(exchange(host, batch).replies) < len(batch)
    host.cancel(KEY)
    report = exchange(host, batch, report_s=60.0)
    assert [reply.position for reply in report.replies] == [*range(len(batch))]
    assert report.capacity > exchange(host, [action()]).capacity


@pytest.mark.parametrize(("report_s", "left_s"), [(0.5, math.inf), (60.0, 1.0)])
def test_a_result_waits_neither_for_a_long_evaluation_nor_for_the_deadline(
    host: MeasuringHost, report_s: float, left_s: float
) -> None:
    report = exchange(host, [action(), LONG], report_s, left_s)
    assert [reply.position for reply in report.replies] == [0]
    host.cancel(KEY)
    assert len(exchange(host, [action()], 60.0).replies) == 1
