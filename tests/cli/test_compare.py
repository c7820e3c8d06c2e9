"""`planish compare`, and the functions behind it."""

import json
import math
import shlex

import pytest

from cli.conftest import PROGRAM, Kept, Offer, Planish
from cli.lattices import LatticeLevel
from fake_executors import FakeExecutor, UnsteadyExecutors
from planish.cli.compare import marks, show_comparison
from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    ExecutorFactory,
    Failed,
    Lost,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    StoreError,
    Task,
)
from planish.measure import Plan
from planish.measure.comparison_rounds import VariantTag
from planish.testing.synthetic import Lattice
from planish.tuning.compare import ConvergenceCurves, SearchConfig, compare_results, compare_searches
from planish.tuning.settings import Settings

TIME = Objective("time_s", "s")
OPTIMUM = Lattice((6, 4, 4)).at((5, 2, 2))


class OptimalBaseline(LatticeLevel):
    """A level whose baseline is the optimum."""

    def baseline(self, task: Task) -> Candidate:
        del task
        return OPTIMUM


BOTH = "--searcher", "random", "--searcher", "genetic:population=8,mutation=0.5"


def curves(*rows: tuple[float, ...], objective: Objective = TIME) -> ConvergenceCurves:
    return ConvergenceCurves(
        SearchConfig("us", PROGRAM), objective, tuple(f"run{i}" for i in range(len(rows))), rows
    )


def test_medians_are_over_the_seeds_and_a_search_that_ended_keeps_its_best() -> None:
    found = curves((3.0, 2.0, 1.0), (6.0, 4.0), (math.nan, 9.0, 8.0))
    assert math.isnan(found.median(1))
    assert [found.median(trials) for trials in (2, 3, 10)] == [4.0, 4.0, 4.0]
    assert found.after(3) == (1.0, 4.0, 8.0)
    assert found.winner == "run0"
    assert curves((1.0,), (3.0,), objective=Objective("gflops", "", "up")).winner == "run1"


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [1]), (2, [1, 2]), (30, [1, 2, 5, 10, 20, 30]), (100, [1, 2, 5, 10, 20, 50, 100])],
)
def test_marks(most: int, expected: list[int]) -> None:
    assert marks(most) == expected


@pytest.mark.usefixtures("lattice", "place")
def test_searches_are_compared_by_their_best_so_far() -> None:
    configs = [
        SearchConfig(name, PROGRAM, Settings(searcher=name, seed=4)) for name in ("random", "exhaustive")
    ]
    random, exhaustive = compare_searches(configs, trials=96, seeds=2)
    assert len(set(random.runs)) == 2
    assert random.best[0] != random.best[1]
    assert all(len(row) == 96 for row in (*random.best, *exhaustive.best))
    assert random.median(96) == exhaustive.median(96) == pytest.approx(773.8e-6, rel=1e-4)
    known = [value for value in random.best[0] if not math.isnan(value)]
    assert known == sorted(known, reverse=True)


@pytest.mark.usefixtures("lattice")
def test_searchers_are_shown_side_by_side(planish: Planish) -> None:
    said = planish("compare", PROGRAM, *BOTH, "--trials", 40, "--seeds", 2)
    assert said.code == 0
    searches, _, winners = said.out.partition("\n\n")
    title, head, _, *rows = searches.splitlines()
    assert title == f"{PROGRAM}: best time by number of trials, median of 2 seeds"
    assert head.split() == ["trials", "random", "genetic:population=8,mutation=0.5"]
    assert [row.split()[0] for row in rows] == ["1", "2", "5", "10", "20", "40"]
    assert len(winners.splitlines()) == 5


@pytest.mark.usefixtures("lattice")
def test_searches_as_json(planish: Planish) -> None:
    words = ["--trials", 12, "--seeds", 2, "--seed", 5, "--format", "json"]
    found = json.loads(planish("compare", PROGRAM, *BOTH, *words).out)
    random, genetic = found["searches"]
    assert (random["name"], genetic["name"]) == ("random", BOTH[-1])
    assert len(random["median"]) == len(random["best"][0]) == 12
    winner = found["winners"][1]["run"]
    assert winner["id"] == genetic["winner"]
    assert winner["options"] == {"population": "8", "mutation": "0.5"}
    assert winner["seed"] in (5, 6)


@pytest.mark.usefixtures("lattice")
def test_programs_and_spaces_are_paired_with_searchers(planish: Planish) -> None:
    words = [PROGRAM, "lattice 8x4x4", "--space", "knobs", "--trials", 9, "--seeds", 1, "--format", "json"]
    found = json.loads(planish("compare", *words).out)
    assert [s["program"] for s in found["searches"]] == [PROGRAM, "lattice 8x4x4"]
    assert [s["name"] for s in found["searches"]] == ["knobs", "knobs"]


