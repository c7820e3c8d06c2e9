"""Progress of building and labelling a corpus."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planish.cli.options import Form
from planish.cli.output import remark
from planish.core.wording import duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from planish.train.corpus.build import BuildListener, BuildTally
    from planish.train.labelling.label_plan import LabelProgress

_LINE_S = 10.0


@contextmanager
def watching(form: Form) -> Generator[BuildListener]:
    """Provide a listener that fits the output; beside JSON only notes are shown."""
    if form == "text" and sys.stderr.isatty():
        with _bar() as listener:
            yield listener
    else:
        yield Lines(_LINE_S if form == "text" else float("inf"))


class Lines:
    """Writes a line now and then.

    Args:
        every: after so many seconds.
        now: the clock, in seconds.
    """

    def __init__(self, every: float, now: Callable[[], float] = time.monotonic) -> None:
        self._every, self._now = every, now
        self._pace = Pace(now)
        self._next = now() + every

    def progress(self, tally: BuildTally) -> None:
        """Return how it goes, if it is time."""
        self._pace.see(tally)
        if self._now() >= self._next:
            self._next = self._now() + self._every
            self.note(f"{tally.done:,} of {tally.packages:,} packages; {self._pace.words(tally)}")

    def note(self, text: str) -> None:
        """Print a line."""
        remark(text)


class Bar:
    """Draws a bar.

    Args:
        drawn: rich's.
        task: of it.
    """

    def __init__(self, drawn: Progress, task: TaskID) -> None:
        self._drawn, self._task = drawn, task
        self._pace = Pace(time.monotonic)

    def progress(self, tally: BuildTally) -> None:
        """Move on."""
        self._pace.see(tally)
        words = f"{self._pace.words(tally)}; {tally.current}"
        self._drawn.update(self._task, completed=tally.done, total=tally.packages, words=words)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._drawn.console.print(text)


class Pace:
    """Rate of functions and the time that is left.

    Args:
        now: the clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begun: float | None = None
        self._held = 0

    def see(self, tally: BuildTally) -> None:
        """Begin to count at the first look."""
        if self._begun is None:
            self._begun, self._held = self._now(), tally.functions

    def words(self, tally: BuildTally) -> str:
        """Return the functions, their rate and the time left, if packages to come are like those before."""
        seconds = max(1e-3, self._now() - (self._begun or self._now()))
        fresh = tally.done - tally.known
        rate = f"{tally.functions:,} functions, {(tally.functions - self._held) / seconds:.0f}/s"
        failed = f"; {tally.failed:,} packages failed" if tally.failed else ""
        if not fresh:
            return f"{rate}{failed}; time left unknown"
        left = seconds / fresh * (tally.packages - tally.done)
        return f"{rate}{failed}; {duration(round(left))} left"


@contextmanager
def _bar() -> Generator[Bar]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}", markup=False))
    with Progress(*columns, console=console, transient=True) as drawn:
        yield Bar(drawn, drawn.add_task("", total=None, words="looking for packages"))


_LABEL_LINE_S, _BAR_S = 10.0, 0.5


@contextmanager
def watching_labels(form: Form) -> Generator[Callable[[LabelProgress], None]]:
    """Provide a listener that fits the output; beside JSON it is silent."""
    if form == "json":
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.status import Status

        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        with Status("reading the corpus", console=console) as drawn:
            yield Teller(drawn.update, _BAR_S)
    else:
        yield Teller(remark, _LABEL_LINE_S)


class Teller:
    """Printer of labelling's progress at intervals.

    Args:
        say: takes a line.
        every: so many seconds.
        now: the clock, in seconds.
    """

    def __init__(
        self, say: Callable[[str], object], every: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._every, self._now = say, every, now
        self._stage, self._begun, self._next = "", now(), 0.0

    def __call__(self, progress: LabelProgress) -> None:
        """Print a line, if it is time or the stage is new."""
        now = self._now()
        if progress.stage != self._stage:
            self._stage, self._begun, self._next = progress.stage, now, now
        if now >= self._next or progress.done == progress.total:
            self._next = now + self._every
            self._say(words(progress, now - self._begun))


def words(progress: LabelProgress, seconds: float) -> str:
    """Return the stage, its progress, the gain so far, and the time that is left of it."""
    done = f"{progress.stage}: {progress.done:,} of {progress.total:,} functions"
    gain = progress.saved / progress.baseline if progress.baseline else 0.0
    crashes = f", {progress.refused:,} crashes" if progress.refused else ""
    fresh = progress.done - progress.known
    if fresh <= 0 or not seconds:
        return f"{done}, {gain:.2%} under -Oz{crashes}"
    left = duration(round(seconds / fresh * (progress.total - progress.done)))
    return f"{done}, {gain:.2%} under -Oz{crashes}; {fresh / seconds:.0f}/s, {left} left"
