"""The executor that replays a recording."""

from planish.core import Candidate, Failed, Measured, evaluate
from planish.search import make_searcher
from planish.testing.recorded import ReplayExecutor, record
from planish.testing.searchers import drive
from planish.testing.synthetic import Lattice, Set

LATTICE = Lattice()
FIRST, SECOND = LATTICE.at([1, 0, 0]), LATTICE.at([2, 0, 0])


def test_it_answers_from_the_table_in_order() -> None:
    outcomes = {
        FIRST.hash: Measured({"time_s": 0.1}, {"time_s": (0.1, 0.3)}),
        SECOND.hash: Failed("run", "x", "y"),
    }
    executor = ReplayExecutor(outcomes, {FIRST.hash: {"build": 0.5}})
    results = list(evaluate(executor, [SECOND, FIRST]))
    assert [(r.candidate, r.outcome, r.seconds) for r in results] == [
        (SECOND, Failed("run", "x", "y"), {}),
        (FIRST, outcomes[FIRST.hash], {"build": 0.5}),
    ]
    executor.close()
    executor.close()


def test_what_is_not_recorded_has_failed() -> None:
    (answer,) = evaluate(ReplayExecutor({}, {}), [Candidate((Set(0, 1),))])
    assert answer.outcome == Failed(
        "run", "not recorded", "Set(knob=0, value=1) is not in the recorded table"
    )


def test_a_recorded_space_is_searched_as_the_space_itself() -> None:
    executor = ReplayExecutor(LATTICE.table(), {})
    recording = record("task", LATTICE, "lattice", LATTICE.objective, executor, batch=7)
    assert recording.outcomes == LATTICE.table()
    assert recording.best() == LATTICE.optimum()
    replayed = ReplayExecutor(recording.outcomes, recording.seconds)
    searcher = make_searcher("greedy2", LATTICE, [LATTICE.objective], 0)
    trials = drive(searcher, lambda candidate: next(evaluate(replayed, [candidate])).outcome, 200)
    assert min(cost for t in trials if (cost := t.cost(LATTICE.objective)) is not None) == LATTICE.optimum()
