"""Progress: drawn by rich in a terminal or a notebook's cell, else lines at intervals on standard error.

`ProgressDisplay` shows the `Status` of any work. `run_progress` shows a run: it makes the listener that a
search notifies.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

from planish.core import Trial
from planish.core.front import HypervolumeTracker
from planish.core.wording import (
    MINUTE_S,
    amount,
    duration,
    label,
    multiple,
    number,
    one_line,
    printable,
    title,
)
from planish.store import Reader
from planish.tuning.budget import LEAST_S
from planish.tuning.recorder import Listener, Progress, Silent
from planish.tuning.result import known_baseline
from planish.tuning.settings import Budget
from planish.tuning.stored_run import flops_of

if TYPE_CHECKING:
    from typing import Self

    from rich.console import Console, RenderableType
    from rich.live import Live

LINE_S = 1.0
"""Seconds between two lines, where nothing can be redrawn."""
_FRAMES_A_SECOND = 4
_BAR = 40
_CELL = 110
"""Characters of a line in a notebook's cell."""
_SOON_S = 10


def is_notebook() -> bool:
    """Return whether this process computes the cells of a notebook."""
    return "ipykernel" in sys.modules


def is_interactive() -> bool:
    """Return whether standard error is a terminal that can be redrawn."""
    return not is_notebook() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def is_shown() -> bool:
    """Return whether progress is shown where nothing else is asked for: in terminals and in notebooks."""
    return sys.stderr is not None and (is_notebook() or is_interactive())


