"""What is shown while a corpus is labelled: one line on a terminal, else one now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planish.cli.options import Form
from planish.cli.output import remark
from planish.report.wording import duration

if TYPE_CHECKING:
    from planish.train.labelling.label_plan import LabelProgress

_LINE_S, _BAR_S = 10.0, 0.5


@contextmanager
def watching(form: Form) -> Generator[Callable[[LabelProgress], None]]:
    """Give a listener that fits the output; beside JSON it is silent."""
    if form == "json":
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.status import Status

        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        with Status("reading the corpus", console=console) as drawn:
            yield Teller(drawn.update, _BAR_S)
    else:
        yield Teller(remark, _LINE_S)


class Teller:
    """Tells how far labelling is, now and then.

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
        """Say a line, if it is time or the stage is new."""
        now = self._now()
        if progress.stage != self._stage:
            self._stage, self._begun, self._next = progress.stage, now, now
        if now >= self._next or progress.done == progress.total:
            self._next = now + self._every
            self._say(words(progress, now - self._begun))


def words(progress: LabelProgress, seconds: float) -> str:
    """Tell the stage, how far it is, the gain so far, and the time that this stage still needs."""
    done = f"{progress.stage}: {progress.done:,} of {progress.total:,} functions"
    gain = progress.saved / progress.baseline if progress.baseline else 0.0
    crashes = f", {progress.refused:,} crashes" if progress.refused else ""
    fresh = progress.done - progress.known
    if fresh <= 0 or not seconds:
        return f"{done}, {gain:.2%} under -Oz{crashes}"
    left = duration(round(seconds / fresh * (progress.total - progress.done)))
    return f"{done}, {gain:.2%} under -Oz{crashes}; {fresh / seconds:.0f}/s, {left} left"
