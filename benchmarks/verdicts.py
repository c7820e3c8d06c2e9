"""Are verdicts true on a busy machine? Comparisons of work whose ratio is known, beside our own burners.

    python benchmarks/verdicts.py --kind loops --burners 5 --count 200 --save verdicts.jsonl
    python benchmarks/verdicts.py --kind graph --burners 5 --count 200 --save verdicts.jsonl

Each comparison is of a baseline and of what is 1, 1.05 and 1.2 times as fast, in fresh worker processes, by
the code that compares finalists at the end of a run. The work is kernels of loops, as the level times them
(`loops`); networks in sessions of ONNX Runtime, timed beside the baseline as the level `graph` has it
(`graph`); or hashes, timed in either way (`alone`, `paired`). With `--save` each comparison is added to a
file as it is done, and the same command goes on where it was interrupted. Targets, of 200 comparisons:
at most 4 of equals are called faster, and 95 % of the intervals hold the truth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from known_work import Layers, Networks, Work, Worker, calls, write_network
from planish.core import Candidate, Objective, Ratio
from planish.core.registry import load_program
from planish.measure import PairedSamples, Plan, SharedBaselineTime, Variant
from planish.measure.comparison import remeasure
from planish.measure.executors import LocalExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

GAINS = (1.0, 1.05, 1.2)
KINDS = ("loops", "graph", "alone", "paired")
WHOLE = 42
"""Amounts of work come in multiples of this, so that each gain is exact."""
MOST = 40
CALL_S = 5e-3
"""A call of the baseline, where hashes are the work."""
TIME = Objective("time_s", "s")
BURNER = "while True: pass"


@dataclass(frozen=True)
class Found:
    """A verdict.

    Args:
        setting: the burners, how the work was timed, and how long a call is.
        number: of the comparison.
        gain: the truth.
        seconds: that the comparison of all took.
        verdict: what was said.
        by_processor: whether processor time decided.
        decided: the interval of the gain.
        wall: the same by the clock alone.
        processes: in how many it was measured.
    """

    setting: str
    number: int
    gain: float
    seconds: float
    verdict: str
    by_processor: bool
    decided: tuple[float, float]
    wall: tuple[float, float]
    processes: int


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=KINDS, default="loops")
    parser.add_argument("--count", type=int, default=60, help="comparisons, with those in the file")
    parser.add_argument("--seconds", type=float, default=15.0, help="bound of a comparison")
    parser.add_argument("--burners", type=int, default=5, help="processes that keep the machine busy")
    parser.add_argument("--save", type=Path, help="where results are kept")
    asked = parser.parse_args()
    known = _read(asked.save)
    setting = f"{asked.kind}, {asked.burners} burners, {asked.seconds:g} s"
    done = max((each.number + 1 for each in known if each.setting == setting), default=0)
    with burning(asked.burners), tempfile.TemporaryDirectory() as folder:
        for number in range(done, asked.count):
            plan = Plan(seed=number, seconds=asked.seconds, most=MOST)
            baseline, *faster = variants(asked.kind, Path(folder))
            found = compared(setting, baseline, faster, plan)
            known += found
            if asked.save:
                with asked.save.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(each)) + "\n" for each in found)
    for each in dict.fromkeys(found.setting for found in known):
        print(each)
        show([found for found in known if found.setting == each])


@contextmanager
def burning(count: int) -> Generator[None]:
    """Keep so many processes busy meanwhile."""
    burners = [subprocess.Popen([sys.executable, "-c", BURNER]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def compared(setting: str, baseline: Variant, faster: Sequence[Variant], plan: Plan) -> list[Found]:
    """Compare all gains at once.

    Args:
        setting: as in what is found.
        baseline: what the others are compared with.
        faster: one for each of `GAINS`.
        plan: its seed is the number of the comparison. A busy machine has the time for one of them alone, the
            first: in each comparison another one.
    """
    began, turn = time.monotonic(), plan.seed % len(GAINS)
    pairs = [*zip(GAINS, faster, strict=True)]
    pairs = pairs[turn:] + pairs[:turn]
    _, *others = remeasure(baseline, [variant for _, variant in pairs], TIME, LocalExecutor, plan)
    took = time.monotonic() - began
    return [
        _found(setting, plan.seed, gain, took, each)
        for (gain, _), each in zip(pairs, others, strict=True)
        if each.evidence is not None
    ]


def variants(kind: str, folder: Path) -> list[Variant]:
    """Make the baseline, and what is so many times as fast."""
    amounts = [WHOLE, *(round(WHOLE / gain) for gain in GAINS)]
    if kind == "loops":
        return [_kernel(amount) for amount in amounts]
    if kind == "graph":
        for amount in {*amounts}:
            if not (file := folder / f"{amount}.onnx").exists():
                write_network(file, amount)
        networks = Networks(folder, WHOLE, SharedBaselineTime())
        return [Variant(str(amount), Candidate((Layers(amount),)), networks) for amount in amounts]
    unit = max(1, round(CALL_S / _round_s() / WHOLE))
    worker = Worker(WHOLE * unit if kind == "paired" else 0, SharedBaselineTime())
    return [Variant(str(amount), Candidate((Work(amount * unit),)), worker) for amount in amounts]


def _kernel(amount: int) -> Variant:
    """Make a kernel of so many equal products of matrices, with an evaluator and memory of its own."""
    size = f"b={amount},m=32,n=32,k=32"
    level, program = load_program("C[b,m,n] += A[b,m,k] * B[k,n]", "loops", {"size": size})
    task = task_of(level, program, Settings(cores=1))
    return Variant(str(amount), level.space(task, level.spaces[0]).start(), level.evaluator(task, final=True))


def _round_s() -> float:
    """Give the processor time of a round, in seconds."""
    count, run = 20_000, calls(20_000)
    start = time.process_time()
    run(1)
    return (time.process_time() - start) / count


def _found(setting: str, number: int, gain: float, seconds: float, sampled: PairedSamples) -> Found:
    evidence = sampled.evidence
    assert evidence is not None
    return Found(
        setting,
        number,
        gain,
        seconds,
        sampled.verdict,
        evidence.by_processor,
        _gains(evidence.ratio),
        _gains(evidence.wall),
        len(sampled.values),
    )


def _gains(ratio: Ratio) -> tuple[float, float]:
    gain = ratio.gain(TIME)
    return gain.low, gain.high


def _read(path: Path | None) -> list[Found]:
    if path is None or not path.exists():
        return []
    return [Found(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def show(found: Sequence[Found]) -> None:
    """Print a table of what was found."""
    words = ("faster", "slower", "same", "undecided")
    columns = ("gain", "verdicts", "covered", *words, "width", "by CPU", "processes")
    print("".join(f"{name:>10}" for name in (*columns, "clock:", "covered", "width")))
    for gain in GAINS:
        if of := [each for each in found if each.gain == gain]:
            print(f"{gain:>10g}{len(of):>10}" + _line(of))
    print(f"{'all':>10}{len(found):>10}" + _line(found))
    print(f"{statistics.fmean(each.seconds for each in found) / len(GAINS):.1f} s a verdict")


def _line(found: Sequence[Found]) -> str:
    def covered(intervals: Sequence[Sequence[float]]) -> int:
        return sum(low <= each.gain <= high for each, (low, high) in zip(found, intervals, strict=True))

    def width(intervals: Sequence[Sequence[float]]) -> float:
        return statistics.median(high / low - 1 for low, high in intervals)

    decided, wall = [each.decided for each in found], [each.wall for each in found]
    verdicts = [each.verdict for each in found]
    by_cpu = statistics.fmean(each.by_processor for each in found)
    processes = statistics.fmean(each.processes for each in found)
    return (
        f"{covered(decided):>10}{verdicts.count('better'):>10}{verdicts.count('worse'):>10}"
        f"{verdicts.count('same'):>10}{verdicts.count('undecided'):>10}{width(decided):>10.1%}"
        f"{by_cpu:>10.0%}{processes:>10.1f}{'':>10}{covered(wall):>10}{width(wall):>10.1%}"
    )


if __name__ == "__main__":
    main()
