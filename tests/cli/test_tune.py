"""`planish tune`."""

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, cast

import pytest

from cli import lattices
from cli.conftest import PROGRAM, Kept, Offer, Planish
from planish.cli.request import command_again
from planish.core import AllFailedError, Candidate, ProgramError, Space, Target, Task
from planish.core.wording import multiple
from planish.store import open_store
from planish.testing.synthetic import Lattice
from planish.tuning.result import Result
from planish.tuning.settings import Budget

pytestmark = pytest.mark.usefixtures("lattice")
SHORT = "--trials", 20, "--finalists", 1
GAIN = multiple(1.719)
OPTIMUM = Lattice((6, 4, 4)).at((5, 2, 2))


def test_the_winner_is_shown_beside_the_baseline(planish: Planish) -> None:
    said = planish("tune", PROGRAM, "--trials", 40)
    assert said.code == 0
    baseline, first, *_ = [line for line in said.out.splitlines() if line.startswith(("baseline", "#"))]
    assert "1.330 ms" in baseline
    assert "0.7519" in baseline
    assert first.split() == ["#1", "773.8", "µs", "1.292", GAIN, GAIN, "to", GAIN, "faster"]
    assert f"{GAIN} faster than the baseline." in said.out


class Unreadable(lattices.LatticeLevel):
    """A level that does not read a stored program."""

    def read(self, text: str, target: Target) -> NoReturn:
        del text, target
        raise ProgramError("it is read again")


class OptimalBaseline(lattices.LatticeLevel):
    """A level whose baseline is the optimum."""

    def baseline(self, task: Task) -> Candidate:
        del task
        return OPTIMUM


def test_the_program_of_a_result_is_not_parsed_again(planish: Planish, offer: Offer, tmp_path: Path) -> None:
    offer(Unreadable)
    words = ("tune", PROGRAM, *SHORT, "--report", tmp_path / "page.html", "--export", tmp_path / "winner")
    said = planish(*words)
    assert "No gain" not in said.out
    assert "faster than the baseline." in said.out
    assert "refused" not in (tmp_path / "page.html").read_text(), "nor for the report"
    assert (tmp_path / "winner" / "place.json").exists()


def test_failures_are_grouped_and_the_next_commands_are_named(planish: Planish) -> None:
    said = planish("tune", PROGRAM, *SHORT)
    assert re.search(
        r"^(\d+) of 20 trials failed:\n +\1  build: last value of the last knob", said.out, re.MULTILINE
    )
    run = json.loads(planish("show", "--format", "json").out)["runs"][0]["id"]
    assert f"planish show {run}, planish report {run}, planish export {run} DIR" in said.out


@pytest.mark.usefixtures("uncompared")
def test_what_was_not_compared_is_not_called_a_gain(planish: Planish) -> None:
    said = planish("tune", PROGRAM, *SHORT)
    assert "Undecided: not compared with the baseline." in said.out
    assert "best time of the search: 773.8 µs" in said.out
    assert "faster" not in said.out


def test_a_gain_within_the_noise_is_called_no_gain(planish: Planish, offer: Offer) -> None:
    offer(OptimalBaseline)
    said = planish("tune", PROGRAM, "--trials", 40, "--finalists", 1)
    assert "No gain: no candidate is better than the baseline" in said.out
    assert "#1 = baseline" in said.out


def test_a_loss_is_called_no_gain_and_the_baseline_is_exported(planish: Planish, tmp_path: Path) -> None:
    place = tmp_path / "place.json"
    said = planish(
        "tune", PROGRAM, "--searcher", "exhaustive", "--trials", 1, "--export", tmp_path, "--report",
        tmp_path / "r.html",
    )  # fmt: skip
    assert "No gain: no candidate is better than the baseline (Set(knob=0, value=1))." in said.out
    assert json.loads(place.read_text()) == [["Set", {"knob": 0, "value": 1}]]
    assert re.search(f"^#2 .* {multiple(0.95)} .* slower$", said.out, re.MULTILINE)
    page = (tmp_path / "r.html").read_text()
    assert "No candidate is better than the baseline" in page
    assert f"the best other candidate is #2: {multiple(0.95)}" in page
    assert "#1 = baseline" in page


