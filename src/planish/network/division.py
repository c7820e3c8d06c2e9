"""Division of a network's layers among cores.

A line that one core has written takes another core tens of nanoseconds to read, up to a hundred where the
cores have no cache in common: more than most layers compute with it. So layers that follow each other are
divided in the same way: each core computes a share of the first dimension of a result, which is rows of an
image or of a sequence, and reads what it wrote itself, except for the borders.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from planish.core import Candidate, ScheduleError
from planish.levels.loops.backends import schedule_of
from planish.levels.loops.ir.schedule import loop_text, plain_axis
from planish.levels.loops.lang.program import Program
from planish.levels.loops.steps import Parallel, Reorder, Split
from planish.network.fusion import FusedKernel, Kernels
from planish.network.ir import Network
from planish.network.library.schedule import Schedule

CHUNKS = 4
"""Parts of a dimension for each core at most: a core that is done early takes parts of others."""
UNEVEN = 1.03
"""Most that the largest share of a core may be, as a multiple of the least possible, for more parts."""
TRANSFER_S = 3e-10
"""Seconds a byte until another core has what one has written."""


def divide_rows(program: Program, candidate: Candidate, cores: int) -> Candidate:
    """Return a schedule whose threads share the first dimension of the result, where they can.

    Args:
        program: with one output.
        candidate: a schedule, which may share another loop.
        cores: threads.

    Returns:
        The changed schedule; the given one where the dimension is too short, or its loop cannot be shared.
    """
    steps = tuple(step for step in candidate.steps if not (isinstance(step, Parallel) and not step.nest))
    try:
        schedule = schedule_of(program, Candidate(steps))
        main = schedule.nest("")
        nest, order = schedule.graph.nests[main], schedule.loops[main]
        index = [plain_axis(each) for each in nest.statement.target.index]
        axis = next(each for each in index if each and each in dict(order))
        extent, least = program.size[axis], max(step for name, step in order if name == axis)
        if order[0] == (axis, least) and extent > least * cores:
            return Candidate((*steps, Parallel(loop_text(order[0]))))
        chunk = _chunk(extent, least, cores)
        loops = [(axis, chunk), *(loop for loop in order if loop != (axis, chunk))]
        split = (Split(axis, chunk),) if chunk > least else ()
        names = tuple(map(loop_text, loops))
        made = Candidate((*steps, *split, Reorder(names), Parallel(names[0])))
        schedule_of(program, made)
    except (ScheduleError, StopIteration):  # where it has no loop, or one of a reduced axis
        return candidate
    return made


def division_of(schedule: Schedule) -> tuple[str, ...] | None:
    """Return the axes that threads share in a schedule; None where one thread computes all."""
    if not schedule.is_shared:
        return None
    shared = [step.loop for step in schedule.candidate.steps if isinstance(step, Parallel)]
    return tuple(loop.split(":")[0] for loop in shared)


def transfer_times(network: Network, kernels: Kernels, cores: int) -> Mapping[str, float]:
    """Estimate the seconds that kernels wait for each other's results where they are divided differently.

    Args:
        network: which they compute.
        kernels: all of them.
        cores: threads; one waits for nothing.

    Returns:
        For each program's text the seconds of all its kernels.
    """
    found: dict[str, float] = {}
    for kernel in kernels:
        if isinstance(kernel, FusedKernel):
            read = {network.root(name) for name in kernel.operands.values()} - network.constants.keys()
            moved = sum(network.types[name].bytes for name in (*read, kernel.output) if name in network.types)
            seconds = TRANSFER_S * moved * (cores - 1) / cores
            found[kernel.program.text] = found.get(kernel.program.text, 0.0) + seconds
    return found


def _chunk(extent: int, least: int, cores: int) -> int:
    """Return how long the parts of a dimension are: a multiple of `least`, and as even as can be."""
    tiles = -(-extent // least)
    sizes = range(-(-tiles // (cores * CHUNKS)), -(-tiles // cores) + 1)
    largest = {size * least: _largest_share(extent, size * least, cores) for size in sizes}
    return next(size for size, share in largest.items() if share <= UNEVEN * min(largest.values()))


def _largest_share(extent: int, chunk: int, cores: int) -> int:
    """Return the most elements of a core, of which each begins with as many parts."""
    count = -(-extent // chunk)
    bounds = [min(extent, chunk * (count * core // cores)) for core in range(cores + 1)]
    return max(b - a for a, b in pairwise(bounds))
