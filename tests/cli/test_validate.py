"""`planish validate`: a stored result that holds, and what may have become of one that does not."""

import json
import shlex
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli import lattices
from cli.conftest import PROGRAM, Kept, Offer, Planish
from fake_executors import UnsteadyExecutors
from planish import validate
from planish.core import MismatchError, PlanishError, Program, Target, TargetError, Task
from planish.measure import Plan
from store.resealing import reseal

QUESTIONS = ("replay", "answer", "value")


def change(place: Path, table: str, column: str, how: Callable[[Any], Any]) -> None:
    """Change a column of JSON in every row."""
    with sqlite3.connect(place) as connection:
        for key, old in connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            new = json.dumps(how(json.loads(old)))
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, key))
    connection.close()
    reseal(place)


def other_ratio(data: dict[str, Any]) -> dict[str, Any]:
    """Claim that it takes a tenth of the baseline's time."""
    data["objectives"]["time_s"]["ratio"] = [0.1, 0.09, 0.11]
    return data


def verdicts(run: str) -> tuple[str, ...]:
    return tuple(check.verdict for check in validate(run).checks)


def test_a_result_that_holds(kept: Kept, planish: Planish) -> None:
    said = planish("validate", kept.run[:6])
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.out.splitlines()[2:]] == [[q, "holds"] for q in QUESTIONS]
    assert "1.719 to 1.719 now, 1.719 to 1.719 recorded" in said.out
    found = json.loads(planish("validate", kept.run, "--format", "json").out)
    assert (found["run"], found["holds"]) == (kept.run, True)
    assert found["replay"]["detail"] == "3 steps of level lattice, version 1"


def test_any_finalist_is_tried(kept: Kept, planish: Planish) -> None:
    shown = json.loads(planish("show", kept.run, "--format", "json").out)["finalists"]
    said = planish("validate", kept.run, "--pick", 2)
    assert said.code == 0
    assert f"{shown[1]['gain']:.4g} to" in said.out
    assert f"has no #{len(shown) + 1}" in planish("validate", kept.run, "--pick", len(shown) + 1).error


def test_all_objectives_are_tried(lattice: None, planish: Planish) -> None:
    del lattice
    said = planish("tune", PROGRAM, "--trials", 8, "--objective", "time,gflops", "--format", "json")
    run = json.loads(said.out)["run"]["id"]
    found = planish("validate", run).out
    assert "time_s, times better than the baseline: " in found
    assert "; gflops, times better than the baseline: " in found


def test_a_value_that_is_no_longer_reached(kept: Kept, planish: Planish) -> None:
    change(kept.place, "results", "data", other_ratio)
    said = planish("validate", kept.run)
    assert said.code == MismatchError.exit_code
    assert "value    differs" in said.out
    assert said.error.startswith(f"run {kept.run} does not reproduce: value: times better than the baseline")
    assert "1.719 to 1.719 now, 9.091 to 11.11 recorded" in said.error
    found = json.loads(planish("validate", kept.run, "--format", "json").out)
    assert (found["holds"], found["value"]["verdict"]) == (False, "differs")


