"""Selection of an einsum's backend by the time of whole calls, interleaved with each other."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from planish.core import rng
from planish.einsum.backends import Contraction, EinsumBackend
from planish.measure import Clocks, repeated, runqueue_delay, wait_for_idle_threads
from planish.measure.intervals import ratio
from planish.measure.timing import Took, timed

Array = NDArray[Any]
Block = Callable[[int], Took]
"""Makes n calls and returns how long they took."""

ROUNDS, LEAST_ROUNDS = 12, 2
"""Rounds of a comparison at most, and at least."""
BLOCKS = 4
"""Blocks of each backend in a round, where calls are short; each takes `BLOCK_S`."""
BLOCK_S = 1e-3
"""Long enough that a kernel's threads, which still wait for work, are asleep for most of it."""
ROUND_S = 0.01
"""Of a backend's blocks in a round, unless a single call takes longer; there are more rounds then."""
IDLE_WAIT_S = 0.15
"""OpenBLAS's threads look for work no longer after a multiplication."""
SPIN_S = 2 * BLOCK_S
"""The threads of a kernel wait for work no longer: those of the next backend would have to wait for them."""
SHARED = 1.2
"""Multiple of the calling thread's processor time from which on several cores are at work."""
DISTURBED = 0.1
"""Share of the time without a core beyond which a thread's wall time measures other processes, too."""
SAMPLE = 1 << 20
"""Multiplications of the part of an einsum that shows whether NumPy's own loop is worth a whole call."""
LONG_S = 0.02
"""Seconds of a call from which on it is timed once: noise is small beside it."""
HOPELESS = 1.5
"""Multiple of the best backend's shortest call beyond which a backend is timed no further."""
WORTH = 0.97
"""A kernel that takes more than this share of the time of NumPy's best backend is not taken: noise."""
LOOP_ADVANTAGE = 2
"""Times as fast as NumPy's multiplication that its loop has to seem to be taken on a loaded machine."""


@dataclass(frozen=True)
class CallComparison:
    """Times of calls.

    Args:
        wall: seconds of a call in each block, by backend; as many for each backend, those at one index are of
            neighboring moments.
        processor: the same by the calling thread's processor time.
        delayed: the share of the time in which a thread of this process had no core, because of others.
        one_core: whether the calling thread did all the work, so that its processor time measures it.
    """

    wall: Mapping[EinsumBackend, Sequence[float]]
    processor: Mapping[EinsumBackend, Sequence[float]]
    delayed: float
    one_core: bool


def block_of_calls(backend: EinsumBackend, operands: Sequence[Array]) -> Block:
    """Return a function that times calls of a backend."""
    call = backend.call
    return timed(repeated(lambda: call(*operands)), Clocks(time.perf_counter_ns, time.thread_time_ns))


def compare(
    blocks: Mapping[EinsumBackend, Block],
    calls: Mapping[EinsumBackend, int],
    blocks_per_round: int,
    end: float,
) -> CallComparison:
    """Time backends in interleaved blocks: kernels first in each round, then NumPy's.

    NumPy's threads go to sleep before the next round. `planish.measure.comparison_rounds` interleaves
    programs that are each alone in a process, for seconds; here all share the caller's process, for some
    milliseconds.

    Args:
        blocks: what times a backend.
        calls: how many are timed at once.
        blocks_per_round: of each backend.
        end: begin no round later, by the monotonic clock; there are `LEAST_ROUNDS` in any case.
    """
    wall: dict[EinsumBackend, list[float]] = {backend: [] for backend in blocks}
    processor: dict[EinsumBackend, list[float]] = {backend: [] for backend in blocks}
    kernels = [backend for backend in blocks if backend.name == "kernel"]
    several = any(backend.cores > 1 for backend in kernels)
    groups = (kernels, [backend for backend in blocks if backend not in kernels])
    delayed, ran = runqueue_delay(), [time.process_time(), time.thread_time()]
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS + (blocks_per_round == 1) and time.monotonic() > end:
            break
        if number and several and delayed() > DISTURBED:
            break  # several cores are needed, and others hold some: more rounds would say nothing
        wait_for_idle_threads(IDLE_WAIT_S)
        for group in groups:
            for backend in _shuffled(group, blocks_per_round, number):
                if calls[backend] > 1:
                    blocks[backend](1)  # wakes its threads
                took = blocks[backend](calls[backend])
                wall[backend].append(took.wall / calls[backend])
                processor[backend].append(took.processor / calls[backend])
    process_s, thread_s = time.process_time() - ran[0], time.thread_time() - ran[1]
    one_core = process_s <= SHARED * thread_s and not several
    return CallComparison(wall, processor, delayed(), one_core)


