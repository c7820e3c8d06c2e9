"""The end of a run: minimized, measured again, checked, scored, explained, stored."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from fake_executors import SameProcessExecutor
from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    Measured,
    PlanishError,
    Space,
    TargetError,
    Task,
)
from planish.measure import CutShortError, Plan, seconds_left
from planish.measure.comparison_rounds import VariantTag
from planish.store import ResultRow, Store, open_store
from planish.testing.synthetic import Set
from planish.tuning import ablation, remeasure
from planish.tuning.api import tune_program
from planish.tuning.budget import FinalLimits
from planish.tuning.comparison import Comparison, Finalist
from planish.tuning.comparison_codec import (
    decode,
    decode_interim,
    decode_notes,
    encode_interim,
    is_interim,
    medians,
)
from planish.tuning.recorder import Progress, Silent
from planish.tuning.remeasure import drop_interim
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings
from tuning.tradeoff_level import Full, Measuring, Plain, Text, Trade, first

SETTINGS = Settings(objectives=("time", "error"), searcher="random", workers=1)
ONE_PROCESS = FinalLimits(Plan(processes=1, most=40))
NO_TIME = FinalLimits(ONE_PROCESS.plan, least_s=0.0, share=0.0, compared=0.0)


@dataclass(frozen=True)
class Ended:
    """A result, what is stored of it, and how the run ended."""

    result: Result
    stored: list[ResultRow]
    status: str


def ended(
    folder: Path,
    level: Plain,
    settings: Settings = SETTINGS,
    trials: int = 60,
    limits: FinalLimits = ONE_PROCESS,
    **given: Any,
) -> Ended:
    """Tune; gives what came of it."""
    given = {"start": SameProcessExecutor, **given}
    with open_store(folder / "store.db") as store:
        budget = Budget(trials=trials)
        result = tune_program(
            level, Text(), budget=budget, settings=settings, store=store, limits=limits, **given
        )
        found = store.result_rows(result.run.id, level.steps)
        return Ended(result, list(found), store.run(result.run.id).status)


@dataclass
class Among(Plain):
    """The level with a space of some candidates alone."""

    candidates: tuple[Candidate, ...] = ()

    def space(self, task: Task, name: str) -> Space:
        del task, name
        return Few(self.candidates)


class Few(Trade):
    """A space of some candidates alone."""

    def __init__(self, candidates: tuple[Candidate, ...]) -> None:
        super().__init__()
        self._few = candidates

    def candidates(self) -> Iterator[Candidate]:
        return iter(self._few)


class AtStage(Silent):
    """Calls a function when a stage of the end begins, by the first words of its message."""

    def __init__(self, message: str, call: Callable[[], None]) -> None:
        self._message, self._call = message, call

    def ending(self, progress: Progress, what: str) -> None:
        del progress
        if what.startswith(self._message):
            self._call()


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return ended(tmp_path_factory.mktemp("full"), Full())


def comparison(found: Ended) -> Comparison:
    """Return the comparison, which must be there."""
    assert found.result.comparison is not None
    return found.result.comparison


def by_knob(result: Result) -> dict[int, Finalist]:
    """Return the members of the front by the value of knob 0."""
    return {first(member.candidate): member for member in result.finalists}


def test_the_finalists_are_the_front_and_minimal(full: Ended) -> None:
    space = Trade()
    assert {space.position(member.candidate) for member in full.result.finalists} == {
        (0, 3, 0, 0),
        (1, 3, 0, 0),
        (2, 3, 0, 0),
        (3, 3, 0, 0),
    }
    assert all(member.n_steps_found >= len(member.candidate.steps) for member in full.result.finalists)
    assert any(member.n_steps_found > len(member.candidate.steps) for member in full.result.finalists)


def test_they_are_judged_by_every_objective(full: Ended) -> None:
    members = by_knob(full.result)
    assert [members[knob].measured["error"].verdict for knob in (0, 1, 2)] == ["better"] * 3
    assert [members[knob].measured["time_s"].verdict for knob in (0, 1, 2)] == ["same", "better", "better"]
    assert comparison(full).baseline.measured["error"].median == pytest.approx(0.5)
    assert members[1].measured["error"].median == pytest.approx(0.25)
    assert members[1].trial["error"] == pytest.approx(0.25)


def test_what_the_cross_check_denies_is_no_win_and_comes_last(full: Ended) -> None:
    assert [first(member.candidate) for member in full.result.finalists] == [2, 1, 0, 3]
    denied = full.result.finalists[-1]
    assert denied.cross_check.why == "far apart"
    assert {denied.measured["time_s"].verdict, denied.measured["error"].verdict} == {"failed"}
    assert full.result.candidate != denied.candidate


def test_scores_are_those_of_unseen_data(full: Ended) -> None:
    members = by_knob(full.result)
    assert comparison(full).baseline.scores == {"error_final": pytest.approx(0.51)}
    assert members[1].scores == {"error_final": pytest.approx(0.26)}
    assert members[2].scores == {}
    assert members[2].notes == ("cannot be scored on unseen data: not finite: none is",)


def test_another_baseline_is_measured_too(full: Ended) -> None:
    reference = comparison(full).secondary_baseline
    assert reference is not None
    assert reference.name == "slow"
    assert reference.lead.median == pytest.approx(2e-3, rel=0.01)


class Busy(SameProcessExecutor):
    """Takes three times as long where the other baseline is measured beside the first."""

    def __init__(self, spec: EvaluatorSpec, **_: object) -> None:
        super().__init__(spec)
        self._times = 3.0 if Measuring(slower=2.0) in getattr(spec, "specs", ()) else 1.0

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        found = super()._evaluate(candidate)
        assert isinstance(found.outcome, Measured)
        values = {name: self._times * value for name, value in found.outcome.values.items()}
        return replace(found, outcome=Measured(values))


def test_another_baseline_is_shown_by_its_ratio_to_the_baseline(tmp_path: Path) -> None:
    reference = comparison(ended(tmp_path, Full(), start=Busy)).secondary_baseline
    assert reference is not None
    assert reference.lead.median == pytest.approx(2e-3, rel=0.01)


def test_effects_are_reported_of_each_step_and_pair(full: Ended) -> None:
    member = by_knob(full.result)[2]
    assert list(member.candidate.steps) == [Set(0, 2), Set(1, 3)]
    one, other = member.main_effects
    (pair,) = member.interactions
    assert one.values == {"time_s": pytest.approx(0.8, rel=0.01), "error": 0}
    assert other.values == {"time_s": pytest.approx(1, rel=0.01), "error": pytest.approx(-0.3)}
    assert pair.values == {"time_s": pytest.approx(0.8, rel=0.01), "error": pytest.approx(-0.2)}
    assert pair.additive == {"time_s": True, "error": False}


def test_the_store_keeps_all_of_it(full: Ended) -> None:
    assert full.status == "finished"
    assert [f.candidate for f in full.stored] == [m.candidate for m in full.result.finalists]
    data: Mapping[str, Any] = full.stored[0].data
    found, member = comparison(full), full.result.finalists[0]
    ratio = member.measured["error"].ratio
    assert found.secondary_baseline is not None
    assert json.loads(json.dumps(dict(data))) == {
        "version": 5,
        "hash": member.candidate.hash,
        "label": "",
        "samples": [],
        "baseline": {"median": found.baseline.lead.median, "samples": []},
        "objectives": {
            "time_s": data["objectives"]["time_s"],
            "error": {
                "median": member.measured["error"].median,
                "ratio": [ratio.value, ratio.low, ratio.high],
                "verdict": "better",
                "baseline": found.baseline.measured["error"].median,
            },
        },
        "scores": member.scores,
        "baseline_scores": found.baseline.scores,
        "baseline_cross_check": {"agrees": True, "difference": 1e-6, "why": ""},
        "cross_check": {"agrees": True, "difference": 1e-6, "why": ""},
        "edits": {"found": member.n_steps_found, "left": 2},
        "main_effects": [{"steps": [*e.steps], "values": e.values} for e in member.main_effects],
        "interactions": [
            {"steps": [0, 1], "values": e.values, "additive": e.additive} for e in member.interactions
        ],
        "noise": {"time_s": 0.01, "error": 0.0},
        "secondary_baseline": {"name": "slow", "objectives": medians(found.secondary_baseline)},
        "trial": member.trial,
        "notes": [*member.notes],
        "run_notes": [],
    }
    shared = {
        "baseline",
        "baseline_scores",
        "baseline_cross_check",
        "noise",
        "secondary_baseline",
        "run_notes",
    }
    assert shared.isdisjoint(full.stored[1].data), "what belongs to all is kept once"


def test_the_store_gives_back_what_was_found(full: Ended) -> None:
    assert decode(full.stored, full.result.task.objectives) == comparison(full)


def test_time_is_split_by_steps(full: Ended) -> None:
    assert {"minimize", "compare", "cross_check", "eval_heldout", "ablate"} <= {*full.result.run.seconds}


def test_a_level_needs_none_of_it(tmp_path: Path) -> None:
    plain = ended(tmp_path, Plain())
    assert len(plain.result.finalists) == 4
    assert {member.cross_check.agrees for member in plain.result.finalists} == {None}
    assert "secondary_baseline" not in plain.stored[0].data
    assert plain.result.notes == ()


def test_one_objective_is_as_ever(tmp_path: Path) -> None:
    one = ended(tmp_path, Plain(), Settings(objectives=("time",), searcher="random", workers=1))
    assert len(one.result.finalists) == 3
    assert all(member.n_steps_found == len(member.candidate.steps) for member in one.result.finalists)
    assert (one.stored[0].data["main_effects"], one.stored[0].data["interactions"]) == ([], [])
    assert not {"minimize", "cross_check", "eval_heldout", "ablate"} & {*one.result.run.seconds}


@dataclass
class Careful(Among):
    """The level where the baseline, and something else that is as good, are compared with the winner too."""

    def variants(self, task: Task, candidate: Candidate) -> Sequence[Candidate]:
        """Return them."""
        del task, candidate
        return Candidate(), Candidate((Set(3, 2),))


def test_the_baseline_is_the_result_where_nothing_is_better(tmp_path: Path) -> None:
    idle = Candidate((Set(3, 1),))
    one = Settings(objectives=("time",), searcher="exhaustive", workers=1)
    found = ended(tmp_path, Careful(candidates=(idle,)), one)
    assert found.result.candidate == Candidate()
    assert found.stored[0].candidate == Candidate()
    assert {member.candidate for member in found.result.finalists} == {
        Candidate(),
        idle,
        Candidate((Set(3, 2),)),
    }


def test_skipped_finalists_are_reported(tmp_path: Path) -> None:
    one = Settings(objectives=("time",), searcher="random", workers=1)
    found = ended(tmp_path, Plain(), one, limits=NO_TIME)
    assert len(found.result.finalists) == 1
    (note,) = found.result.notes
    assert note.startswith("only 1 of 3 repeats of the comparison fitted into 0 s")
    assert note.endswith("all fit in a budget of about 5 s")
    assert found.stored[0].data["run_notes"] == [*found.result.notes]
    left = comparison(found).unmeasured
    assert [(each.name, each.verdict, each.why) for each in left] == [
        ("#2", "undecided", "no time left to measure it"),
        ("#3", "undecided", "no time left to measure it"),
    ]
    groups = comparison(found).unmeasured_groups
    assert [names for names, _ in groups] == ["#2, #3"], "they are shown in one line"
    assert found.result.summary().count("no time left to measure it") == 1
    assert all(each.trial for each in left), "what the search measured is known"
    assert [row.data.get("unmeasured") for row in found.stored] == [None, "undecided", "undecided"]


def doubtful(row: ResultRow) -> ResultRow:
    """Return a stored row of one objective whose interval is too wide to decide."""
    found = row.data["objectives"]["time_s"] | {"ratio": [0.7, 0.045, 50.0], "verdict": "undecided"}
    return replace(row, data={**row.data, "objectives": {"time_s": found}})


def test_an_undecided_comparison_is_repeated_before_the_search_goes_on(tmp_path: Path) -> None:
    one, level = Settings(objectives=("time",), searcher="random", workers=1), Plain()
    first = ended(tmp_path, level, one, trials=20)
    with open_store(tmp_path / "store.db") as store:
        store.resume_run(first.result.run.id)
        store.save_result(first.result.run.id, [*map(doubtful, first.stored)])
        store.finish_run(first.result.run.id)
        read = decode(store.result_rows(first.result.run.id, level.steps), first.result.task.objectives)
    assert read is not None
    assert read.undecided(level.baseline(first.result.task)) == read.finalists[0]
    again = ended(tmp_path, level, one, trials=20)
    assert again.result.finalists[0].verdict == "better"
    assert "the last comparison was undecided" in again.result.notes[0]
    assert again.result.run.id == first.result.run.id
    more = ended(tmp_path, level, one, trials=30)
    assert (more.result.run.trials, more.result.notes) == (30, ())


@pytest.mark.parametrize(
    ("method", "note"),
    [
        ("cross_check", "not cross-checked: iree is not there. Install it"),
        ("scores", "the finalists were not scored on unseen data: iree is not there. Install it"),
        ("secondary_baseline", "the secondary baseline was not measured: iree is not there. Install it"),
    ],
)
def test_what_cannot_be_done_is_said_once(tmp_path: Path, method: str, note: str) -> None:
    level = Full(trouble=method, error=TargetError("iree is not there", "Install it."))
    found = ended(tmp_path, level)
    assert found.result.notes == (note,)
    assert found.stored[0].data["run_notes"] == [note]
    why = found.stored[0].data["cross_check"]["why"]
    assert why == (note if method == "cross_check" else "")


def test_what_fails_after_the_comparison_takes_nothing_of_it_away(tmp_path: Path) -> None:
    broken = list[bool]()

    class Breaking(Full):
        def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
            if broken:
                raise PlanishError("the disk is full", "Free some.")
            return super().evaluator(task, final=final)

    listener = AtStage("measuring the effects", lambda: broken.append(True))
    found = ended(tmp_path, Breaking(), listener=listener)
    assert found.result.notes == (
        "the effects of single steps were not measured: the disk is full. Free some",
    )
    assert found.status == "finished"
    assert len(comparison(found).finalists) == len(found.stored) == 4
    assert comparison(found).secondary_baseline is not None, "what came before it is kept"


@pytest.mark.parametrize("method", ["cross_check", "scores", "secondary_baseline"])
def test_ctrl_c_keeps_what_is_known(tmp_path: Path, method: str) -> None:
    found = ended(tmp_path, Full(trouble=method, error=KeyboardInterrupt()))
    assert found.status == "stopped"
    assert found.result.stopped
    assert len(found.stored) == 4
    assert bool(comparison(found).baseline.scores) == (method == "secondary_baseline")


def test_ctrl_c_while_minimizing_leaves_the_search_alone(tmp_path: Path) -> None:
    found = ended(tmp_path, Full(), listener=AtStage("minimizing", interrupt))
    assert (found.status, found.stored, found.result.finalists) == ("stopped", [], ())


def test_no_time_leaves_finalists_as_they_are_and_says_so(tmp_path: Path) -> None:
    class Distinct(Trade):
        def state_key(self, candidate: Candidate) -> str:
            return candidate.hash

    class Apart(Plain):
        def space(self, task: Task, name: str) -> Space:
            del task, name
            return Distinct()

    found = ended(tmp_path, Apart(), limits=NO_TIME)
    notes = {note for member in found.result.finalists for note in member.notes}
    assert notes == {"not completely minimized: no time left"}


def test_effects_that_there_is_no_time_for_are_left_out_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "deadline", lambda: 0.0)
    found = ended(tmp_path, Plain())
    members = by_knob(found.result)
    short, long = members[0], members[2]
    assert [effect.steps for effect in short.main_effects] == [(0,)], "the comparison measured it"
    assert [(e.steps, e.values) for e in long.main_effects] == [((1,), short.main_effects[0].values)], (
        "it is a member too"
    )
    assert [e.values["time_s"] for e in long.interactions] == [long.lead.ratio.value]
    assert long.interactions[0].additive == {}, "for that each alone must be known"
    assert found.result.notes == ("ran out of time while measuring the effects of single steps and of pairs",)


def test_a_front_of_idle_steps_is_the_baseline(tmp_path: Path) -> None:
    idle = Candidate((Set(3, 2),))
    found = ended(tmp_path, Among(candidates=(idle,)), replace(SETTINGS, searcher="exhaustive"))
    assert found.result.notes[-1] == "1 of the front: no different from the baseline, once minimized"
    assert [member.measured["error"].verdict for member in found.result.finalists] == ["same"]


def test_a_front_that_is_the_baseline_is_compared_with_it(tmp_path: Path) -> None:
    found = ended(tmp_path, Plain(), trials=1)
    assert [member.measured["time_s"].verdict for member in found.result.finalists] == ["same"]


def test_a_baseline_that_fails_is_an_error_and_the_search_is_kept(tmp_path: Path) -> None:
    baselines = iter([Candidate(), Candidate()])  # the search's; later ones are illegal

    class Losing(Plain):
        def baseline(self, task: Task) -> Candidate:
            del task
            return next(baselines, Candidate((Set(9, 9),)))

    with pytest.raises(PlanishError, match="the baseline failed"):
        ended(tmp_path, Losing())
    with open_store(tmp_path / "store.db", read_only=True) as store:
        assert store.runs()[0].status == "finished"


def test_what_there_is_no_time_for_is_said_and_left_out(tmp_path: Path) -> None:
    found = ended(tmp_path, Full(), limits=NO_TIME)
    late = "no time left"
    assert set(found.result.notes) >= {
        f"not cross-checked: {late}",
        f"the finalists were not scored on unseen data: {late}",
        f"the secondary baseline was not measured: {late}",
        f"the effects of single steps were not measured: {late}",
    }
    assert found.stored[0].data["run_notes"] == [*found.result.notes]
    assert (found.status, comparison(found).baseline.scores) == ("finished", {})


def test_scores_may_take_all_the_time_that_is_left(tmp_path: Path) -> None:
    """Of what was not scored there is no verdict; what single steps do can be left out."""
    left: dict[str, float] = {}

    class Watched(Full):
        def _check(self, method: str) -> None:
            left[method] = seconds_left()

    ended(tmp_path, Watched())
    assert left["scores"] > 2 * left["cross_check"] > 0


class CutShort(SameProcessExecutor):
    """Ends before anything of a comparison is measured."""

    def results(self) -> Iterator[Evaluation]:
        for evaluation in super().results():
            if any(isinstance(step, VariantTag) for step in evaluation.candidate.steps):
                return
            yield evaluation


def test_a_comparison_that_does_not_end_is_none(tmp_path: Path) -> None:
    found = ended(tmp_path, Full(), start=CutShort)
    assert found.result.notes == ("no time left to compare with the baseline",)
    assert (found.result.finalists, found.result.gain) == ((), None)
    assert [row.data["run_notes"] for row in found.stored] == [list(found.result.notes)]
    assert found.result.candidate == found.result.best.candidate


def killed_at_the_first_look(folder: Path) -> None:
    """Tune; the process is killed once it has stored an interim result."""
    with pytest.MonkeyPatch.context() as patch:
        save = Store.save_result

        def save_and_die(store: Store, run_id: str, rows: Sequence[ResultRow]) -> None:
            save(store, run_id, rows)
            os.kill(os.getpid(), signal.SIGKILL)

        patch.setattr(Store, "save_result", save_and_die)
        ended(folder, Plain())


def test_a_comparison_that_is_killed_is_none_and_is_done_again(tmp_path: Path) -> None:
    process = get_context("fork").Process(target=killed_at_the_first_look, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with open_store(tmp_path / "store.db", read_only=True) as store:
        (run,) = store.runs()
        interim = decode_interim(store.result_rows(run.id, Plain().steps))
        shown = read_result(store, run.id, level=Plain())
        assert (run.status, shown.comparison, shown.finalists, shown.gain) == ("interrupted", None, (), None)
    resumed = ended(tmp_path, Plain())
    assert resumed.result.run.id == run.id
    final = [each.lead.ratio.value for each in resumed.result.finalists if each.candidate.steps]
    assert sorted(each.ratio.value for each in interim) == pytest.approx(sorted(final), rel=0.1)
    (tmp_path / "whole").mkdir()
    whole = ended(tmp_path / "whole", Plain())
    assert [(each.candidate, each.lead.verdict) for each in resumed.result.finalists] == [
        (each.candidate, each.lead.verdict) for each in whole.result.finalists
    ]
    assert decode_interim(resumed.stored) == ()


def test_a_search_that_is_resumed_has_no_interim_result(tmp_path: Path) -> None:
    process = get_context("fork").Process(target=killed_at_the_first_look, args=(tmp_path,))
    process.start()
    process.join()
    level = Plain()
    with open_store(tmp_path / "store.db") as store:
        (run,) = store.runs()
        store.resume_run(run.id)
        assert is_interim(store.result_rows(run.id, level.steps))
        drop_interim(store, run.id, level, Candidate())
        assert not store.result_rows(run.id, level.steps)
        store.save_result(run.id, [encode_interim(Candidate(), ("kept",), ())])
        drop_interim(store, run.id, level, Candidate())
        rows = store.result_rows(run.id, level.steps)
        assert (is_interim(rows), decode_notes(rows)) == (False, ("kept",))


def test_an_interim_result_erases_no_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ended(tmp_path, Plain())

    def cut_short(*arguments: Any) -> None:
        *_, on_look = arguments
        on_look([])
        raise CutShortError

    monkeypatch.setattr(remeasure, "remeasure_all", cut_short)
    after = ended(tmp_path, Plain(), trials=70)
    assert after.result.run.id == before.result.run.id
    assert after.result.comparison == before.result.comparison
