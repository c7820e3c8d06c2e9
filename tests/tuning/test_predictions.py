"""Predictions of the models that guided a search, and the proposals of policies."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, takewhile
from pathlib import Path

import pytest

from planish.core import Candidate, Failed, Measured, Space, Step, Task, Trial, TrialPrediction
from planish.models.cost_model import dataset_of
from planish.models.learner import batch_sizes
from planish.models.model_files import made_model, write_model
from planish.models.trees import XgboostTrees
from planish.report import write_report
from planish.search import make_searcher
from planish.search.policies import PrioritySampling
from planish.store import open_store
from planish.testing.synthetic import Lattice, Set
from planish.tuning.predictions import SHOWN_PROPOSALS, model_section, policy_section
from planish.tuning.result import Result, read_result
from report.page import Page
from report.planks import STARTED, TIME, Planks, save_run

LATTICE = Lattice((12, 6, 6))
COUNT = 100
SMALL = Lattice()
IMPORTANCE = [("knob 0", 2.5), ("knob 2", -0.5)]


class Knobs(Planks):
    """Planks whose candidates are turns of knobs."""

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        return {"Set": Set}

    def space(self, task: Task, name: str) -> Space:
        del task, name
        return LATTICE


def searched(model: str = "none") -> list[Trial]:
    """Search by a model; each trial has what the searcher predicted for it."""
    searcher = make_searcher("model-guided", LATTICE, [LATTICE.objective], 7, {"model": model})
    found: list[Trial] = []
    while len(found) < COUNT and (asked := searcher.ask(min(8, COUNT - len(found)))):
        new = [
            Trial(
                candidate,
                LATTICE.outcome(candidate),
                index,
                7,
                {"run": 1e-3},
                "shed",
                STARTED + index + 1,
                prediction=searcher.prediction(candidate),
            )
            for index, candidate in enumerate(asked, len(found))
        ]
        searcher.tell(new)
        found += new
    return found


def befores() -> list[int]:
    """List what was measured before each batch of a search with the default options."""
    starts = accumulate(batch_sizes(), initial=0)  # both seeds fit into the first batch
    return list(takewhile(lambda start: start < COUNT, starts))


def report_data(path: Path, trials: list[Trial], searcher: str = "model-guided") -> Result:
    with open_store(path / "s.db") as store:
        run_id = save_run(store, trials, searcher=searcher, importance=IMPORTANCE)
        result = read_result(store, run_id, level=Knobs())
        assert len(result.stored_trials) == len(trials), "they are read while the store is open"
        return result


def test_batches_are_predicted_by_what_was_before_them(tmp_path: Path) -> None:
    trials = searched()
    found = model_section(report_data(tmp_path, trials))
    assert found is not None
    assert [batch.before for batch in found.batches] == befores()[1:]
    last = found.batches[-1]
    measured = sum(isinstance(trial.outcome, Measured) for trial in trials[last.before :])
    assert len(last.predicted_ranks) == len(last.values) == measured  # those that failed are left out
    assert min(last.predicted_ranks) == 0
    assert max(last.predicted_ranks) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_a_batch_has_the_correlation_of_what_was_predicted_and_measured(tmp_path: Path, sign: int) -> None:
    known = [each for each in searched() if isinstance(each.outcome, Measured)]
    exact = [
        replace(each, index=i, prediction=TrialPrediction(sign * each.outcome.values["time_s"], 5))
        for i, each in enumerate(known)
        if isinstance(each.outcome, Measured)
    ]
    found = model_section(report_data(tmp_path, exact))
    assert found is not None
    (batch,) = found.batches
    assert (batch.before, batch.correlation) == (5, pytest.approx(sign))
    best = min(batch.values) if sign > 0 else max(batch.values)
    assert batch.values[batch.predicted_ranks.index(0)] == best


def test_trials_that_were_lost_are_in_no_batch(tmp_path: Path) -> None:
    trials = searched()
    found = model_section(report_data(tmp_path, trials[:20] + trials[23:]))
    assert found is not None
    assert [batch.before for batch in found.batches] == befores()[1:]


def test_importance_is_that_of_the_run(tmp_path: Path) -> None:
    found = model_section(report_data(tmp_path, searched()))
    assert found is not None
    assert found.importance == IMPORTANCE


def test_a_global_model_predicts_the_first_batch_too(tmp_path: Path) -> None:
    every = list(LATTICE.candidates())
    trees = XgboostTrees()
    costs = [out.values["time_s"] if isinstance(out := LATTICE.outcome(c), Measured) else None for c in every]
    data = dataset_of(LATTICE.features(every), costs)
    trees.fit(data)
    path = tmp_path / "m.npz"
    write_model(made_model("planks", LATTICE.schema, "rank", {}, data, trees.trees), path)
    found = model_section(report_data(tmp_path, searched(str(path))))
    assert found is not None
    assert [batch.before for batch in found.batches] == befores()


@pytest.mark.parametrize("searcher", ["random", "genetic"])
def test_other_searchers_have_no_model(tmp_path: Path, searcher: str) -> None:
    assert model_section(report_data(tmp_path, searched(), searcher)) is None


def test_a_run_without_predictions_or_trials_has_none(tmp_path: Path) -> None:
    assert model_section(report_data(tmp_path, [])) is None
    assert (
        model_section(report_data(tmp_path, [replace(each, prediction=None) for each in searched()])) is None
    )


def test_a_batch_of_failures_has_no_values(tmp_path: Path) -> None:
    failures = [each for each in searched() if not isinstance(each.outcome, Measured) and each.prediction]
    assert failures
    found = model_section(report_data(tmp_path, [replace(each, index=i) for i, each in enumerate(failures)]))
    assert found is not None
    assert not any(batch.values for batch in found.batches)


def test_the_page_has_a_section_of_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        guided, other = (save_run(store, searched(), searcher=name) for name in ("model-guided", "random"))
        pages = [
            Page(
                write_report(read_result(store, run, level=Knobs()), tmp_path / f"{run}.html").read_text(
                    encoding="utf-8"
                )
            )
            for run in (guided, other)
        ]
    assert "rank correlation" in pages[0].sections["model"]
    assert "model" not in pages[1].sections


def proposed() -> list[Trial]:
    searcher = PrioritySampling(SMALL, [TIME], 0)
    return [
        Trial(
            candidate,
            Measured({"time_s": 1e-3}),
            i,
            7,
            {"run": 1e-3},
            "shed",
            STARTED + i + 1,
            prediction=searcher.prediction(candidate),
        )
        for i, candidate in enumerate(searcher.ask(100))
    ]


def test_each_proposal_has_its_probability(tmp_path: Path) -> None:
    trials = proposed()
    assert len(trials) < SHOWN_PROPOSALS, "all of them are shown"
    found = policy_section(report_data(tmp_path, trials, "priority"))
    assert [each.trial.candidate for each in found] == [each.candidate for each in trials]
    assert sum(each.probability for each in found) == pytest.approx(1)
    assert max(found, key=lambda each: each.probability).trial.candidate in SMALL.seeds()


def test_trials_that_no_policy_proposed_are_not_shown(tmp_path: Path) -> None:
    trials = [*proposed()[:1], Trial(Candidate((Set(0, 7),)), Failed("run", "timeout"), 1, 7)]
    (known,) = policy_section(report_data(tmp_path, trials, "priority"))
    assert known.probability > 0


def test_a_proposal_that_failed_has_no_value(tmp_path: Path) -> None:
    trials = [replace(proposed()[0], outcome=Failed("run", "timeout"))]
    assert [each.value for each in policy_section(report_data(tmp_path, trials, "priority"))] == [None]


def test_the_scores_of_a_model_are_no_probabilities(tmp_path: Path) -> None:
    assert policy_section(report_data(tmp_path, proposed(), "model-guided")) == ()


def test_the_page_shows_the_proposals(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        run_id = save_run(store, proposed(), searcher="priority")
        html = write_report(read_result(store, run_id, level=Knobs()), tmp_path / "page.html").read_text()
    section = Page(html).sections["policy"]
    assert "probability" in section
    assert section.count("1.000 ms") == len(proposed())
