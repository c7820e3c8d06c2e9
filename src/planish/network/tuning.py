"""Tuning of a network's kernels, and choice of their schedules by measurement.

The time goes where most is expected to be gained. What a search gains grows with the logarithm of its time,
and is at most what is left above the time that the arithmetic and the memory need. So each kernel's share of
the time is proportional to that rest, times the kernel's calls, and the seconds of trials that the store has
count as had already: the same command goes on where it was interrupted, and kernels that other networks have
too are not tuned again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import (
    AllFailedError,
    Candidate,
    Executor,
    ExecutorFactory,
    ProgramError,
    StoppedError,
    Target,
    Task,
)
from planish.core.capabilities import executors_for
from planish.core.process import stopped_by
from planish.core.wording import one_line
from planish.levels.loops.backends import PREFERRED, UseBackend, multiplied_types, this_machine
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.roofline import least_work, quick_peak
from planish.levels.loops.space.template import TemplateSpace
from planish.measure.executors import LocalExecutor
from planish.network.division import divide_rows, division_of, transfer_times
from planish.network.expected_gains import ExpectedGains
from planish.network.fusion import FusedKernel, Kernels
from planish.network.ir import Network
from planish.network.library.assembly import build
from planish.network.library.files import write_library
from planish.network.library.runtime import CompiledNetwork
from planish.network.library.schedule import Schedule, compile_schedule, is_foreign
from planish.network.timing import interleaved_times, layer_times
from planish.sandbox.fork_pool import ForkLimits, in_child
from planish.sandbox.limits import ExitStatus
from planish.sandbox.scratch import Scratch

if TYPE_CHECKING:
    from planish.store import Store


BEST = 3
"""Schedules of a kernel that are compared in the library: the best of many trials is often best by chance."""
FINALISTS = 2
"""Choices of schedules for all kernels that are compared by whole runs, beside that of each by itself."""
LIBRARIES = BEST + FINALISTS + 1
"""Libraries that are built and timed to compare tuned schedules, at most."""
GAP_S = 1.0
"""Seconds that a search takes between two trials, or before the first, at most."""
MIN_SEARCH_S, MAX_SEARCH_S = 2.0, 20.0
"""Seconds of a kernel's search at a time, at least and at most; below the least none is begun."""
LEAST_REST = 0.02
"""Share of a kernel's time that is taken to be gainable at least, however close to its bound it is."""
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
        # The bound comes from a short measurement, which may be wrong on a busy machine.
        return self.calls * max(LEAST_REST * self.seconds, self.seconds - self.bound)

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
    kernels: Sequence[FusedKernel],
    times: Mapping[str, float],
    seconds: float,
    store: Store | str | Path | None,
    target: Target,
    on_progress: Callable[[str], None],
    start: ExecutorFactory = LocalExecutor,
) -> Mapping[str, Sequence[Candidate]]:
    """Tune the distinct kernels of a network.

    Args:
        kernels: all of the network.
        times: a kernel's program, as text, to the seconds of a call with its default schedule.
        seconds: for all searches, with those whose trials are stored.
        store: where trials are kept.
        target: the machine.
        on_progress: is called with lines on the progress.
        start: starts the workers.

    Returns:
        A kernel's program, as text, to its best candidates; of kernels that have some.
    """
    from planish.store import store_at
    from planish.tuning.api import task_of, tune_program
    from planish.tuning.engine import count_workers
    from planish.tuning.settings import Budget, Settings

    level, settings = LoopsLevel(), Settings(cores=target.cores)
    calls = Counter(kernel.program.text for kernel in kernels if not kernel.fixed_tree)
    programs = {kernel.program.text: kernel.program for kernel in kernels if not kernel.fixed_tree}
    peak = _peak(target)
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
            on_progress(f"tuning for {share:.0f} s: {one_line(text, 80)}")
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


def _peak(target: Target) -> float:
    """Return the operations a second of a machine's cores."""
    return quick_peak(target.toolchain["backend"]) * 1e9 * target.cores


def next_search(tuned: Mapping[str, Tuned], seconds: float, left: float) -> tuple[str, float] | None:
    """Return the kernel that lacks most of its share, and the seconds to search it; None where none does.

    Args:
        tuned: by the text of its program.
        seconds: for all kernels.
        left: of them, for this command.
    """
    whole = sum(each.rest for each in tuned.values())
    if not whole or left < MIN_SEARCH_S / 2:
        return None
    lacking = {text: seconds * each.rest / whole - each.spent for text, each in tuned.items()}
    text = max(lacking, key=lambda each: lacking[each])
    part = max(MIN_SEARCH_S, min(MAX_SEARCH_S, seconds / (ROUNDS * len(tuned))))
    if lacking[text] < MIN_SEARCH_S / 2:
        return None
    return text, min(part, lacking[text], left)


