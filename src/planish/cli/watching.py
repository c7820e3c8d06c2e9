"""Progress of a run on standard error: a live display on a terminal, else a line now and then."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planish.cli.front import ASCII, FULL, WIDTH, scatter
from planish.cli.options import Form
from planish.cli.output import one_line, printable, remark
from planish.core import HypervolumeTracker, Trial
from planish.core.budget import Budget
from planish.core.wording import MINUTE_S, amount, duration, label, multiple, number, title
from planish.store import Reader
from planish.tuning.budget import LEAST_S
from planish.tuning.recorder import Listener, Progress, Silent
from planish.tuning.result import known_baseline
from planish.tuning.trial_statistics import flops_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SOON_S = 10
_SHOWN_S = 1.0
"""Reading a program is spoken of where it takes so long."""
_SHOWN = 3


@dataclass
class RunStatus:
    """The state of a run, in words.

    Args:
        progress: the run's state.
        budget: when the search ends.
        baseline: the baseline's value, where an earlier run of the task measured it.
        now: the clock, in seconds.
    """

    progress: Progress
    budget: Budget
    baseline: float | None = None
    now: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    ended: float | None = None

    def __post_init__(self) -> None:
        self.started = self.now()

    @property
    def plan(self) -> str:
        """Return how long it takes, as it begins; empty where that is not known."""
        loading, most = self.progress.loading_s, self.budget.seconds
        parts = [f"read in {duration(loading)}"] if loading >= _SHOWN_S else []
        parts += [] if most is None else [f"at most {_round(most)} of search"]
        if self.progress.compares:
            long = f"as long as that, or {LEAST_S:g} s," if most is None else _round(max(LEAST_S, most))
            search = ["the search"] if most is None else []
            parts += [*search, f"then at most {long} to compare the best with the baseline"]
        return ", ".join(parts)

    def end(self) -> None:
        """Stop the clock."""
        self.ended = self.ended or self.now()

    @property
    def best(self) -> str:
        """The best value so far, and what it gains; with several objectives, how far the front is."""
        if self.progress.growth is not None and self.progress.growth.front:
            return self._front(self.progress.growth)
        value, trial = self.progress.best_value, self.progress.best
        if value is None or trial is None:
            return "nothing measured yet"
        work = flops_of(trial, self.progress.objective)
        rate = f", {number(work / value)} GFLOPS" if work and value else ""
        return f"best {amount(value, self.progress.objective.unit)}{rate}{self._gain(value)}"

    def _front(self, growth: HypervolumeTracker) -> str:
        ends = (f"{label(o)} {self._ends(growth, index)}" for index, o in enumerate(growth.objectives))
        return f"front of {len(growth.front)}: {', '.join(ends)}"

    @property
    def volume(self) -> str:
        """The front's hypervolume; empty where it is not known."""
        growth = self.progress.growth
        volume = None if growth is None else growth.volume
        return "" if volume is None else f"hypervolume {number(volume)} (baseline 1)"

    def _ends(self, growth: HypervolumeTracker, index: int) -> str:
        """Return the range of an objective on the front."""
        objective = growth.objectives[index]
        values = sorted(objective.cost(costs[index]) for costs in growth.front)
        ends = dict.fromkeys(amount(value, objective.unit) for value in (values[0], values[-1]))
        return " to ".join(ends)

    def _gain(self, value: float) -> str:
        if not self.baseline or not value:
            return ""
        down = self.progress.objective.direction == "down"
        return f", {multiple(self.baseline / value if down else value / self.baseline)} the baseline"

    @property
    def pace(self) -> str:
        """Return how many trials there are, and how many are measured in a second."""
        trials, cached = self.progress.trials, self.progress.cached
        known = f" ({cached:,} known)" if cached else ""
        return f"{trials:,} trials{known}, {(trials - cached) / self._seconds:.3g}/s"

    @property
    def failed(self) -> str:
        """Return how many failed, and why, and how many were lost with their workers; empty for none."""
        failures, lost = self.progress.failures, self.progress.lost
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in failures.most_common(_SHOWN))
        failed = f"{failures.total():,} failed ({reasons})" if failures else ""
        return ", ".join(filter(None, [failed, f"{lost:,} lost with their workers" if lost else ""]))

    @property
    def done(self) -> float | None:
        """The share of the budget that is used up; None where the search has no sure end."""
        spent = (self._seconds, self.budget.seconds), (self.progress.trials, self.budget.trials)
        shares = [used / most for used, most in spent if most]
        return min(1.0, max(shares)) if shares else None

    @property
    def left(self) -> str:
        """Return how long the search goes on, at its pace so far."""
        if self.done is None:
            value = self.budget.value
            return "until Ctrl-C" if value is None else f"until {amount(value, self.progress.objective.unit)}"
        if not self.done:
            return "time left unknown"
        left = max(0.0, self._seconds / self.done - self._seconds)
        return f"{left:.1f} s left" if left < _SOON_S else f"{duration(round(left))} left"

    @property
    def _seconds(self) -> float:
        return max((self.ended or self.now()) - self.started, 1e-3)