def test_json_is_one_document_and_nothing_else(planish: Planish) -> None:
    said = planish("tune", PROGRAM, "--trials", 40, "--finalists", 2, "--format", "json")
    assert said.err == ""
    found = json.loads(said.out)
    assert found["task"]["program"].startswith(PROGRAM)
    assert found["run"]["status"] == "finished"
    assert (found["trials"], found["cached"], found["failed"]) == (40, 0, 11)
    assert found["baseline"]["median"] == pytest.approx(1.33e-3)
    winner = found["finalists"][0]
    assert (winner["verdict"], winner["hash"]) == ("faster", OPTIMUM.hash)
    assert winner["gain"] == pytest.approx(1.719, rel=1e-3)
    assert found["verdict"]["kind"] == "faster"
    assert found["failures"][0]["reason"] == "last value of the last knob"


def test_the_same_command_goes_on(kept: Kept, planish: Planish) -> None:
    found = json.loads(planish("tune", PROGRAM, "--trials", 50, "--finalists", 1, "--format", "json").out)
    assert found["run"]["id"] == kept.run
    assert found["trials"] == 50


@pytest.mark.usefixtures("uncompared")
def test_a_search_without_comparison_keeps_the_comparison_of_before(kept: Kept, planish: Planish) -> None:
    before = json.loads(planish("show", kept.run, "--format", "json").out)["finalists"]
    planish("tune", PROGRAM, *SHORT)
    assert json.loads(planish("show", kept.run, "--format", "json").out)["finalists"] == before


def test_remeasure_begins_anew(kept: Kept, planish: Planish) -> None:
    found = json.loads(planish("tune", PROGRAM, *SHORT, "--remeasure", "--format", "json").out)
    assert found["run"]["id"] != kept.run
    assert (found["trials"], found["cached"]) == (20, 0)


def test_the_settings_reach_the_search(planish: Planish) -> None:
    words = ["--searcher", "genetic", "--set", "population=7", "--set", "mutation=0.5", "--seed", 3]
    words += ["--space", "knobs", "--objective", "gflops", "--cores", 2, "--option", "pause=0.001"]
    found = json.loads(planish("tune", PROGRAM, *SHORT, *words, "--format", "json").out)
    run, task = found["run"], found["task"]
    assert (run["searcher"], run["space"], run["seed"]) == ("genetic", "knobs", 3)
    assert run["options"] == {"population": "7", "mutation": "0.5"}
    assert (task["target"]["cores"], task["objectives"][0]["name"]) == (2, "gflops")
    assert task["program"] == f"{PROGRAM} 0.001 False"


def test_a_target_value_ends_the_search(planish: Planish) -> None:
    words = ["--trials", 40, "--target-value", 1.2e-3, "--finalists", 1, "--format", "json"]
    found = json.loads(planish("tune", PROGRAM, *words).out)
    assert found["best"]["values"]["time_s"] <= 1.2e-3
    assert found["trials"] < 40


def test_report_and_export_are_written(planish: Planish, tmp_path: Path) -> None:
    report, folder = tmp_path / "r.html", tmp_path / "out"
    said = planish("tune", PROGRAM, *SHORT, "--report", report, "--export", folder)
    assert f"wrote {report}\nwrote {folder / 'place.json'}\n" in said.out
    assert report.read_text().startswith("<!DOCTYPE html>")
    assert json.loads((folder / "place.json").read_text())[0][0] == "Set"


def test_a_report_that_can_no_longer_be_written_loses_nothing(
    planish: Planish, offer: Offer, tmp_path: Path
) -> None:
    class InTheWay(lattices.LatticeLevel):
        def space(self, task: Task, name: str) -> Space:
            (tmp_path / "file").write_text("")  # where the report's folder was to be made
            return super().space(task, name)

    offer(InTheWay)
    said = planish("tune", PROGRAM, *SHORT, "--report", tmp_path / "file" / "r.html")
    assert said.code == 2
    assert said.err.splitlines()[-1].startswith("planish: error: the report cannot be written")
    assert "faster than the baseline" in said.out
    assert "finished" in planish("show").out


def test_if_all_fail_the_reasons_are_named(planish: Planish, place: Path) -> None:
    said = planish("tune", PROGRAM, *SHORT, "--option", "fail=yes", "--format", "json")
    assert said.code == AllFailedError.exit_code
    assert said.out == ""
    assert said.error.startswith("none of 20 candidates could be measured: build: refused (20)")
    with open_store(place, read_only=True) as store:
        assert [(run.status, run.trials) for run in store.runs()] == [("failed", 20)]