class Status:
    """The state of some work, in words; its clock starts when it is made.

    Args:
        items: what is worked on: "functions".
        total: how many items there are; None where that is not known.
        known: how many of them were done before.
        now: the clock, in seconds.

    Attributes:
        done: how many items need nothing more, with those that were done before.
        item: the name of the last one; may be empty.
        stage: what is done with them: "searching"; empty where there is one stage.
    """

    def __init__(
        self, items: str, total: int | None = None, known: int = 0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.items, self.total, self.known, self.now = items, total, known, now
        self.done, self.item, self.stage = known, "", ""
        self.started = now()

    @property
    def seconds(self) -> float:
        """Time that the work has taken."""
        return max(self.now() - self.started, 1e-3)

    @property
    def share(self) -> float | None:
        """The share of the work that is done; None where that is not known."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def pace(self) -> str:
        """Items done in a second."""
        return f"{(self.done - self.known) / self.seconds:.3g}/s"

    @property
    def left(self) -> str:
        """Time left at the pace so far; empty if unknown."""
        new = self.done - self.known
        if not self.total or new <= 0:
            return ""
        return time_left(self.seconds / new * (self.total - self.done))

    @property
    def detail(self) -> str:
        """Further details."""
        return ""

    @property
    def head(self) -> Sequence[str]:
        """Lines that stand above what changes."""
        return ()

    @property
    def line(self) -> str:
        """The state in one line, without the time that is left."""
        total = "" if self.total is None else f" of {self.total:,}"
        item = f" ({one_line(self.item)})" if self.item else ""
        counted = ", ".join(filter(None, [f"{self.done:,}{total} {self.items}{item}", self.detail]))
        return joined(f"{self.stage}: {counted}" if self.stage else counted, self.left and self.pace)

    def draw(self, console: Console) -> list[RenderableType]:
        """Draw what changes, without the time that is left."""
        from rich.text import Text

        del console
        return [Text(printable(self.line))]


def time_left(seconds: float) -> str:
    """Write how long something takes yet: `2.5 s left`, `4 min 5 s left`."""
    return f"{seconds:.1f} s left" if seconds < _SOON_S else f"{duration(round(seconds))} left"


def joined(*texts: str) -> str:
    """Join those texts that are not empty."""
    return "; ".join(filter(None, texts))


class ProgressDisplay:
    """Display of the progress of work on standard error; use it as a context manager.

    Args:
        show: without it, only what is logged is written.
        every: seconds between two lines, where nothing can be redrawn; None for `LINE_S`.
        console: what is drawn on; None for standard error, where it can be redrawn.
    """

    def __init__(
        self, *, show: bool = True, every: float | None = None, console: Console | None = None
    ) -> None:
        self._show, self._every = show, every
        self._console = console
        self._live: Live | None = None
        self._cell: _Cell | None = None
        self._status: Status | None = None
        self._step = ""
        self._n_head = 0
        self._next = 0.0

    def __enter__(self) -> Self:
        if self._show and self._console is None and is_notebook():
            self._cell = _Cell()
            self._console = self._cell.console
        elif self._show and (self._console is not None or is_interactive()):
            self._live = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._cell is not None and self._status is not None:
            self._cell.show("\n".join([*self._status.head, self._status.line]))
            self._cell = None

    def _start(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        self._console = self._console or Console(stderr=True, markup=False, highlight=False, emoji=False)
        made = Live(
            get_renderable=self.draw,
            console=self._console,
            refresh_per_second=_FRAMES_A_SECOND,
            transient=True,
            # What a callback prints into the same terminal would be drawn over.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=False,
        )
        made.start()
        return made

    def begin(self, status: Status) -> None:
        """Show the status of other work from now on; the first line comes after an interval."""
        self._status, self._step, self._n_head = status, "", 0
        self._next = time.monotonic() + self._interval
        self._redraw_cell()
        self._write_head(status)

    def update(self, *, at_once: bool = False) -> None:
        """Show the state, if it is time.

        Args:
            at_once: it is time for a line in any case.
        """
        if self._live is not None or self._status is None:
            return
        self._write_head(self._status)
        if at_once or time.monotonic() >= self._next:
            self._next = time.monotonic() + self._interval
            self._redraw_cell()
            self._write(joined(self._status.line, self._status.left))

    def step(self, text: str) -> None:
        """Show what is done now, in place of the time that is left."""
        self._step = text
        self._redraw_cell()
        if self._live is None:
            self._write(text)

    def log(self, text: str) -> None:
        """Write a line that stays, even where nothing else is shown."""
        if self._live is not None:
            self._live.console.print(printable(text))
        else:
            _write(text)

    @property
    def _interval(self) -> float:
        return LINE_S if self._every is None else self._every

    def _write_head(self, status: Status) -> None:
        """Write the lines above what changes, each once."""
        if self._live is None:
            lines = status.head
            for line in lines[self._n_head :]:
                self._write(line)
            self._n_head = len(lines)

    def _write(self, text: str) -> None:
        if self._show and self._cell is None:
            _write(text)

    def _redraw_cell(self) -> None:
        if self._cell is not None:
            self._cell.show(self.draw())

    def draw(self) -> RenderableType:
        """Draw the state of now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        status, console = self._status, self._console
        if status is None or console is None:
            return Text("starting …")
        head = [Text(printable(line), style="dim") for line in status.head]
        drawn = status.draw(console)
        if self._step:
            return Group(*head, *drawn, Text(printable(self._step)))
        share, last = status.share, Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=share or 0.0, width=_BAR, pulse=share is None)
        last.add_row(bar, Text(status.left))
        return Group(*head, *drawn, last)


class _Cell:
    """One output of a notebook's cell, which is replaced in its place.

    Not `rich.live.Live`, which needs widgets, and leaves the widget and an empty output in the notebook.
    """

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(file=StringIO(), width=_CELL, color_system=None, force_jupyter=False)
        self._output: Any = None

    def show(self, state: RenderableType) -> None:
        """Show a state in place of the one before."""
        from IPython.display import display  # pyright: ignore[reportMissingImports]  (no notebook is without)

        with self.console.capture() as captured:
            self.console.print(state, markup=False, highlight=False)
        bundle = {"text/plain": captured.get().rstrip()}
        if self._output is None:
            self._output = display(bundle, raw=True, display_id=True)
        else:
            self._output.update(bundle, raw=True)


def _write(text: str) -> None:
    with suppress(OSError, ValueError):  # a standard error that is closed or full is not a reason to end
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()


_SHOWN_S = 1.0
"""Loading a program is reported where it takes so long."""
_SHOWN = 3
"""Reasons of failures that are named."""
_LONGEST = 400
"""Characters of a line that describes a program."""
_LEAVE = "Ctrl-C skips the rest"