def test_winners_are_measured_again_each_beside_its_own_baseline(kept: Kept, planish: Planish) -> None:
    tune = ["tune", "lattice 20x4x4", "--trials", 40, "--finalists", 1, "--format", "json"]
    other = json.loads(planish(*tune).out)
    first, second = compare_results([kept.run, other["run"]["id"]])
    assert first.gain is not None
    assert second.gain is not None
    assert first.gain.value == pytest.approx(1.719, rel=1e-3)
    assert second.gain.value == pytest.approx(other["finalists"][0]["gain"])
    said = planish("compare", kept.run, other["run"]["id"])
    assert [line.split()[0] for line in said.out.splitlines()[3:]] == [kept.run, other["run"]["id"]]


@pytest.mark.slow
def test_where_the_baseline_was_kept_the_best_other_candidate_is_measured(
    kept: Kept, planish: Planish, offer: Offer
) -> None:
    del kept
    offer(OptimalBaseline)
    run = json.loads(planish("tune", PROGRAM, "--trials", 40, "--seed", 3, "--format", "json").out)
    assert run["finalists"][0]["hash"] == OPTIMUM.hash
    other = run["finalists"][1]
    (found,) = compare_results([run["run"]["id"]])
    assert found.result.candidate == OPTIMUM
    assert found.result.contender.hash == other["hash"]
    assert found.gain is not None
    assert found.gain.value == pytest.approx(other["gain"])
    detail = f"{other['gain']:.4g} to {other['gain']:.4g} now"
    assert detail in planish("validate", run["run"]["id"]).out
    assert detail not in planish("validate", run["run"]["id"], "--pick", 1).out


class SecondBaseline(FakeExecutor):
    """Measures all but the second baseline."""

    def __init__(self, became: Outcome) -> None:
        super().__init__()
        self._became = became

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        tag = candidate.steps[0]
        assert isinstance(tag, VariantTag)
        became = self._became if tag.variant == 1 else Measured({"time_s": 1.0 + tag.variant})
        return Evaluation(candidate, became)


def measuring(became: Outcome) -> ExecutorFactory:
    """Return what starts such executors."""

    def start(spec: EvaluatorSpec, /, *, workers: int = 1) -> SecondBaseline:
        del spec, workers
        return SecondBaseline(became)

    return start


def test_no_winner_is_shown_beside_the_baseline_of_another_program(kept: Kept, planish: Planish) -> None:
    tune = ["tune", "lattice 20x4x4", "--trials", 9, "--finalists", 1, "--format", "json"]
    runs = [kept.run, json.loads(planish(*tune).out)["run"]["id"]]
    lost = Lost("run", "killed", "its program was killed")
    first, second = compare_results(runs, start=measuring(lost))
    assert first.gain is not None
    assert (second.gain, second.sampled.verdict) == (None, "undecided")
    with pytest.raises(PlanishError, match=f"the baseline of run {runs[1]} failed: run: timeout"):
        compare_results(runs, start=measuring(Failed("run", "timeout")))


@pytest.mark.slow
def test_an_undecided_verdict_names_the_command_that_measures_more(
    kept: Kept, planish: Planish, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planish.tuning.compare.Plan", Plan)  # with as many processes as usual
    machine, store = UnsteadyExecutors(), str(kept.place)
    show_comparison(compare_results([kept.run], start=machine), 20, store, "text")
    said = capsys.readouterr().out
    assert machine.started == 20
    line = f"planish compare {kept.run} --store {store} --processes 40"
    assert said.count(f"Undecided: run {kept.run} has about ") == said.count("Undecided") == 1
    assert said.endswith(f"Run this command, which measures in more processes:\n    {line}\n")
    decided = json.loads(planish(*shlex.split(line)[1:], "--format", "json").out)
    assert decided["again"] == ""
    show_comparison(compare_results([kept.run], processes=40, start=machine), 40, store, "json")
    assert machine.started == 60
    again = json.loads(capsys.readouterr().out)["again"]
    assert again == f"planish compare {kept.run} --store {store} --format json --processes 80"


def test_what_cannot_be_compared_is_an_error(kept: Kept, planish: Planish) -> None:
    tune = ["tune", PROGRAM, "--objective", "gflops", "--trials", 9, "--finalists", 1, "--format", "json"]
    other = json.loads(planish(*tune).out)["run"]["id"]
    error = planish("compare", kept.run, other).error
    assert error == "cannot compare time_s and gflops. Name runs with the same leading objective."
    assert planish("compare", "abcabcab").code == StoreError.exit_code
    error = planish("compare", kept.run, "--searcher", "genetc", "--trials", 9).error
    assert error == "a comparison of runs does not read --searcher, --trials. Leave it out."
    assert planish("compare", PROGRAM, "--searcher", "genetic:population").code == PlanishError.exit_code
    before = planish("show").out
    unfit = planish("compare", PROGRAM, "--searcher", "random", "--searcher", "genetc", "--trials", 9)
    assert "genetc" in unfit.error  # before the first one searches
    assert planish("show").out == before
    with pytest.raises(PlanishError, match="nothing to compare"):
        compare_searches([])
