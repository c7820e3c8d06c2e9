"""Predictions of the models that guided a search, and the proposals of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from pathlib import Path
from statistics import fmean

import pytest

from planish.core import UNTAUGHT, Candidate, Failed, Measured, SearchContext, Space, Step, Task, Trial, rng
from planish.models.cost_model import dataset_of
from planish.models.learner import Learner, batch_sizes
from planish.models.model_files import made_model, write_model
from planish.models.trees import XgboostTrees
from planish.report import write_report
from planish.report.data import ReportData, read_report_data
from planish.report.predictions import SHOWN_PROPOSALS, model_section, policy_section
from planish.search import make_searcher
from planish.search.policies import PrioritySampling
from planish.store import open_store
from planish.testing.driving import drive
from planish.testing.lattice import Lattice, Set
from report.page import Page
from report.planks import STARTED, TIME, Planks, save_run

LATTICE = Lattice((12, 6, 6))
COUNT = 100


class Knobs(Planks):
    """Planks whose candidates are turns of knobs."""

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        return {"Set": Set}

    def space(self, task: Task, name: str) -> Space:
        del task, name
        return LATTICE


def trials() -> list[Trial]:
    drawn = dict.fromkeys(LATTICE.sample(rng(3, i)) for i in range(2 * COUNT))
    return [
        Trial(candidate, LATTICE.outcome(candidate), i, 7, {"run": 1e-3}, "shed", STARTED + i + 1)
        for i, candidate in enumerate(list(drawn)[:COUNT])
    ]


def befores() -> list[int]:
    """List what was measured before each batch of a search with the default options."""
    starts = accumulate(batch_sizes(), initial=0)  # both seeds fit into the first batch
    return list(takewhile(lambda start: start < COUNT, starts))


def read_data(
    path: Path, searcher: str = "model-guided", some: list[Trial] | None = None, level: Knobs | None = None
) -> ReportData:
    with open_store(path / "s.db") as store:
        run_id = save_run(store, trials() if some is None else some, searcher=searcher)
        return read_report_data(store, run_id, level or Knobs())


def test_batches_are_predicted_by_what_was_before_them(tmp_path: Path) -> None:
    found = model_section(read_data(tmp_path), Knobs())
    assert found is not None
    assert [batch.before for batch in found.batches] == befores()[1:]
    last = found.batches[-1]
    measured = sum(isinstance(trial.outcome, Measured) for trial in trials()[last.before :])
    assert len(last.predicted_ranks) == len(last.values) == measured  # those that failed are left out
    assert min(last.predicted_ranks) == 0
    assert max(last.predicted_ranks) == 1
    late = [batch.correlation for batch in found.batches if batch.before >= COUNT / 2]
    assert fmean(late) > 0.5


class ManySeeds(Lattice):
    """More seeds than the first batch has, one of them twice."""

    def seeds(self, context: SearchContext = UNTAUGHT) -> list[Candidate]:
        seeds = [self.at((i, 1, 1)) for i in range(7)]
        return [*seeds, seeds[0], *map(self.at, [self.position(each) for each in context.taught])]


BASELINE = LATTICE.at((11, 5, 5))


class ManyKnobs(Knobs):
    def baseline(self, task: Task) -> Candidate:
        del task
        return BASELINE

    def space(self, task: Task, name: str) -> Space:
        del task, name
        return ManySeeds(LATTICE.sizes)


@pytest.mark.parametrize("apart", ["nothing", "baseline", "lost"])
def test_batches_are_the_searchs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: str) -> None:
    """With seeds, with a baseline that was measured before it, and with trials that were lost."""
    learnt: list[list[Candidate]] = []
    learn = Learner.learn

    def noted(self: Learner, candidates: Sequence[Candidate], costs: Sequence[float | None]) -> None:
        learnt.append([*candidates])
        learn(self, candidates, costs)

    monkeypatch.setattr(Learner, "learn", noted)
    taught, lattice = [LATTICE.at((11, 2, 2)), LATTICE.at((10, 3, 3))], ManySeeds(LATTICE.sizes)
    searcher = make_searcher(
        "model-guided", lattice, [lattice.objective], 7, {"model": "none"}, SearchContext(taught)
    )
    found = drive(searcher, lattice.outcome, COUNT, 4)
    searched = learnt.copy()
    learnt.clear()
    if apart == "baseline":
        first = Trial(BASELINE, lattice.outcome(BASELINE), 0, 7, {}, "shed", STARTED)
        found = [replace(trial, index=i) for i, trial in enumerate([first, *found])]
    gone = found[20:23] if apart == "lost" else []
    told = read_data(tmp_path, some=[trial for trial in found if trial not in gone], level=ManyKnobs())
    stored = [[step.to_json() for step in each.steps] for each in taught]
    run = replace(told.run, options={"model": "none"}, taught=stored)
    assert model_section(replace(told, stored=replace(told.stored, run=run)), ManyKnobs())
    lost = {trial.candidate for trial in gone}
    assert len(searched[0]) == 9
    assert learnt[: len(searched)] == [[each for each in batch if each not in lost] for batch in searched]


def test_what_makes_the_winner_good_comes_first(tmp_path: Path) -> None:
    found = model_section(read_data(tmp_path), Knobs())
    assert found is not None
    names = dict(found.importance)
    assert names.keys() <= {*LATTICE.schema.names}
    assert found.importance[0][1] > 0
    assert [abs(worse) for _, worse in found.importance] == sorted(map(abs, names.values()), reverse=True)


def test_a_global_model_predicts_the_first_batch_too(tmp_path: Path) -> None:
    every = list(LATTICE.candidates())
    trees = XgboostTrees()
    costs = [out.values["time_s"] if isinstance(out := LATTICE.outcome(c), Measured) else None for c in every]
    data = dataset_of(LATTICE.features(every), costs)
    trees.fit(data)
    path = tmp_path / "m.npz"
    write_model(made_model("planks", LATTICE.schema, "rank", {}, data, trees.trees), path)
    told = read_data(tmp_path)
    guided = replace(told, stored=replace(told.stored, run=replace(told.run, options={"model": str(path)})))
    found = model_section(guided, Knobs())
    assert found is not None
    assert [batch.before for batch in found.batches] == befores()
    away = replace(told.run, options={"model": str(tmp_path / "gone.npz")})
    gone = replace(told, stored=replace(told.stored, run=away))
    assert model_section(gone, Knobs()) is None


@pytest.mark.parametrize("searcher", ["random", "genetic"])
def test_other_searchers_have_no_model(tmp_path: Path, searcher: str) -> None:
    assert model_section(read_data(tmp_path, searcher), Knobs()) is None


def test_a_run_of_failures_or_without_trials_has_none(tmp_path: Path) -> None:
    assert model_section(read_data(tmp_path, some=[]), Knobs()) is None
    failures = [each for each in trials() if not isinstance(each.outcome, Measured)]
    assert failures
    renumbered = [replace(each, index=i) for i, each in enumerate(failures)]
    assert model_section(read_data(tmp_path, some=renumbered), Knobs()) is None


def test_the_page_has_a_section_of_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        guided, other = (save_run(store, trials(), searcher=name) for name in ("model-guided", "random"))
        pages = [
            Page(write_report(store, run, Knobs(), tmp_path / f"{run}.html").read_text(encoding="utf-8"))
            for run in (guided, other)
        ]
    assert "rank correlation" in pages[0].sections["model"]
    assert "model" not in pages[1].sections


SMALL_LATTICE = Lattice()


class FewKnobs(Planks):
    """Planks whose candidates are turns of knobs; the space knows two of them to be good."""

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        return {"Set": Set}

    def space(self, task: Task, name: str) -> Space:
        del task, name
        return SMALL_LATTICE


def proposed() -> list[Trial]:
    found = PrioritySampling(SMALL_LATTICE, [TIME], 0).ask(100)
    return [
        Trial(candidate, Measured({"time_s": 1e-3}), i, 7, {"run": 1e-3}, "shed", STARTED + i + 1)
        for i, candidate in enumerate(found)
    ]


def policy_run(path: Path, trials: list[Trial], searcher: str = "priority") -> ReportData:
    with open_store(path / "s.db") as store:
        return read_report_data(store, save_run(store, trials, searcher=searcher), FewKnobs())


def test_each_proposal_has_its_probability(tmp_path: Path) -> None:
    trials = proposed()
    assert len(trials) < SHOWN_PROPOSALS, "all of them are shown"
    found = policy_section(policy_run(tmp_path, trials), FewKnobs())
    assert [each.trial.candidate for each in found] == [each.candidate for each in trials]
    assert sum(each.probability for each in found) == pytest.approx(1)
    assert max(found, key=lambda each: each.probability).trial.candidate in SMALL_LATTICE.seeds()


def test_what_the_policy_cannot_write_has_none(tmp_path: Path) -> None:
    trials = [*proposed()[:1], Trial(Candidate((Set(0, 7),)), Failed("run", "timeout"), 1, 7)]
    known, strange = policy_section(policy_run(tmp_path, trials), FewKnobs())
    assert known.probability > 0
    assert (strange.probability, strange.value) == (0, None)


def test_runs_of_other_searchers_and_of_lost_policies_tell_nothing(tmp_path: Path) -> None:
    found = policy_run(tmp_path, proposed())
    other = replace(found.run, searcher="random")
    gone = replace(found.run, options={"policy": str(tmp_path / "gone.safetensors")})
    for run in (other, gone):
        assert policy_section(replace(found, stored=replace(found.stored, run=run)), FewKnobs()) == ()


def test_the_page_shows_them(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        run_id = save_run(store, proposed(), searcher="priority")
        html = write_report(store, run_id, FewKnobs(), tmp_path / "page.html").read_text()
    section = Page(html).sections["policy"]
    assert "probability" in section
    assert section.count("1.000 ms") == len(proposed())