class RunStatus(Status):
    """The state of a run, in words.

    Args:
        progress: the run's state.
        budget: when the search ends.
        baseline: the baseline's value, where an earlier run of the task measured it.
        now: the clock, in seconds.
    """

    def __init__(
        self,
        progress: Progress,
        budget: Budget,
        baseline: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("trials", budget.trials, now=now)
        self.progress, self.budget, self.baseline = progress, budget, baseline
        self.ended: float | None = None
        self._program = one_line(title(progress.task.program.text))

    def end(self) -> None:
        """Stop the clock."""
        self.ended = self.ended or self.now()

    @property
    def seconds(self) -> float:
        """Time that the search has taken."""
        return max((self.ended or self.now()) - self.started, 1e-3)

    @property
    def head(self) -> Sequence[str]:
        """The run, its program, what is known of that by now, and how long the run takes."""
        summary = (one_line(line, _LONGEST) for line in self.progress.summary)
        return [*filter(None, [f"run {self.progress.run_id}: {self._program}", self.plan]), *summary]

    @property
    def plan(self) -> str:
        """Time that the run takes; empty if unknown."""
        loading, most = self.progress.loading_s, self.budget.seconds
        parts = [f"loaded in {duration(loading)}"] if loading >= _SHOWN_S else []
        parts += [] if most is None else [f"at most {_round(most)} of search"]
        if self.progress.compares:
            least = f"as long as the search (min {LEAST_S:g} s)"
            parts.append(f"final comparison: at most {least if most is None else _round(max(LEAST_S, most))}")
        return "; ".join(parts)

    @property
    def best(self) -> str:
        """The best value so far, and what it gains; with several objectives, how far the front is."""
        if self.progress.hypervolume is not None and self.progress.hypervolume.front:
            return self._front(self.progress.hypervolume)
        value, trial = self.progress.best_value, self.progress.best
        if value is None or trial is None:
            return "nothing measured yet"
        work = flops_of(trial, self.progress.objective)
        rate = f", {number(work / value)} GFLOPS" if work and value else ""
        return f"best {amount(value, self.progress.objective.unit)}{rate}{self._gain(value)}"

    def _front(self, growth: HypervolumeTracker) -> str:
        ends = (f"{label(o)} {_range(growth, index)}" for index, o in enumerate(growth.objectives))
        return f"front of {len(growth.front)}: {', '.join(ends)}"

    def _gain(self, value: float) -> str:
        if not self.baseline or not value:
            return ""
        down = self.progress.objective.direction == "down"
        return f", {multiple(self.baseline / value if down else value / self.baseline)} the baseline"

    @property
    def volume(self) -> str:
        """The front's hypervolume; empty where it is not known."""
        growth = self.progress.hypervolume
        volume = None if growth is None else growth.volume
        return "" if volume is None else f"hypervolume {number(volume)} (baseline 1)"

    @property
    def pace(self) -> str:
        """Number of trials, and trials measured in a second."""
        trials, cached = self.progress.trials, self.progress.cached
        known = f" ({cached:,} known)" if cached else ""
        return (
            f"{trials:,} trial{'' if trials == 1 else 's'}{known}, {(trials - cached) / self.seconds:.3g}/s"
        )

    @property
    def failed(self) -> str:
        """Numbers of failures by reason, and of lost workers; empty if there are none."""
        failures, lost = self.progress.failures, self.progress.lost
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in failures.most_common(_SHOWN))
        failed = f"{failures.total():,} failed ({reasons})" if failures else ""
        return ", ".join(filter(None, [failed, f"{lost:,} lost with their workers" if lost else ""]))

    @property
    def line(self) -> str:
        """The state in one line, without the time that is left."""
        return joined(self.best, self.volume, self.pace, self.failed)

    @property
    def share(self) -> float | None:
        """The share of the budget that is used up; None where the search has no sure end."""
        spent = (self.seconds, self.budget.seconds), (self.progress.trials, self.budget.trials)
        shares = [used / most for used, most in spent if most]
        return min(1.0, max(shares)) if shares else None

    @property
    def left(self) -> str:
        """Time left to the search at its pace so far; empty once it is over."""
        share, value = self.share, self.budget.target
        if self.ended is not None:
            return ""
        if share is None:
            return "until Ctrl-C" if value is None else f"until {amount(value, self.progress.objective.unit)}"
        return time_left(max(0.0, self.seconds / share - self.seconds)) if share else "time left unknown"

    def draw(self, console: Console) -> list[RenderableType]:
        """Draw the best, the pace, what failed, and the front where there are several objectives."""
        from rich.text import Text

        lines: list[RenderableType] = [
            Text(self.best, style="bold green"),
            Text(joined(self.pace, self.volume)),
        ]
        lines += [Text(printable(self.failed), style="yellow")] if self.failed else []
        if self.progress.hypervolume is None:
            return lines
        from planish.tuning.result_text import ASCII, FULL, WIDTH, scatter

        glyphs = ASCII if console.options.ascii_only else FULL
        plot = scatter(self.progress.hypervolume, glyphs, min(WIDTH, console.width - 1))
        drawn = Text("\n".join(plot), style="dim", no_wrap=True)
        drawn.highlight_regex(re.escape(glyphs.front), "not dim bold green")
        drawn.highlight_regex(re.escape(glyphs.baseline), "not dim bold yellow")
        return [*lines, drawn] if plot else lines


