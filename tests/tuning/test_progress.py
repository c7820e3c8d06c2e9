"""The state of a run in words, by a clock that the test turns."""

import os
import pty
import subprocess
import sys
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest

from planish.core import Candidate, Failed, Measured, Objective, Outcome, Trial
from planish.core.front import HypervolumeTracker
from planish.core.wording import amount, multiple
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import matmul
from planish.store import open_store
from planish.testing.stores import make_candidate, make_task
from planish.tuning.api import task_of
from planish.tuning.progress import LateProgress, ProgressDisplay, RunStatus, Status, is_shown
from planish.tuning.recorder import Progress
from planish.tuning.settings import Budget, Settings

GFLOPS = Objective("gflops", "GFLOPS", "up")


class Hand:
    """A clock's hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def hand() -> Hand:
    return Hand()


def progress(*outcomes: Outcome, cached: int = 0, objective: Objective | None = None) -> Progress:
    made = Progress(make_task("flat", *([objective] if objective else [])), "1a2b3c4d")
    for i, outcome in enumerate(outcomes):
        made.add(Trial(Candidate(), outcome, i, cached=i < cached))
    return made


def measured(time: float) -> Measured:
    return Measured({"time_s": time, "gflops": 1 / time})


def test_before_anything_is_measured(hand: Hand) -> None:
    status = RunStatus(progress(), Budget(trials=10), now=hand)
    assert status.best == "nothing measured yet"
    assert status.left == "time left unknown"
    assert (status.pace, status.failed) == ("0 trials, 0/s", "")


def test_how_long_it_takes_is_reported_as_it_begins(hand: Hand) -> None:
    made = progress()

    def plan(**limits: float) -> str:
        return RunStatus(made, Budget(**limits), now=hand).plan  # type: ignore[arg-type]

    assert plan(seconds=10.0) == "at most 10 s of search; final comparison: at most 10 s"
    assert plan(seconds=0.5) == "at most 0.5 s of search; final comparison: at most 5 s"
    assert plan(trials=6) == "final comparison: at most as long as the search (min 5 s)"
    made.loading_s = 3.21
    assert plan(seconds=600.0).startswith("loaded in 3.21 s; at most 10 min 0 s of search; final")
    made.compares, made.loading_s = False, 0.1
    assert (plan(seconds=10.0), plan(trials=6)) == ("at most 10 s of search", "")


def test_the_best_is_reported_with_its_rate_and_its_gain(hand: Hand) -> None:
    found = progress(measured(4e-6), measured(2e-6), measured(3e-6))
    assert RunStatus(found, Budget(), now=hand).best == f"best {amount(2e-6, 's')}, 500,000 GFLOPS"
    assert RunStatus(found, Budget(), 5e-6, hand).best.endswith(f", {multiple(2.5)} the baseline")


def test_with_several_objectives_the_front_is_reported(hand: Hand) -> None:
    both = (make_task("flat").objectives[0], GFLOPS)
    made = Progress(make_task("flat", *both), "1a2b3c4d", hypervolume=HypervolumeTracker(both, Candidate()))
    status = RunStatus(made, Budget(), now=hand)
    assert (status.best, status.volume) == ("nothing measured yet", "")
    for i, (time, rate) in enumerate([(4e-6, 1.0), (2e-6, 0.5)]):
        candidate = Candidate() if i == 0 else make_candidate(1)
        made.add(Trial(candidate, Measured({"time_s": time, "gflops": rate}), i))
    assert status.best == "front of 2: time 2.000 µs to 4.000 µs, gflops 0.5000 GFLOPS to 1 GFLOPS"
    assert status.volume == "hypervolume 1.000 (baseline 1)"


def test_where_more_is_better_the_gain_is_the_other_way_round(hand: Hand) -> None:
    found = progress(measured(0.5), objective=GFLOPS)
    assert (
        RunStatus(found, Budget(), 1.0, hand).best
        == f"best {amount(2, 'GFLOPS')}, {multiple(2.0)} the baseline"
    )


def test_only_what_is_measured_now_counts_for_the_pace(hand: Hand) -> None:
    status = RunStatus(progress(*[measured(1.0)] * 1400, cached=1000), Budget(), now=hand)
    hand.time += 2
    assert status.pace == "1,400 trials (1,000 known), 200/s"
    status.end()
    hand.time += 60
    status.end()
    hand.time += 60
    assert status.pace == "1,400 trials (1,000 known), 200/s"


def test_failures_are_reported_by_reason(hand: Hand) -> None:
    outcomes = [Failed("verify", "wrong answer")] * 2 + [Failed("build", "refused")] * 3
    assert RunStatus(progress(*outcomes), Budget(), now=hand).failed == (
        "5 failed (build: refused 3, verify: wrong answer 2)"
    )


def test_the_time_left_is_by_the_limit_that_comes_first(hand: Hand) -> None:
    found = progress(*[measured(1.0)] * 5)
    boards = [
        RunStatus(found, budget, now=hand) for budget in (Budget(10), Budget(100, 8), Budget(None, 600))
    ]
    hand.time += 2
    assert [status.left for status in boards] == ["2.0 s left", "6.0 s left", "9 min 58 s left"]
    assert [status.share for status in boards] == [0.5, 0.25, pytest.approx(2 / 600)]
    hand.time += 600
    assert [(status.share, status.left) for status in boards[1:]] == [(1.0, "0.0 s left")] * 2


def test_a_search_without_a_sure_end_says_when_it_ends(hand: Hand) -> None:
    assert RunStatus(progress(), Budget(), now=hand).left == "until Ctrl-C"
    status = RunStatus(progress(), Budget(target=2e-3), now=hand)
    assert (status.left, status.share) == (f"until {amount(2e-3, 's')}", None)


def test_work_of_known_size_reports_its_pace_and_the_time_left(hand: Hand) -> None:
    status = Status("files", 10, known=2, now=hand)
    assert (status.line, status.left, status.share) == ("2 of 10 files", "", 0.2)
    status.stage, status.item = "reading", "a.c"
    hand.time += 2
    status.done = 6
    assert (status.line, status.left) == ("reading: 6 of 10 files (a.c); 2/s", "2.0 s left")


def test_a_display_without_a_terminal_writes_lines_at_intervals(
    hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    status = Status("files", 3, now=hand)
    with ProgressDisplay(every=3600) as display:
        display.begin(status)
        display.update()
        display.update(at_once=True)
        display.update()
        display.step("writing")
        display.log("one\x1b[2J")
    assert capsys.readouterr().err.splitlines() == ["0 of 3 files", "writing", "one [2J"]


def test_what_is_logged_is_written_though_nothing_is_shown(
    hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProgressDisplay(show=False, every=0.0) as display:
        display.begin(Status("files", 3, now=hand))
        display.update(at_once=True)
        display.step("writing")
        display.log("one")
    assert capsys.readouterr().err == "one\n"


PROGRAM = """
import sys, time
from planish.tuning.progress import ProgressDisplay, Status
status = Status("files", 2)
with ProgressDisplay() as display:
    display.begin(status)
    display.log("a line that stays")
    status.done = 1
    time.sleep(0.5)
    display.step("writing")
    time.sleep(0.5)
