"""What a report tells of the policy that a run followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from planish.core import Candidate, Failed, Measured, Space, Step, Task, Trial
from planish.report import write_report
from planish.report.data import ReportData, read_report_data
from planish.report.predictions import SHOWN_PROPOSALS, policy_section
from planish.search.policies import PrioritySampling
from planish.store import open_store
from planish.testing.lattice import Lattice, Set
from report.page import Page
from report.planks import STARTED, TIME, Planks, save_run

LATTICE = Lattice()


class Knobs(Planks):
    """Planks whose candidates are turns of knobs; the space knows two of them to be good."""

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        return {"Set": Set}

    def space(self, task: Task, name: str) -> Space:
        del task, name
        return LATTICE


def proposed() -> list[Trial]:
    found = PrioritySampling(LATTICE, [TIME], 0).ask(100)
    return [
        Trial(candidate, Measured({"time_s": 1e-3}), i, 7, {"run": 1e-3}, "shed", STARTED + i + 1)
        for i, candidate in enumerate(found)
    ]


def read_data(path: Path, trials: list[Trial], searcher: str = "priority") -> ReportData:
    with open_store(path / "s.db") as store:
        return read_report_data(store, save_run(store, trials, searcher=searcher), Knobs())


def test_each_proposal_has_its_probability(tmp_path: Path) -> None:
    trials = proposed()
    assert len(trials) < SHOWN_PROPOSALS, "all of them are shown"
    found = policy_section(read_data(tmp_path, trials), Knobs())
    assert [each.trial.candidate for each in found] == [each.candidate for each in trials]
    assert sum(each.probability for each in found) == pytest.approx(1)
    assert max(found, key=lambda each: each.probability).trial.candidate in LATTICE.seeds()


def test_what_the_policy_cannot_write_has_none(tmp_path: Path) -> None:
    trials = [*proposed()[:1], Trial(Candidate((Set(0, 7),)), Failed("run", "timeout"), 1, 7)]
    known, strange = policy_section(read_data(tmp_path, trials), Knobs())
    assert known.probability > 0
    assert (strange.probability, strange.value) == (0, None)


def test_runs_of_other_searchers_and_of_lost_policies_tell_nothing(tmp_path: Path) -> None:
    found = read_data(tmp_path, proposed())
    other = replace(found.run, searcher="random")
    gone = replace(found.run, options={"policy": str(tmp_path / "gone.safetensors")})
    for run in (other, gone):
        assert policy_section(replace(found, stored=replace(found.stored, run=run)), Knobs()) == ()


def test_the_page_shows_them(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        run_id = save_run(store, proposed(), searcher="priority")
        html = write_report(store, run_id, Knobs(), tmp_path / "page.html").read_text()
    section = Page(html).sections["policy"]
    assert "probability" in section
    assert section.count("1.000 ms") == len(proposed())