def _range(growth: HypervolumeTracker, index: int) -> str:
    """Return the range of an objective on the front."""
    objective = growth.objectives[index]
    values = sorted(objective.cost(costs[index]) for costs in growth.front)
    return " to ".join(dict.fromkeys(amount(value, objective.unit) for value in (values[0], values[-1])))


def _round(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 2 * MINUTE_S else duration(seconds)


@contextmanager
def run_progress(store: Reader, budget: Budget, *, show: bool = True) -> Generator[Listener]:
    """Show the progress of runs, for the block.

    Args:
        store: where the runs are; an earlier one of the same task may know the baseline.
        budget: of each run.
        show: without it nothing is shown.

    Yields:
        The listener that the runs notify.
    """
    if not show:
        yield Silent()
        return
    with ProgressDisplay() as display:
        yield _RunListener(display, store, budget)


class _RunListener:
    """Shows the status of the run that a search reports."""

    def __init__(self, display: ProgressDisplay, store: Reader, budget: Budget) -> None:
        self._display, self._store, self._budget = display, store, budget
        self._status: RunStatus | None = None

    def started(self, progress: Progress) -> None:
        self._status = RunStatus(progress, self._budget, known_baseline(self._store, progress.task))
        self._display.begin(self._status)

    def trial(self, trial: Trial, progress: Progress) -> None:
        del trial, progress  # the status reads the progress when it is shown
        self._display.update()

    def ending(self, progress: Progress, what: str) -> None:
        del progress
        if self._status is not None and self._status.ended is None:
            self._status.end()
            self._display.update(at_once=True)
        self._display.step(f"{what}; {_LEAVE}")


LATE_S = 1.0
"""Work that nothing announces, such as the first call of an einsum, is shown once it has taken so long."""


class LateProgress(Silent):
    """Listener that shows a search once it takes long; in terminals and notebooks, within its block.

    Args:
        store: where the run is.
        budget: of the run.
        show: whether it is shown at all; None: in terminals and notebooks.
        late_s: how long the search has taken then.
    """

    def __init__(
        self, store: Reader, budget: Budget, show: bool | None = None, late_s: float = LATE_S
    ) -> None:
        self._store, self._budget, self._late_s = store, budget, late_s
        self._show = is_shown() if show is None else show
        self._begun = time.monotonic()
        self._display: ProgressDisplay | None = None
        self._shown: Listener | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._display is not None:
            self._display.__exit__(*error)

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Begin to show the search where it is time."""
        spent = time.monotonic() - self._begun
        if self._shown is None and self._show and spent >= self._late_s:
            self._display = ProgressDisplay().__enter__()
            left = None if self._budget.seconds is None else max(0.01, self._budget.seconds - spent)
            self._shown = _RunListener(self._display, self._store, replace(self._budget, seconds=left))
            self._shown.started(progress)
        if self._shown is not None:
            self._shown.trial(trial, progress)
