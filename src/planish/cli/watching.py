"""What is shown of a run while it goes on: a live display on a terminal, else a line now and then.

All of it goes to standard error: standard output is for results.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planish.budget import Budget
from planish.cli.options import Form
from planish.cli.output import one_line, printable, remark
from planish.cli.scatter import ASCII, FULL, WIDTH, scatter
from planish.cli.status import RunStatus
from planish.core import Trial
from planish.report.wording import title
from planish.store import Reader
from planish.tuning.recorder import Listener, Progress, Silent
from planish.tuning.result import known_baseline

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LINE_S = 1.0
_LONGEST = 400
"""Characters of a line that tells what a program is."""
_FRAMES_A_SECOND = 4
_BAR = 40
_LEAVE = "Ctrl-C skips the rest"

MakeStatus = Callable[[Progress], RunStatus]


@contextmanager
def watching(form: Form, store: Reader, budget: Budget) -> Generator[Listener]:
    """Give a listener that fits the output; nothing is shown beside JSON.

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
        self._introduced = 0

    def started(self, progress: Progress) -> None:
        """Say what begins."""
        self._status = self._make_status(progress)
        self._next = time.monotonic() + LINE_S
        remark(f"run {progress.run_id}: {one_line(title(progress.task.program.text))}")
        self._introduced = 0
        self._introduce(progress)
        if self._status.plan:
            remark(self._status.plan)

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Say what else is known of the program by now, and how it goes, if it is time."""
        del trial
        self._introduce(progress)
        if self._status is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_S
            status = self._status
            remark(_joined(status.best, status.volume, status.pace, status.failed, status.left))

    def ending(self, progress: Progress, what: str) -> None:
        """Say how the search ended, then what is done."""
        del progress
        status, self._status = self._status, None
        if status is not None:
            status.end()
            remark(_joined(status.best, status.volume, status.pace, status.failed))
        remark(f"{what}; {_LEAVE}")

    def _introduce(self, progress: Progress) -> None:
        """Say what is known of the program, each line once."""
        for line in progress.introduction[self._introduced :]:
            remark(one_line(line, _LONGEST))
        self._introduced = len(progress.introduction)


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
        known = [Text(one_line(line, _LONGEST), style="dim") for line in status.progress.introduction]
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
