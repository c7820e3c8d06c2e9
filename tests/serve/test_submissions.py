"""The queue of submitted candidates: fair, without repeats, and without losses between two searches."""

from collections.abc import Sequence
from threading import Thread

import pytest

from planish.core import Candidate, Measured, Trial
from planish.serve.submissions import FullError, Submissions
from planish.testing.synthetic import Set


def candidate(index: int) -> Candidate:
    return Candidate((Set(0, index),))


def indices(candidates: Sequence[Candidate]) -> list[int]:
    return [step.value for each in candidates for step in each.steps if isinstance(step, Set)]


def trial(of: Candidate) -> Trial:
    return Trial(of, Measured({"time_s": 1.0}))


def test_each_client_has_its_turn() -> None:
    queue = Submissions(waiting=10)
    for index in range(4):
        queue.submit("greedy", candidate(index))
    queue.submit("modest", candidate(10))
    queue.submit("late", candidate(20))
    assert indices(queue.ask(3)) == [0, 10, 20]
    assert indices(queue.ask(10)) == [1, 2, 3]


def test_a_client_may_have_so_many_waiting() -> None:
    queue = Submissions(waiting=2)
    for index in range(2):
        queue.submit("one", candidate(index))
    with pytest.raises(FullError):
        queue.submit("one", candidate(2))
    queue.submit("other", candidate(3))
    queue.ask(10)
    queue.submit("one", candidate(2))


def test_what_two_clients_submit_is_measured_once() -> None:
    queue = Submissions(waiting=2)
    futures = [queue.submit(client, candidate(1)) for client in ("one", "other")]
    assert len(queue.ask(10)) == 1
    queue.tell([trial(candidate(1))])
    assert [future.result(0).candidate for future in futures] == [candidate(1)] * 2
    assert queue.waiting_of("one") == 0


def test_asking_waits_for_a_client() -> None:
    queue, found = Submissions(waiting=2), list[int]()
    asking = Thread(target=lambda: found.extend(indices(queue.ask(1))))
    asking.start()
    asking.join(0.05)
    assert asking.is_alive()
    queue.submit("one", candidate(7))
    asking.join()
    assert found == [7]
    assert queue.idle_s > 0
    assert queue.ask(1) == []  # what is under way is waited for by the engine


def test_what_a_search_did_not_measure_is_measured_by_the_next() -> None:
    queue = Submissions(waiting=5)
    futures = [queue.submit("one", candidate(index)) for index in range(3)]
    queue.ask(2)
    queue.tell([trial(candidate(0))])
    queue.end()
    assert queue.ask(1) == []
    queue.begin()
    assert indices(queue.ask(5)) == [1, 2]
    assert [future.done() for future in futures] == [True, False, False]


def test_an_error_is_the_answer_to_all_that_waits() -> None:
    queue = Submissions(waiting=5)
    future = queue.submit("one", candidate(0))
    queue.fail(ValueError("the store is gone"))
    assert isinstance(future.exception(0), ValueError)
    assert queue.waiting_of("one") == 0