def _round(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 2 * MINUTE_S else duration(seconds)


LINE_S = 1.0
_LONGEST = 400
"""Characters of a line that describes a program."""
_FRAMES_A_SECOND = 4
_BAR = 40
_LEAVE = "Ctrl-C skips the rest"

MakeStatus = Callable[[Progress], RunStatus]


@contextmanager
def watching(form: Form, store: Reader, budget: Budget) -> Generator[Listener]:
    """Provide a listener that fits the output; nothing is shown beside JSON.

    Args:
        form: what the result is written as.
        store: where the run is; an earlier one of the task may know the baseline.
        budget: of the run.
    """

    def status(progress: Progress) -> RunStatus:
        return RunStatus(progress, budget, known_baseline(store, progress.task))

    if form == "json":
        yield Silent()
    elif sys.stderr.isatty():
        with _live(status) as listener:
            yield listener
    else:
        yield Lines(status)


class Lines:
    """Writes a line each second.

    Args:
        make_status: makes the status of a run that begins.
    """

    def __init__(self, make_status: MakeStatus) -> None:
        self._make_status = make_status
        self._status: RunStatus | None = None
        self._next = 0.0
        self._summarised = 0

    def started(self, progress: Progress) -> None:
        """Return what begins."""
        self._status = self._make_status(progress)
        self._next = time.monotonic() + LINE_S
        remark(f"run {progress.run_id}: {one_line(title(progress.task.program.text))}")
        self._summarised = 0
        self._summarise(progress)
        if self._status.plan:
            remark(self._status.plan)

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Return what else is known of the program by now, and how it goes, if it is time."""
        del trial
        self._summarise(progress)
        if self._status is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_S
            status = self._status
            remark(_joined(status.best, status.volume, status.pace, status.failed, status.left))

    def ending(self, progress: Progress, what: str) -> None:
        """Return how the search ended, then what is done."""
        del progress
        status, self._status = self._status, None
        if status is not None:
            status.end()
            remark(_joined(status.best, status.volume, status.pace, status.failed))
        remark(f"{what}; {_LEAVE}")

    def _summarise(self, progress: Progress) -> None:
        """Return what is known of the program, each line once."""
        for line in progress.summary[self._summarised :]:
            remark(one_line(line, _LONGEST))
        self._summarised = len(progress.summary)


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))


@contextmanager
def _live(make_status: MakeStatus) -> Generator[Listener]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    display = Display(make_status, console)
    with Live(
        get_renderable=display.draw,
        console=console,
        refresh_per_second=_FRAMES_A_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield display


class Display:
    """Keeps what the live display draws.

    Args:
        make_status: makes the status of a run that begins.
        console: what it is drawn on.
    """

    def __init__(self, make_status: MakeStatus, console: Console) -> None:
        self._make_status = make_status
        self._console = console
        self._glyphs = ASCII if console.options.ascii_only else FULL
        self._status: RunStatus | None = None
        self._ending = ""

    def started(self, progress: Progress) -> None:
        """Turn to a run."""
        self._status, self._ending = self._make_status(progress), ""

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Do nothing: the status looks at the progress when it is drawn."""

    def ending(self, progress: Progress, what: str) -> None:
        """Turn to a step of the end."""
        del progress
        self._ending = what
        if self._status is not None:
            self._status.end()

    def draw(self) -> RenderableType:
        """Draw the state of now."""
        from rich.console import Group
        from rich.text import Text

        status = self._status
        if status is None:
            return Text("starting …")
        task = one_line(title(status.progress.task.program.text), 70)
        head = Text(f"run {status.progress.run_id}  {task}", style="dim")
        known = [Text(one_line(line, _LONGEST), style="dim") for line in status.progress.summary]
        known += [Text(status.plan, style="dim")] if status.plan else []
        lines = [Text(status.best, style="bold green"), Text(_joined(status.pace, status.volume))]
        lines += [Text(printable(status.failed), style="yellow")] if status.failed else []
        return Group(head, *known, *lines, *self._plot(status), self._last_line(status))

    def _plot(self, status: RunStatus) -> list[RenderableType]:
        """Draw the front, where there are several objectives."""
        from rich.text import Text

        growth = status.progress.growth
        width = min(WIDTH, self._console.width - 1)
        lines = scatter(growth, self._glyphs, width) if growth is not None else []
        plot = Text("\n".join(lines), style="dim", no_wrap=True)
        plot.highlight_regex(re.escape(self._glyphs.front), "not dim bold green")
        plot.highlight_regex(re.escape(self._glyphs.baseline), "not dim bold yellow")
        return [plot] if lines else []

    def _last_line(self, status: RunStatus) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if self._ending:
            return Text(f"{self._ending}; {_LEAVE}")
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=status.done or 0.0, width=_BAR, pulse=status.done is None)
        grid.add_row(bar, Text(status.left))
        return grid
