"""Choice of the kernels' schedules: default and tuned ones, measured in the library that they are for."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import Candidate, ExecutorFactory, ProgramError, Target
from planish.levels.loops.backends import PREFERRED, UseBackend, this_machine
from planish.levels.loops.space.template import TemplateSpace
from planish.network.algorithms import arranged
from planish.network.fusion import Kernel, kernels_of
from planish.network.library import Schedule, build, compile_schedule, is_foreign, write_library
from planish.network.measuring import layer_times
from planish.network.model import Network
from planish.network.plain import PlainKernel
from planish.network.runtime import CompiledNetwork
from planish.network.tuning import BEST, tune
from planish.network.winograd import POINTS, allowed_tiles, convolution_of, with_winograd
from planish.sandbox.fork_pool import ForkLimits, in_child
from planish.sandbox.limits import ExitStatus

if TYPE_CHECKING:
    from planish.store import Store

MOST_S = 600.0
"""Seconds of the processor that timing all layers once may take."""


def choose(
    network: Network,
    kernels: Sequence[Kernel | PlainKernel],
    target: Target,
    seconds: float | None,
    store: Store | str | Path | None,
    say: Callable[[str], None],
    start: ExecutorFactory,
) -> tuple[dict[str, Schedule], int]:
    """Choose a schedule for each distinct kernel: the default one, or the quickest by measurement.

    Args:
        network: what is computed.
        kernels: its kernels.
        target: the machine.
        seconds: for tuning; None or 0 for none.
        store: where trials are kept.
        say: is called with lines on the progress.
        start: starts the workers that tune.

    Returns:
        The schedules, and how many kernels have others than the default ones to choose from.
    """
    tunable = [kernel for kernel in kernels if isinstance(kernel, Kernel)]
    distinct = {kernel.program.text: kernel for kernel in tunable}
    default = {text: _default(kernel, target) for text, kernel in distinct.items()}
    schedules = {text: compile_schedule(distinct[text], steps, target) for text, steps in default.items()}
    options, tuned = [schedules], dict[str, Sequence[Candidate]]()
    if seconds:
        calls = Counter(kernel.program.text for kernel in tunable)
        times = _kernel_times(network, kernels, schedules, target)
        each = {text: whole / calls[text] for text, whole in times.items()}
        tuned = tune(tunable, each, seconds, store, target, say, start)
        for rank in range(BEST):
            ranked = {text: best[rank] for text, best in tuned.items() if rank < len(best)}
            made = {text: compile_schedule(distinct[text], steps, target) for text, steps in ranked.items()}
            options.append({**schedules, **made})
    if not is_foreign(target) and any(s.is_shared for option in options for s in option.values()):
        # On one core, the schedules are the same, or the default ones for one core.
        one = this_machine(1)
        options += [{text: replace(s, cores=1) for text, s in option.items()} for option in options]
        options.append({text: compile_schedule(k, _default(k, one), one) for text, k in distinct.items()})
    if len(options) > 1:
        schedules = _quickest(network, kernels, options, target)
    if target.cores > 1:
        count = sum(schedule.is_shared for schedule in schedules.values())
        say(f"{count} of {len(schedules)} distinct kernels run on {target.cores} cores, the others on one")
    return schedules, len(tuned)


def _default(kernel: Kernel, target: Target) -> Candidate:
    """Return the schedule of a kernel that is not tuned."""
    if kernel.transform:
        # Its body is long and has more values than registers, which LLVM allocates well.
        return Candidate((UseBackend(PREFERRED[-1]),))
    return TemplateSpace(kernel.program, target).start()


def _quickest(
    network: Network,
    kernels: Sequence[Kernel | PlainKernel],
    options: Sequence[Mapping[str, Schedule]],
    target: Target,
) -> dict[str, Schedule]:
    """Measure libraries of several schedules for each kernel, and return the quickest of each."""
    best = dict[str, tuple[float, Schedule]]()
    for schedules in options:
        for text, seconds in _kernel_times(network, kernels, schedules, target).items():
            if text not in best or seconds < best[text][0]:
                best[text] = seconds, schedules[text]
    return {text: schedule for text, (_, schedule) in best.items()}


def _kernel_times(
    network: Network,
    kernels: Sequence[Kernel | PlainKernel],
    schedules: Mapping[str, Schedule],
    target: Target,
) -> Mapping[str, float]:
    """Time the distinct kernels that have a schedule, in a library; return seconds of all calls of each."""
    found, times = _times(network, kernels, schedules, target), dict[str, float]()
    for kernel, seconds in zip(kernels, found, strict=True):
        if kernel.program.text in schedules:
            times[kernel.program.text] = times.get(kernel.program.text, 0.0) + seconds
    return times


def _times(
    network: Network,
    kernels: Sequence[Kernel | PlainKernel],
    schedules: Mapping[str, Schedule],
    target: Target,
) -> Sequence[float]:
    """Time all kernels in a library."""
    with tempfile.TemporaryDirectory(prefix="planish-network-") as folder:
        write_library(build(network, kernels, schedules, target), Path(folder))
        # In a child the library is gone afterwards, with its weights and threads.
        found = in_child(
            lambda: layer_times(CompiledNetwork(folder), network), list[float], ForkLimits(MOST_S, 0)
        )
    if isinstance(found, ExitStatus):
        what = f"a kernel ends its process: {found.detail}"
        raise ProgramError(what, "Report it as a defect, with the model.")
    return found


def with_quickest_algorithms(
    network: Network, tolerance: float, target: Target, say: Callable[[str], None]
) -> Network:
    """Choose the algorithm of each convolution by measurement; equal layers have the same.

    Args:
        network: as it was read.
        tolerance: largest difference of an output, as a share of its largest number.
        target: this machine.
        say: is called with lines on the progress.
    """
    network = arranged(network)
    allowed = allowed_tiles(network, tolerance)
    layers = {
        node.output: (network.shape(node.inputs[1]), network.shape(node.output))
        for node in network.nodes
        if node.output in allowed
    }
    shared = {layer: set(POINTS) for layer in layers.values()}
    for name, layer in layers.items():
        shared[layer] &= set(allowed[name])
    costs: dict[object, dict[int, float]] = {layer: {} for layer in shared}
    # 0 stands for the direct algorithm.
    for tile in (0, *POINTS) if allowed else ():
        chosen = {name: tile for name, layer in layers.items() if tile in shared[layer]}
        if tile and not chosen:
            continue
        variant = with_winograd(network, chosen if tile else {})
        kernels = kernels_of(variant)
        schedules = {
            k.program.text: compile_schedule(k, _default(k, target), target)
            for k in kernels
            if isinstance(k, Kernel)
        }
        for kernel, seconds in zip(kernels, _times(variant, kernels, schedules, target), strict=True):
            name = convolution_of(kernel.nodes[0].output)
            if name in layers and (name in chosen or not tile):
                cost = costs[layers[name]]
                cost[tile] = cost.get(tile, 0.0) + seconds
    best = {layer: min(cost, key=lambda tile: cost[tile]) for layer, cost in costs.items()}
    count = sum(best[layer] > 0 for layer in layers.values())
    say(f"{count} of {len(layers)} convolutions of 3x3 are quicker by Winograd's algorithm")
    return with_winograd(network, {name: best[layer] for name, layer in layers.items() if best[layer]})
