"""Tuning of a network's kernels: the time goes where most is expected to be gained.

What a search gains grows with the logarithm of its time, and is at most what is left above the time that the
arithmetic and the memory need. So each kernel's share of the time is proportional to that rest, times the
kernel's calls, and the seconds of trials that the store has count as had already: the same command goes on
where it was interrupted, and kernels that other networks have too are not tuned again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import AllFailedError, Candidate, Executor, ExecutorFactory, StoppedError, Target, Task
from planish.core.capabilities import executors_for
from planish.core.process import stopped_by
from planish.core.wording import one_line
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.roofline import least_work, quick_peak
from planish.measure.executors import LocalExecutor
from planish.network.fusion import Kernel

if TYPE_CHECKING:
    from planish.store import Store

BEST = 3
"""Schedules of a kernel that are compared in the library: the best of many trials is often best by chance."""
GAP_S = 1.0
"""Seconds that a search takes between two trials, or before the first, at most."""
LEAST_S, MOST_S = 2.0, 20.0
"""Seconds of a kernel's search at a time, at least and at most; below the least none is begun."""
ROUNDS = 4
"""Searches of a kernel at least, if the shares are even: shares change with what is found."""


@dataclass
class Tuned:
    """A kernel that is tuned.

    Args:
        task: of its program.
        calls: in a run of the network.
        bound: seconds that a call takes at least.
        seconds: of a call, as far as is known.
        spent: seconds of its trials.
        best: candidates that were measured, the best first.
    """

    task: Task[Program]
    calls: int
    bound: float
    seconds: float
    spent: float = 0.0
    best: Sequence[Candidate] = ()

    @property
    def rest(self) -> float:
        """Return seconds of the network that could be gained at most."""
        return self.calls * max(0.0, self.seconds - self.bound)

    def read(self, store: Store, level: LoopsLevel) -> None:
        """Take over what a store has."""
        objective, costs = self.task.objectives[0], dict[Candidate, float]()
        self.spent = last = 0.0
        for trial in store.trials(self.task.key, level.steps):
            # Searches propose between trials; other kernels' searches may be between them too.
            self.spent += max(sum(trial.seconds.values()), min(GAP_S, max(0.0, trial.time - last)))
            last = trial.time
            cost = trial.cost(objective)
            if cost is not None and level.exportable(trial.candidate):
                costs[trial.candidate] = min(cost, costs.get(trial.candidate, cost))
        self.best = sorted(costs, key=lambda candidate: costs[candidate])[:BEST]
        if self.best:
            self.seconds = costs[self.best[0]]


def tune(
    kernels: Sequence[Kernel],
    times: Mapping[str, float],
    seconds: float,
    store: Store | str | Path | None,
    target: Target,
    say: Callable[[str], None],
    start: ExecutorFactory = LocalExecutor,
) -> Mapping[str, Sequence[Candidate]]:
    """Tune the distinct kernels of a network.

    Args:
        kernels: all of the network.
        times: a kernel's program, as text, to the seconds of a call with its default schedule.
        seconds: for all searches, with those whose trials are stored.
        store: where trials are kept.
        target: the machine.
        say: is called with lines on the progress.
        start: starts the workers.

    Returns:
        A kernel's program, as text, to its best candidates; of kernels that have some.
    """
    from planish.store import store_at
    from planish.tuning.api import task_of, tune_program
    from planish.tuning.engine import count_workers
    from planish.tuning.settings import Budget, Settings

    level, settings = LoopsLevel(), Settings(cores=target.cores)
    calls = Counter(kernel.program.text for kernel in kernels if not kernel.transform)
    programs = {kernel.program.text: kernel.program for kernel in kernels if not kernel.transform}
    peak = quick_peak(target.toolchain["backend"]) * 1e9 * target.cores
    tuned = {
        text: Tuned(
            task_of(level, program, settings), calls[text], least_work(program) / peak, times.get(text, 0.0)
        )
        for text, program in programs.items()
    }
    end = time.monotonic() + seconds
    with store_at(store) as opened, ExitStack() as stack:
        for each in tuned.values():
            each.read(opened, level)
        executor: Executor | None = None
        while (found := next_search(tuned, seconds, end - time.monotonic())) is not None:
            text, share = found
            each = tuned[text]
            if executor is None:
                begun = executors_for(start, level, each.task)
                spec, workers = level.evaluator(each.task), count_workers(settings)
                executor = stack.enter_context(begun(spec, workers=workers))
            say(f"tuning for {share:.0f} s: {one_line(text, 80)}")
            before = each.spent
            with suppress(AllFailedError):
                result = tune_program(
                    level, each.task.program, budget=Budget(seconds=share), settings=settings,
                    store=opened, executor=executor, compares=False,
                )  # fmt: skip
                if result.stopped:
                    what = "stopped while the kernels were tuned"
                    raise StoppedError(what, "Run the same command to resume.", stopped_by())
            each.read(opened, level)
            # What did not end in time is not stored, and has taken its time all the same.
            each.spent = max(each.spent, before + share)
    return {text: each.best for text, each in tuned.items() if each.best}


def next_search(tuned: Mapping[str, Tuned], seconds: float, left: float) -> tuple[str, float] | None:
    """Return the kernel that lacks most of its share, and the seconds to search it; None where none does.

    Args:
        tuned: by the text of its program.
        seconds: for all kernels.
        left: of them, for this command.
    """
    whole = sum(each.rest for each in tuned.values())
    if not whole or left < LEAST_S / 2:
        return None
    lacking = {text: seconds * each.rest / whole - each.spent for text, each in tuned.items()}
    text = max(lacking, key=lambda each: lacking[each])
    part = max(LEAST_S, min(MOST_S, seconds / (ROUNDS * len(tuned))))
    if lacking[text] < LEAST_S / 2:
        return None
    return text, min(part, lacking[text], left)
