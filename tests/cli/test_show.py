"""`planish show`, `report` and `export`: what is stored, looked at."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cli.conftest import PROGRAM, Kept, Planish
from dashboard import stores
from planish.core import StoreError
from planish.core.hashing import versioned
from planish.store import STARTED_BY, open_store
from report.planks import measured, save_run, task_of


def test_runs_are_listed_with_their_programs(kept: Kept, planish: Planish) -> None:
    head, _, line = planish("show").out.splitlines()
    columns = ["run", "status", "started", "trials", "gain", "verdict", "searcher", "level", "program"]
    assert head.split() == columns
    assert line.startswith(f"{kept.run}   finished")
    assert re.search(rf" 40 +\S+ +faster +random +lattice +{PROGRAM} 0.0 False$", line)


def test_a_run_without_a_comparison_is_listed_without_a_verdict(planish: Planish, lattice: None) -> None:
    del lattice
    planish("tune", PROGRAM, "--trials", 5, "--option", "fail=yes")
    (run,) = json.loads(planish("show", "--format", "json").out)["runs"]
    assert (run["status"], run["gain"], run["verdict"]) == ("failed", None, None)
    assert re.search(r" failed .* 5 +random ", planish("show").out)


def test_the_list_as_json(kept: Kept, planish: Planish) -> None:
    (run,) = json.loads(planish("show", "--format", "json").out)["runs"]
    assert (run["id"], run["status"], run["trials"]) == (kept.run, "finished", 40)
    (best, *_) = json.loads(planish("show", kept.run, "--format", "json").out)["finalists"]
    assert (run["gain"], run["verdict"]) == (best["gain"], "faster")
    assert run["task"]["objectives"][0] == {"name": "time_s", "unit": "s", "direction": "down"}


def test_a_run_is_shown_with_its_result_and_its_winner(kept: Kept, planish: Planish) -> None:
    said = planish("show", kept.run[:5])
    assert f"{PROGRAM} 0.0 False\non abacus, 1 core" in said.out
    assert "random over knobs, seed 0" in said.out
    assert "40 trials failed:" in said.out
    assert said.out.endswith("\nplace\n-----\n(5, 2, 2)\n")


@pytest.mark.usefixtures("uncompared")
def test_show_and_tune_write_the_same_document(kept: Kept, planish: Planish) -> None:
    shown = json.loads(planish("show", kept.run, "--format", "json").out)
    tuned = json.loads(planish("tune", PROGRAM, "--trials", 40, "--format", "json").out)
    again = json.loads(planish("show", kept.run, "--format", "json").out)
    assert again == {name: value for name, value in tuned.items() if name not in ("again", "files")}
    assert again["finalists"] == shown["finalists"]


def test_a_run_that_failed_is_shown_with_its_reasons(planish: Planish, lattice: None) -> None:
    del lattice
    planish("tune", PROGRAM, "--trials", 5, "--option", "fail=yes")
    run = json.loads(planish("show", "--format", "json").out)["runs"][0]["id"]
    said = planish("show", run)
    assert "Nothing could be measured." in said.out
    assert "       5  build: refused: as asked" in said.out


def test_a_store_without_runs_is_empty(place: Path, planish: Planish) -> None:
    open_store(place).close()
    assert planish("show").out == "no runs yet\n"
    assert planish("report").error == "there is no run to report yet. Tune something first."
    error = planish("report", Path(__file__).parent, "-o", "out.html").error
    assert error == "the report of a build does not read --output. Leave it out."


def test_an_unknown_run_is_an_error(kept: Kept, planish: Planish) -> None:
    said = planish("show", kept.run[:-1] + "x")
    assert said.code == StoreError.exit_code
    assert said.error.endswith(f"Did you mean '{kept.run}'?")


def test_there_may_be_no_store_yet(planish: Planish, place: Path) -> None:
    assert planish("show").error.startswith(f"there is no store {place} yet. Tune something first")


@pytest.mark.parametrize("words", [(), ("--format", "json")])
def test_the_newest_run_is_reported_by_default(
    kept: Kept, planish: Planish, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(kept.place.parent)
    said = planish("report", *words)
    path = json.loads(said.out)["report"] if words else said.out.strip()
    assert path == f"planish-{kept.run}.html"
    assert kept.run in Path(path).read_text()


def test_the_run_that_was_last_worked_on_is_reported(tmp_path: Path) -> None:
    with open_store(tmp_path / "work.db") as store:
        assert store.last_run() is None
        old, new = (save_run(store, [measured(knob, 1e-3)]) for knob in (0, 1))
        assert store.last_run() == store.run(new)
        store.resume_run(old)
        store.add_trials(old, [replace(measured(2, 1e-3), time=time.time() + 1)])
        assert store.last_run() == store.run(old), "it is being worked on"
        store.finish_run(old)
        assert store.last_run() == store.run(old)
        assert store.runs()[0].id == new
        own = store.begin_run(
            task_of("oak"), searcher="genetic", space="cuts", seed=0, options={STARTED_BY: "einsum"}
        )
        store.add_trials(own, [replace(measured(3, 1e-3), time=time.time() + 2)])
        assert store.last_run() == store.run(old), "the user has not started the other one"
        for run in (old, new):
            store.delete_run(run)
        assert store.last_run() == store.run(own)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            "bulid/",
            "'bulid/' is neither the id of a run nor an existing folder. `planish runs` lists the ids.",
        ),
        (__file__, f"'{__file__}' is a file, and neither the id of a run nor the folder of a build."),
        ("1a2b", "no run '1a2b' in the store"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_what_is_no_run_and_no_folder_cannot_be_reported(planish: Planish, given: str, error: str) -> None:
    said = planish("report", given)
    assert said.code == StoreError.exit_code
    assert said.error.startswith(error)


def test_a_report_goes_where_it_is_wanted(kept: Kept, planish: Planish, tmp_path: Path) -> None:
    path = tmp_path / "new" / "r.html"
    assert planish("report", kept.run, "-o", path).out == f"{path}\n"
    assert path.exists()


@pytest.mark.usefixtures("uncompared")
def test_runs_are_reported_beside_each_other(
    kept: Kept, planish: Planish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kept.place.parent)
    document = json.loads(planish("tune", PROGRAM, "--trials", 9, "--seed", 1, "--format", "json").out)
    other = document["run"]["id"]
    said = planish("report", kept.run, other[:6], "--format", "json")
    written = json.loads(said.out)
    assert (written["runs"], written["report"]) == ([kept.run, other], "planish-comparison.html")
    page = Path("planish-comparison.html").read_text()
    assert f"<th>{kept.run}</th>" in page
    assert f"<th>{other}</th>" in page
    twice = planish("report", kept.run, kept.run)
    assert (twice.code, twice.error) == (2, f"run {kept.run} is named twice. Name each run once.")


def test_a_winner_is_exported(kept: Kept, planish: Planish, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "out"
    assert planish("export", kept.run, folder).out == f"{folder / 'place.json'}\n"
    assert (folder / "place.json").exists()
    said = planish("export", kept.run, folder, "--format", "json")
    assert json.loads(said.out) == versioned({"run": kept.run, "files": [str(folder / "place.json")]})


def test_a_level_that_has_no_other_targets_refuses_one(kept: Kept, planish: Planish, tmp_path: Path) -> None:
    said = planish("export", kept.run, tmp_path / "out", "--target", "aarch64")
    assert said.error == "level 'lattice' exports nothing for 'aarch64'. Export for this machine."
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_an_error(kept: Kept, planish: Planish) -> None:
    said = planish("export", kept.run, kept.place / "out")
    assert said.code == 2
    assert said.error.startswith(f"cannot write {kept.place / 'out'}: Not a directory")


def test_any_finalist_is_exported(kept: Kept, planish: Planish, tmp_path: Path) -> None:
    shown = json.loads(planish("show", kept.run, "--format", "json").out)["finalists"]
    for number, finalist in enumerate(shown, 1):
        folder = tmp_path / str(number)
        assert planish("export", kept.run, folder, "--pick", number).code == 0
        assert json.loads((folder / "place.json").read_text()) == finalist["steps"]
    said = planish("export", kept.run, tmp_path / "more", "--pick", len(shown) + 1)
    assert f"run {kept.run} has no #{len(shown) + 1}: {len(shown)} were compared" in said.error


def test_a_run_without_a_result_cannot_be_exported(planish: Planish, lattice: None, tmp_path: Path) -> None:
    del lattice
    planish("tune", PROGRAM, "--trials", 5, "--option", "fail=yes")
    run = json.loads(planish("show", "--format", "json").out)["runs"][0]["id"]
    assert planish("export", run, tmp_path).error == (
        f"run {run} has no result: no candidate was measured. Tune again."
    )


def test_hosts_and_clients_are_counted(planish: Planish, lattice: None, tmp_path: Path) -> None:
    del lattice
    place = tmp_path / "planish.db"
    with open_store(place) as store:
        trials = [
            replace(
                stores.measured(index, 1e-3), host="oak" if index else "elm", client="ann" if index else "bob"
            )
            for index in range(3)
        ]
        several = stores.add_run(store, trials)
        one = stores.add_run(store, [stores.measured(0, 1e-3)])
    shown = planish("show", several, "--store", place).out
    assert re.search(r"^hosts +oak \(2 trials\), elm \(1 trial\)$", shown, re.MULTILINE)
    assert re.search(r"^clients +ann \(2 trials\), bob \(1 trial\)$", shown, re.MULTILINE)
    assert not re.search("^(hosts|clients) ", planish("show", one, "--store", place).out, re.MULTILINE)
    document = json.loads(planish("show", several, "--store", place, "--format", "json").out)
    assert (document["hosts"], document["clients"]) == ({"oak": 2, "elm": 1}, {"ann": 2, "bob": 1})