def _shuffled(backends: Sequence[EinsumBackend], times: int, number: int) -> Sequence[EinsumBackend]:
    """Return each backend a number of times, in an order that differs from time to time."""
    drawn = rng(0, number)
    return [backends[index] for _ in range(times) for index in drawn.permutation(len(backends)).tolist()]


@dataclass(frozen=True)
class Selection:
    """The backend that is selected.

    Args:
        backend: the fastest; NumPy's better one where that is not certain.
        samples: seconds of a call in each block, by backend; of those that are hopeless, what showed it.
        conclusive: whether it holds from now on; it does not where others disturbed the comparison.
    """

    backend: EinsumBackend
    samples: Mapping[EinsumBackend, Sequence[float]]
    conclusive: bool = True


def select_fastest(
    backends: Sequence[EinsumBackend], contraction: Contraction, operands: Sequence[Array], seconds: float
) -> Selection:
    """Select the backend whose whole call takes the least time.

    Args:
        backends: NumPy's einsum first.
        contraction: what they compute.
        operands: to compute it of.
        seconds: to spend; every backend that is not hopeless takes a few blocks all the same.
    """
    end = time.monotonic() + seconds
    wait_for_idle_threads(IDLE_WAIT_S)  # the caller may have multiplied just now
    delayed = runqueue_delay()
    # Kernels first: after a multiplication, OpenBLAS's threads still look for work.
    loop, *others = sorted(
        backends, key=lambda backend: (backend is not backends[0], backend.name != "kernel")
    )
    blocks = {backend: block_of_calls(backend, operands) for backend in others}
    shortest = {backend: _shortest_call(block, after_s=SPIN_S) for backend, block in blocks.items()}
    by_part = _estimate_from_part(loop, contraction, operands)
    least = {**{backend: took.wall for backend, took in shortest.items()}, loop: by_part}
    processor = {**{backend: [took.processor] for backend, took in shortest.items()}, loop: [by_part]}
    best = min(least.values())
    if by_part < HOPELESS * best:
        blocks[loop] = block_of_calls(loop, operands)
    timed_further = {
        backend: blocks[backend] for backend in blocks if least[backend] <= max(HOPELESS * best, BLOCK_S)
    }
    known = {backend: [seconds] for backend, seconds in least.items()}
    before = delayed()
    numpys = _best_numpy((backend for backend in backends if backend.name != "kernel"), processor)
    if not _kernels(backends):
        return Selection(numpys if before > DISTURBED else _best(timed_further, known), known)
    if before > DISTURBED:
        # Times of several cores say nothing now; the processor time of one does.
        one = {backend: block for backend, block in blocks.items() if backend.cores == 1}
        most = max(HOPELESS * min(least[backend] for backend in one), BLOCK_S)
        timed_further = {
            backend: block
            for backend, block in one.items()
            if backend.name != "kernel" or least[backend] <= most
        }
        if not _kernels(timed_further):
            return Selection(numpys, known, conclusive=all(backend.cores == 1 for backend in backends))
    if len(timed_further) == 1:
        return Selection(next(iter(timed_further)), known)
    calls = {backend: math.ceil(BLOCK_S / least[backend]) for backend in timed_further}
    longest = max(BLOCK_S, *(least[backend] for backend in timed_further))
    per_round = max(1, min(BLOCKS, int(ROUND_S / longest)))
    return select(compare(timed_further, calls, per_round, end), known, before)