TIMING_LIMIT_S = 600.0
"""Seconds of the processor that timing all layers once may take."""


def choose(
    network: Network,
    kernels: Kernels,
    defaults: DefaultTimes,
    seconds: float | None,
    store: Store | str | Path | None,
    on_progress: Callable[[str], None],
    start: ExecutorFactory,
) -> tuple[dict[str, Schedule], int]:
    """Choose a schedule for each distinct kernel: the default one, or the quickest by measurement.

    Args:
        network: what is computed.
        kernels: its kernels.
        defaults: the default schedules, and the machine.
        seconds: for tuning, and for building and timing the libraries that compare schedules; with 0, of the
            stored schedules; None for the default ones.
        store: where trials are kept.
        on_progress: is called with lines on the progress.
        start: starts the workers that tune.

    Returns:
        The schedules, and how many kernels have others than the default ones to choose from.
    """
    tunable, target = [kernel for kernel in kernels if isinstance(kernel, FusedKernel)], defaults.target
    distinct = {kernel.program.text: kernel for kernel in tunable}
    schedules = defaults.schedules(kernels)
    options, tuned = [schedules], dict[str, Sequence[Candidate]]()
    if seconds is not None:
        begun, calls = time.monotonic(), Counter(kernel.program.text for kernel in tunable)
        times = _kernel_times(network, kernels, schedules, target) if seconds else {}
        each = {text: whole / calls[text] for text, whole in times.items()}
        # The libraries of tuned schedules take as long as this one.
        library_s = time.monotonic() - begun
        left = seconds - library_s
        tuned = tune(
            tunable, each, left - min(left / 2, LIBRARIES * library_s), store, target, on_progress, start
        )
        left = seconds - (time.monotonic() - begun)
        ranks = sum(left > (FINALISTS + count) * library_s for count in range(1, BEST + 1))
        for rank in range(max(1, ranks)):
            ranked = {text: best[rank] for text, best in tuned.items() if rank < len(best)}
            made = {text: compile_schedule(distinct[text], steps, target) for text, steps in ranked.items()}
            options += [{**schedules, **made}] if made else []
    if not is_foreign(target) and any(s.is_shared for option in options for s in option.values()):
        # On one core, the schedules are the same, or the default ones for one core.
        one = this_machine(1)
        alone = [{text: replace(s, cores=1) for text, s in option.items()} for option in options]
        alone.append(
            {
                text: replace(schedules[text], cores=1)
                if k.fixed_tree
                else compile_schedule(k, _default(k, one), one)
                for text, k in distinct.items()
            }
        )
        rows = {text: _by_rows(distinct[text], schedule, target) for text, schedule in schedules.items()}
        options += [rows, *alone]
    if len(options) > 1:
        schedules = _quickest(network, kernels, options, target)
    if target.cores > 1:
        count = sum(schedule.is_shared for schedule in schedules.values())
        on_progress(
            f"{count} of {len(schedules)} distinct kernels run on {target.cores} cores, the others on one"
        )
    return schedules, len(tuned)


def _default(kernel: FusedKernel, target: Target) -> Candidate:
    """Return the schedule of a kernel that is not tuned."""
    if kernel.fixed_tree:
        # Its body is long and has more values than registers, which LLVM allocates well.
        return Candidate((UseBackend(PREFERRED[-1]),))
    start = TemplateSpace(kernel.program, target).start()
    if kernel.program.packed <= multiplied_types(target.toolchain["backend"]):
        return start
    return start.then(UseBackend(PREFERRED[-1]))


def _by_rows(kernel: FusedKernel, schedule: Schedule, target: Target) -> Schedule:
    """Return a schedule whose threads share rows, as the kernels with a fixed tree do."""
    if schedule.is_fixed:
        return schedule
    candidate = divide_rows(kernel.program, schedule.candidate, target.cores)
    return schedule if candidate == schedule.candidate else compile_schedule(kernel, candidate, target)


def _quickest(
    network: Network, kernels: Kernels, options: Sequence[Mapping[str, Schedule]], target: Target
) -> dict[str, Schedule]:
    """Measure libraries of several schedules for each kernel, and return those that are quickest together."""
    times = [_kernel_times(network, kernels, schedules, target) for schedules in options]
    found = combine_quickest(options, times, transfer_times(network, kernels, target.cores))
    return found[0] if len(found) == 1 else _quickest_whole(network, kernels, found, target)


