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
from planish.cli.output import one_line, remark
from planish.cli.scatter import ASCII, FULL, WIDTH, scatter
from planish.cli.status import Board
from planish.core import Trial
from planish.report.wording import title
from planish.results.result import known_baseline
from planish.store import Reader
from planish.tuning.progress import Listener, Progress, Silent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LINE_S = 1.0
_LONGEST = 400
"""Characters of a line that tells what a program is."""
_FRAMES_A_SECOND = 4
_BAR = 40
_LEAVE = "Ctrl-C leaves out the rest"

MakeBoard = Callable[[Progress], Board]


@contextmanager
def watching(form: Form, store: Reader, budget: Budget) -> Generator[Listener]:
    """Give a listener that fits the output; nothing is shown beside JSON.

    Args:
        form: what the result is written as.
        store: where the run is; an earlier one of the task may know the baseline.
        budget: of the run.
    """

    def board(progress: Progress) -> Board:
        return Board(progress, budget, known_baseline(store, progress.task))

    if form == "json":
        yield Silent()
    elif sys.stderr.isatty():
        with _live(board) as listener:
            yield listener
    else:
        yield Lines(board)


class Lines:
    """Writes a line each second.

    Args:
        make_board: makes the board of a run that begins.
    """

    def __init__(self, make_board: MakeBoard) -> None:
        self._make_board = make_board
        self._board: Board | None = None
        self._next = 0.0
        self._introduced = 0

    def started(self, progress: Progress) -> None:
        """Say what begins."""
        self._board = self._make_board(progress)
        self._next = time.monotonic() + LINE_S
        remark(f"run {progress.run_id}: {one_line(title(progress.task.program.text))}")
        self._introduced = 0
        self._introduce(progress)
        if self._board.plan:
            remark(self._board.plan)

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Say what else is known of the program by now, and how it goes, if it is time."""
        del trial
        self._introduce(progress)
        if self._board is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_S
            board = self._board
            remark(_joined(board.best, board.volume, board.pace, board.failed, board.left))

    def ending(self, progress: Progress, what: str) -> None:
        """Say how the search ended, then what is done."""
        del progress
        board, self._board = self._board, None
        if board is not None:
            board.end()
            remark(_joined(board.best, board.volume, board.pace, board.failed))
        remark(f"{what}; {_LEAVE}")

    def _introduce(self, progress: Progress) -> None:
        """Say what is known of the program, each line once."""
        for line in progress.introduction[self._introduced :]:
            remark(one_line(line, _LONGEST))
        self._introduced = len(progress.introduction)


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))


@contextmanager
def _live(make_board: MakeBoard) -> Generator[Listener]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    display = Display(make_board, console)
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
        make_board: makes the board of a run that begins.
        console: what it is drawn on.
    """

    def __init__(self, make_board: MakeBoard, console: Console) -> None:
        self._make_board = make_board
        self._console = console
        self._glyphs = ASCII if console.options.ascii_only else FULL
        self._board: Board | None = None
        self._ending = ""

    def started(self, progress: Progress) -> None:
        """Turn to a run."""
        self._board, self._ending = self._make_board(progress), ""

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Do nothing: the board looks at the progress when it is drawn."""

    def ending(self, progress: Progress, what: str) -> None:
        """Turn to a step of the end."""
        del progress
        self._ending = what
        if self._board is not None:
            self._board.end()

    def draw(self) -> RenderableType:
        """Draw the state of now."""
        from rich.console import Group
        from rich.text import Text

        board = self._board
        if board is None:
            return Text("starting …")
        task = one_line(title(board.progress.task.program.text), 70)
        head = Text(f"run {board.progress.run_id}  {task}", style="dim")
        known = [Text(one_line(line, _LONGEST), style="dim") for line in board.progress.introduction]
        known += [Text(board.plan, style="dim")] if board.plan else []
        lines = [Text(board.best, style="bold green"), Text(_joined(board.pace, board.volume))]
        lines += [Text(board.failed, style="yellow")] if board.failed else []
        return Group(head, *known, *lines, *self._plot(board), self._last_line(board))

    def _plot(self, board: Board) -> list[RenderableType]:
        """Draw the front, where there are several objectives."""
        from rich.text import Text

        growth = board.progress.growth
        width = min(WIDTH, self._console.width - 1)
        lines = scatter(growth, self._glyphs, width) if growth is not None else []
        plot = Text("\n".join(lines), style="dim", no_wrap=True)
        plot.highlight_regex(re.escape(self._glyphs.front), "not dim bold green")
        plot.highlight_regex(re.escape(self._glyphs.baseline), "not dim bold yellow")
        return [plot] if lines else []

    def _last_line(self, board: Board) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if self._ending:
            return Text(f"{self._ending}; {_LEAVE}")
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=board.done or 0.0, width=_BAR, pulse=board.done is None)
        grid.add_row(bar, Text(board.left))
        return grid