def select(
    found: CallComparison, known: Mapping[EinsumBackend, Sequence[float]], before: float = 0.0
) -> Selection:
    """Select by a comparison: a kernel only where it is clearly better, else NumPy's backend.

    A comparison that others disturbed counts where one core does all the work, by processor time. Where only
    NumPy's backend uses several, a kernel is taken provisionally whose processor time is below NumPy's best
    wall time.

    Args:
        found: of the backends that are not hopeless.
        known: seconds of a call of each backend, as they were seen first.
        before: the share of the time in which a thread had no core when they were.
    """
    disturbed = max(found.delayed, before) > DISTURBED
    samples = found.processor if disturbed and found.one_core else found.wall
    seen = {**known, **samples}
    kernels = _kernels(samples)
    others = [backend for backend in samples if backend not in kernels]
    if not (kernels and others):
        return Selection(_best(samples, samples), seen)
    kernel = _best(kernels, samples)
    numpys = _best_numpy(others, found.processor) if disturbed else _best(others, samples)
    over = ratio([samples[kernel]], [samples[numpys]])
    if not disturbed:
        return Selection(kernel if over.value < WORTH else numpys, seen)
    if found.one_core and over.high < 1:
        return Selection(kernel, seen)
    ahead = None if found.one_core else _faster_kernel(kernels, others, found)
    if ahead is not None:
        return Selection(ahead, seen, conclusive=False)
    return Selection(numpys, seen, conclusive=found.one_core and over.low > WORTH)


def _faster_kernel(
    kernels: Iterable[EinsumBackend], numpys: Iterable[EinsumBackend], found: CallComparison
) -> EinsumBackend | None:
    """Return the kernel on one core that beats the best block of NumPy's threads; None if none does."""
    shortest = min(min(found.wall[backend]) for backend in numpys)
    took = {backend: statistics.median(found.processor[backend]) for backend in kernels if backend.cores == 1}
    best = min(took, key=lambda backend: took[backend], default=None)
    return best if best is not None and took[best] < WORTH * shortest else None


def _kernels(backends: Iterable[EinsumBackend]) -> Sequence[EinsumBackend]:
    return [backend for backend in backends if backend.name == "kernel"]


def _best(
    backends: Iterable[EinsumBackend], samples: Mapping[EinsumBackend, Sequence[float]]
) -> EinsumBackend:
    return min(backends, key=lambda backend: statistics.median(samples[backend]))


def _best_numpy(
    backends: Iterable[EinsumBackend], processor: Mapping[EinsumBackend, Sequence[float]]
) -> EinsumBackend:
    """Return NumPy's better backend by the calling thread's processor time, else its multiplication.

    The thread's share of a multiplication is roughly its wall time on cores that nothing else uses.
    """
    return min(
        backends,
        key=lambda backend: (
            (LOOP_ADVANTAGE if backend.name == "einsum" else 1) * statistics.median(processor[backend])
        ),
    )


def _shortest_call(block: Block, after_s: float) -> Took:
    """Return the seconds of a short call by each clock, after a pause; one that takes long is made once."""
    time.sleep(after_s)
    first = block(1)
    found = [first, *(block(1) for _ in range(4 if first.wall < LONG_S else 0))]
    return Took(min(took.wall for took in found), min(took.processor for took in found))


def _estimate_from_part(backend: EinsumBackend, contraction: Contraction, operands: Sequence[Array]) -> float:
    """Estimate a call from one on a part of the operands: NumPy's loop may take minutes for all of them.

    One core does it, so processor time measures it however loaded the machine is.
    """
    sizes = dict(contraction.sizes)
    whole = math.prod(sizes.values())
    while math.prod(sizes.values()) > SAMPLE:
        longest = max(sizes, key=lambda letter: sizes[letter])
        sizes[longest] = -(-sizes[longest] // 2)
    parts = [
        array[tuple(slice(sizes[letter]) for letter in term)]
        for array, term in zip(operands, contraction.terms, strict=True)
    ]
    block = block_of_calls(backend, parts)
    block(1)  # warms up
    return min(block(1).processor for _ in range(3)) * whole / math.prod(sizes.values())
