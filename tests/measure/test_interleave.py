"""The comparison where the time is short: by a clock that only the executor moves."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planish.core import Candidate, Evaluation, EvaluatorSpec, Measured, Objective
from planish.measure import CutShortError, Plan, Variant, comparison, remeasure
from planish.measure import rounds as measured_rounds
from planish.measure.rounds import VariantTag
from planish.testing.acting import Actor, act
from scripted import Scripted

COST = Objective("cost")


class Slow(Scripted):
    """A machine on which a process takes some seconds to start, and each evaluation some.

    Args:
        start: seconds.
        each: seconds by variant; the baseline is the first.
    """

    def __init__(self, start: float, each: Sequence[float]) -> None:
        super().__init__()
        self.now, self.processes = 0.0, 0
        self.turns: list[tuple[int, int]] = []
        self._start, self._each = start, each

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> "Slow":
        del spec, workers
        self.now += self._start
        self.processes += 1
        return self

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        tag = candidate.steps[0]
        assert isinstance(tag, VariantTag)
        self.now += self._each[tag.variant]
        self.turns.append((self.processes, tag.variant))
        return Evaluation(candidate, Measured({"cost": 1.0 + tag.variant}))


def measured(
    machine: Slow, count: int, seconds: float, objective: Objective = COST
) -> tuple[list[str], tuple[int, int]]:
    """Compare so many variants; gives the verdicts, and processes and rounds of the baseline."""
    everybody = [Variant(str(place), act(), Actor) for place in range(count + 1)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (comparison, measured_rounds):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: machine.now))
        base, *others = remeasure(everybody[0], everybody[1:], objective, machine, Plan(seconds=seconds))
    return [sampled.verdict for sampled in others], (len(base.values), len(base.values[0]))


def test_with_time_nothing_is_cut() -> None:
    machine = Slow(1, [1, 1, 1])
    assert measured(machine, 2, seconds=50) == (["worse", "worse"], (5, 3))
    assert machine.now == 5 * (1 + 3 * 3)


def test_the_last_entrants_go_first() -> None:
    machine = Slow(1, [1, 1, 1])
    assert measured(machine, 2, seconds=40) == (["worse", "undecided"], (5, 3))
    assert machine.now == (1 + 2 * 3 + 2) + 4 * (1 + 3 * 2)
    assert {variant for process, variant in machine.turns if process > 1} == {0, 1}


def test_then_rounds_go() -> None:
    machine = Slow(1, [1, 2])
    assert measured(machine, 1, seconds=40) == (["worse"], (5, 2))
    assert machine.now == (1 + 3 * 3) + 4 * (1 + 2 * 3)


def test_who_fits_into_the_rounds_of_the_first_is_kept() -> None:
    machine = Slow(1, [1, 2, 2, 2])
    assert measured(machine, 3, seconds=32) == (["worse", "worse", "undecided"], (5, 1))
    assert {variant for process, variant in machine.turns if process > 1} == {0, 1, 2}


def test_then_processes_go() -> None:
    machine = Slow(1, [1, 2, 2, 2])
    assert measured(machine, 3, seconds=17) == (["worse", "undecided", "undecided"], (3, 1))
    assert machine.now <= 17


def test_the_baseline_and_the_first_are_measured_in_two_processes() -> None:
    machine = Slow(10, [10, 10, 10])
    assert measured(machine, 2, seconds=1) == (["worse", "undecided"], (2, 1))
    assert machine.now == 2 * (10 + 20)


def test_a_machine_that_becomes_slow_has_fewer_rounds_of_all() -> None:
    class Slower(Slow):
        def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> Slow:
            self._start *= 4
            return super().__call__(spec, workers=workers)

    verdicts, shape = measured(Slower(0.01, [1, 1]), 1, seconds=30)
    assert verdicts == ["worse"]
    assert shape[1] == 1


@pytest.mark.parametrize(("most", "processes"), [(5, 2), (7, 3), (8, 3)])
def test_a_batch_that_is_ended_early_ends_the_comparison_if_two_processes_are_done(
    most: int, processes: int
) -> None:
    class Cut(Slow):
        def results(self) -> Iterator[Evaluation]:
            for answer in super().results():
                if len(self.turns) > most:
                    return
                yield answer

    assert measured(Cut(1, [1, 1]), 1, seconds=11) == (["worse"], (processes, 1))


def test_a_batch_that_is_ended_before_two_processes_are_done_tells_nothing() -> None:
    class Cut(Slow):
        def results(self) -> Iterator[Evaluation]:
            yield from list(super().results())[: 3 - len(self.turns)]

    with pytest.raises(CutShortError):
        measured(Cut(1, [1, 1]), 1, seconds=9)


@example(start=0.25, each=[1 / 64, 1 / 64], seconds=1.0)
@given(st.floats(0, 5), st.lists(st.floats(0.01, 9), min_size=2, max_size=7), st.floats(1, 200))
def test_it_ends_in_time_or_does_the_least(start: float, each: list[float], seconds: float) -> None:
    machine = Slow(start, each)
    verdicts, (processes, rounds) = measured(machine, len(each) - 1, seconds)
    out = verdicts.count("undecided")
    assert verdicts == ["worse"] * (len(verdicts) - out) + ["undecided"] * out
    assert 2 <= processes <= 5
    kept = each[: len(each) - out]
    assert out == len(each) - 2 or processes == 5, "variants go before processes"
    assert machine.now <= max(seconds, 2 * (start + sum(kept))) + max(each) + 1e-6
    assert rounds >= 1


@pytest.mark.parametrize(("seconds", "verdicts"), [(8, ["worse"] * 3), (4, ["worse", "worse", "undecided"])])
def test_what_is_exact_is_measured_once_while_there_is_time(seconds: float, verdicts: list[str]) -> None:
    machine = Slow(1, [1, 1, 1, 1])
    assert measured(machine, 3, seconds, Objective("cost", exact=True)) == (verdicts, (1, 1))


def test_an_executor_that_ends_at_the_deadline_costs_the_late_ones_alone() -> None:
    class FinalState(Slow):
        def results(self) -> Iterator[Evaluation]:
            yield from (answer for answer in super().results() if self.now <= 4.5)

    machine = FinalState(1, [1, 1, 1, 9])
    exact = Objective("cost", exact=True)
    assert measured(machine, 3, 4.5, exact) == (["worse", "worse", "undecided"], (1, 1))