"""


def in_terminal(program: str, term: str, *, prints: bool) -> bytes:
    """Run a program whose errors, or all that it writes, go to a terminal; return what is seen there."""
    ours, theirs = pty.openpty()
    command, environment = [sys.executable, "-c", program], {**os.environ, "TERM": term}
    out = theirs if prints else None
    with subprocess.Popen(command, stdout=out, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        with suppress(OSError):  # the terminal is closed
            while part := os.read(ours, 1 << 16):
                seen += part
    os.close(ours)
    assert process.returncode == 0
    return seen


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False)])
def test_in_a_terminal_the_state_is_redrawn(term: str, drawn: bool) -> None:
    seen = in_terminal(PROGRAM, term, prints=False)
    assert b"a line that stays" in seen
    assert b"writing" in seen
    assert (b"\x1b[2K" in seen) is drawn  # a line is erased
    assert (b"1 of 2 files" in seen) is drawn


PRINTING = PROGRAM.replace("status.done = 1", "status.done = 1; time.sleep(0.5); print('printed')")


def test_what_is_printed_into_the_same_terminal_stands_on_a_line_of_its_own() -> None:
    seen = in_terminal(PRINTING, "xterm", prints=True)
    before, _, after = seen.partition(b"printed")
    assert before.endswith((b"\x1b[2K", b"\r", b"\n"))
    assert after.startswith(b"\r\n")


@pytest.mark.parametrize(("late_s", "shown"), [(0.0, True), (60.0, False)])
def test_a_search_that_nothing_announces_is_shown_once_it_takes_long(
    late_s: float, shown: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = progress(measured(2e-3))
    made.task = task_of(LoopsLevel(), matmul(8, 8, 8), Settings())
    with open_store(tmp_path / "a.db") as store:
        for show in (True, False):
            with LateProgress(store, Budget(seconds=30), show, late_s) as listener:
                listener.started(made)
                listener.trial(Trial(Candidate(), measured(2e-3)), made)
            assert (made.run_id in capsys.readouterr().err) is (shown and show)


def test_progress_is_shown_in_terminals_and_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    with redirect_stderr(None):
        assert not is_shown(), "there is nowhere to show it"
    with redirect_stderr(StringIO()):
        assert not is_shown(), "it is no terminal"
        monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
        assert is_shown()