def combine_quickest(
    options: Sequence[Mapping[str, Schedule]],
    times: Sequence[Mapping[str, float]],
    transfers: Mapping[str, float],
) -> list[dict[str, Schedule]]:
    """Combine the schedules of several libraries by the times of their kernels.

    A kernel that was measured among others that are divided among cores as it is reads what its core wrote.
    One that is divided otherwise than the kernels around it moves a part of its operands between cores.

    Args:
        options: a schedule of each kernel, for each library.
        times: seconds of all calls of each kernel, for each library.
        transfers: seconds to move the operands of each kernel between cores.

    Returns:
        Those to measure: first the quickest schedule of each kernel by itself, then the combinations that
        are the quickest together with what is moved.
    """

    def cost(text: str, index: int, base: int) -> float:
        """Return the seconds of a kernel with one option's schedule where the others have another's."""
        same = division_of(options[index][text]) == division_of(options[base][text])
        return times[index][text] + (0.0 if same else transfers[text])

    every, choices = range(len(options)), dict[tuple[int, ...], float]()
    texts = list(options[0])
    for base in every:
        chosen = tuple(min(every, key=lambda i, t=t, b=base: cost(t, i, b)) for t in texts)
        choices[chosen] = sum(cost(t, i, base) for t, i in zip(texts, chosen, strict=True))
    alone = tuple(min(every, key=lambda i, t=t: times[i][t]) for t in texts)
    finalists = dict.fromkeys([alone, *sorted(choices, key=choices.__getitem__)[:FINALISTS]])
    return [
        {text: options[index][text] for text, index in zip(texts, chosen, strict=True)}
        for chosen in finalists
    ]


def _quickest_whole(
    network: Network, kernels: Kernels, choices: Sequence[dict[str, Schedule]], target: Target
) -> dict[str, Schedule]:
    """Return the schedules whose library is the quickest, measured interleaved."""
    with ExitStack() as stack:
        folders = [stack.enter_context(Scratch()).path for _ in choices]
        for folder, schedules in zip(folders, choices, strict=True):
            write_library(build(network, kernels, schedules, target), folder)
        times = _in_child(lambda: interleaved_times([CompiledNetwork(f) for f in folders], network))
    return choices[times.index(min(times))]


def _kernel_times(
    network: Network, kernels: Kernels, schedules: Mapping[str, Schedule], target: Target
) -> Mapping[str, float]:
    """Time the distinct kernels that have a schedule, in a library; return seconds of all calls of each."""
    found, times = time_kernels(network, kernels, schedules, target), dict[str, float]()
    for kernel, seconds in zip(kernels, found, strict=True):
        if kernel.program.text in schedules:
            times[kernel.program.text] = times.get(kernel.program.text, 0.0) + seconds
    return times


def time_kernels(
    network: Network, kernels: Kernels, schedules: Mapping[str, Schedule], target: Target
) -> Sequence[float]:
    """Time all kernels in a library."""
    with Scratch() as folder:
        write_library(build(network, kernels, schedules, target), folder.path)
        return _in_child(lambda: layer_times(CompiledNetwork(folder.path), network))


def _in_child(times: Callable[[], list[float]]) -> Sequence[float]:
    """Time libraries in a child: afterwards they are gone, with their weights and threads."""
    found = in_child(times, list[float], ForkLimits(TIMING_LIMIT_S, 0))
    if isinstance(found, ExitStatus):
        what = f"a kernel ends its process: {found.detail}"
        raise ProgramError(what, "Report it as a defect, with the model.")
    return found


class DefaultTimes:
    """Times of kernels with their default schedules, each of which is compiled once.

    Args:
        target: this machine.
        seconds: for measuring choices and for tuning; None for no limit.
    """

    def __init__(self, target: Target, seconds: float | None = None) -> None:
        self.target, self.gains = target, ExpectedGains(seconds)
        self._compiled: dict[str, Schedule] = {}

    def schedules(self, kernels: Kernels) -> dict[str, Schedule]:
        """Return the default schedule of each distinct kernel."""
        distinct = {kernel.program.text: kernel for kernel in kernels if isinstance(kernel, FusedKernel)}
        for text, kernel in distinct.items():
            if text not in self._compiled:
                self._compiled[text] = compile_schedule(kernel, _default(kernel, self.target), self.target)
        return {text: self._compiled[text] for text in distinct}

    def measure(self, network: Network, kernels: Kernels) -> Sequence[float]:
        """Return the seconds of each kernel of a network."""
        begun = time.monotonic()
        found, peak = time_kernels(network, kernels, self.schedules(kernels), self.target), _peak(self.target)
        tunable = [
            (kernel.program, seconds)
            for kernel, seconds in zip(kernels, found, strict=True)
            if isinstance(kernel, FusedKernel) and not kernel.fixed_tree
        ]
        rest = sum(max(0.0, seconds - least_work(program) / peak) for program, seconds in tunable)
        distinct = len({program.text for program, _ in tunable})
        self.gains.note_measurement(time.monotonic() - begun, rest, distinct)
        return found