def test_a_value_that_is_too_uncertain_is_undecided(
    kept: Kept, planish: Planish, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = UnsteadyExecutors()
    with monkeypatch.context() as patched:
        patched.setattr("planish.tuning.validate.PLAN", Plan())
        patched.setattr("planish.measure.executors.LocalExecutor", machine)
        words = ("validate", kept.run, "--store", kept.place)
        said = planish(*words)
        assert (said.code, machine.started) == (0, 5)
        assert "value    undecided" in said.out
        line = f"planish validate {kept.run} --store {kept.place} --processes 10"
        assert said.out.endswith(f"Run this command:\n    {line}\n")
        found = json.loads(planish(*shlex.split(line)[1:], "--format", "json").out)
        assert (found["holds"], found["value"]["verdict"], machine.started) == (True, "undecided", 15)
        assert (
            found["again"] == f"planish validate {kept.run} --store {kept.place} --format json --processes 20"
        )
    assert json.loads(planish(*words, "--format", "json").out)["again"] == ""


class Changed(lattices.LatticeLevel):
    """The next version of the level, on another machine."""

    version = "2"

    def target(self, program: Program, cores: int) -> Target:
        del program
        return Target("slide rule", frozenset(), cores, {"carver": "2.0"})


def test_what_changed_is_named(kept: Kept, offer: Offer) -> None:
    change(kept.place, "results", "data", other_ratio)
    offer(Changed)
    assert validate(kept.run).value.detail.endswith(
        "(abacus then, slide rule now; carver 1.0 then, 2.0 now; level version 1 then, 2 now)"
    )


class Failing(lattices.LatticeLevel):
    """A level that no longer builds the best candidate."""

    def evaluator(self, task: Task, *, final: bool = False) -> lattices.Measuring:
        return replace(super().evaluator(task, final=final), forbidden=(5, 2, 2))


def test_an_answer_that_is_no_longer_given(kept: Kept, offer: Offer) -> None:
    offer(Failing)
    found = validate(kept.run)
    assert [check.verdict for check in found.checks] == ["holds", "differs", "not done"]
    assert found.answer.detail == "build: refused: as asked"
    with pytest.raises(MismatchError, match="answer: build: refused"):
        found.require()


def test_a_candidate_that_reads_back_as_another(kept: Kept) -> None:
    change(kept.place, "results", "candidate", lambda steps: steps[:-1])
    found = validate(kept.run)
    assert [check.verdict for check in found.checks] == ["differs", "not done", "not done"]
    assert found.replay.detail == "the stored candidate reads back differently"


def test_a_step_that_the_level_no_longer_has(kept: Kept) -> None:
    change(kept.place, "results", "candidate", lambda steps: [["Turn", {}], *steps])
    found = validate(kept.run)
    assert found.replay.detail.startswith("unknown step 'Turn'")
    assert not found.holds


def test_a_program_that_reads_back_as_another(kept: Kept) -> None:
    with sqlite3.connect(kept.place) as connection:
        connection.execute("UPDATE tasks SET program = 'lattice 8x4x4 0.0 False'")
    connection.close()
    reseal(kept.place)
    assert validate(kept.run).replay.detail == "the stored program reads back differently"


@pytest.mark.usefixtures("uncompared")
def test_without_a_comparison_on_record_the_value_itself_counts(kept: Kept, planish: Planish) -> None:
    planish("tune", PROGRAM, "--trials", 10, "--seed", 5)
    run = json.loads(planish("show", "--format", "json").out)["runs"][0]["id"]
    assert run != kept.run
    assert verdicts(run) == ("holds", "holds", "holds")
    assert validate(run).value.detail.startswith("time_s: ")
    change(kept.place, "trials", "outcome", _twice_as_slow)
    assert verdicts(run) == ("holds", "holds", "differs")


def _twice_as_slow(outcome: dict[str, Any]) -> dict[str, Any]:
    values = {name: 2 * value for name, value in outcome.get("values", {}).items()}
    return {**outcome, "values": values, "samples": {}} if values else outcome


class Coreless(lattices.LatticeLevel):
    """A level on a machine with too few cores."""

    def target(self, program: Program, cores: int) -> Target:
        del program
        raise TargetError(f"{cores} cores requested")


def test_a_run_without_result_or_with_too_many_cores_is_an_error(
    kept: Kept, planish: Planish, offer: Offer
) -> None:
    planish("tune", PROGRAM, "--trials", 5, "--option", "fail=yes")
    run = json.loads(planish("show", "--format", "json").out)["runs"][0]["id"]
    with pytest.raises(PlanishError, match="has no result"):
        validate(run)
    offer(Coreless)
    with pytest.raises(TargetError):
        validate(kept.run)