def test_progress_goes_to_standard_error(planish: Planish) -> None:
    said = planish("tune", PROGRAM, "--trials", 40, "--finalists", 1, "--option", "pause=0.04")
    begin, plan, *lines, end = said.err.splitlines()
    assert plan == "final comparison: at most as long as the search (min 5 s)"
    assert begin.endswith("lattice 6x4x4 0.04 False")
    assert end.startswith("comparing 1 candidate with the baseline: a")
    assert re.search(
        r"(about \d+ s, at most \d+ s while it is undecided|would need about \d+ s); Ctrl-C skips", end
    )
    assert len(lines) >= 2
    assert re.search(r"; \d+ trials?, ", lines[0])
    assert lines[0].endswith("s left")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--export", "{file}"), "cannot write {file}: {file} is not a folder"),
        (("--export", "{file}/out"), "cannot write {file}/out: {file} is not a folder"),
        (("--report", "{file}/r.html"), "cannot write {file}/r.html: {file} is not a folder"),
        (("--report", "{folder}"), "cannot write the report {folder}: it is a folder"),
        (("--export", "/proc/1/out"), "cannot write /proc/1/out: /proc/1"),
    ],
    ids=["file", "in a file", "report in a file", "folder", "refused"],
)
def test_where_nothing_can_be_written_is_reported_before_anything_is_stored(
    planish: Planish, place: Path, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    (tmp_path / "file").write_text("mine")
    names = {"file": tmp_path / "file", "folder": tmp_path}
    said = planish("tune", PROGRAM, *SHORT, *(word.format(**names) for word in words))
    assert (said.code, said.out) == (2, "")
    assert said.error.startswith(why.format(**names))
    assert not place.exists()


def test_places_that_are_to_be_made_are_not_made_before_there_is_a_result(
    planish: Planish, tmp_path: Path
) -> None:
    new = tmp_path / "a" / "b"
    said = planish(
        "tune", PROGRAM, "--trials", 5, "--option", "fail=yes", "--export", new, "--report", new / "r"
    )
    assert said.code == AllFailedError.exit_code
    assert not new.parent.exists()
    said = planish("tune", PROGRAM, *SHORT, "--export", new, "--report", new / "r")
    assert said.code == 0
    assert {file.name for file in new.iterdir()} == {"place.json", "r"}


@pytest.mark.usefixtures("uncompared")
def test_an_undecided_run_prints_the_command_that_goes_on(planish: Planish, place: Path) -> None:
    words = ("tune", PROGRAM, "--trials", 3, "--store", place)
    line = shlex.join(["planish", *map(str, words)])
    assert f"Run this command, which completes the comparison first:\n    {line}\n" in planish(*words).out
    run = json.loads(planish(*words, "--format", "json").out)
    assert run["again"].startswith("planish tune 'lattice ")
    shown = planish("show", run["run"]["id"]).out
    assert "Repeat the command, or the call of planish.tune, that made this run: it completes the" in shown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("a.c", "--seconds", "5", "--seed", "1"), "planish tune a.c --seed 1 --seconds 60"),
        (("a.c", "--remeasure", "--seed", "1"), "planish tune a.c --seed 1 --seconds 60"),
        (("--remeasure", "--", "--remeasure"), "planish tune --seconds 60 -- --remeasure"),
        (("--seconds=5", "--", "-a.c"), "planish tune --seconds 60 -- -a.c"),
        (("a.c", "--store", "postgresql://me:secret@forge/x"), "planish tune a.c --store '{}' --seconds 60"),
    ],
)
def test_the_command_that_goes_on_has_time_for_all_repeats_and_no_password(
    words: tuple[str, ...], expected: str
) -> None:
    note = "only 5 of 15 repeats of the comparison fitted into 10 s; all fit in a budget of about 60 s"
    data = cast("Result", SimpleNamespace(notes=("of the search", note)))
    expected = expected.format("postgresql://me:***@forge/x")
    assert command_again(("tune", *words), data, Budget(seconds=5)) == expected


@pytest.mark.usefixtures("lattice")
def test_a_budget_beyond_the_space_ends_with_the_space(planish: Planish) -> None:
    words = ("tune", "lattice 61x8", "--trials", 97_600, "--finalists", 1, "--format", "json")
    found = json.loads(planish(*words).out)
    assert (found["trials"], found["run"]["status"]) == (488, "finished")
    assert "the search ended before its budget: all 488 candidates of the space were tried" in found["notes"]
