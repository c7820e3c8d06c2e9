"""Are verdicts true on a busy machine? Comparisons of work whose ratio is known, beside our own burners.

    python benchmarks/verdicts.py --count 5 --save verdicts.jsonl

Each comparison is of five: the baseline, and what is 1, 1.02, 1.05 and 1.2 times as fast, in fresh worker
processes, by the code that compares finalists at the end of a run. With `--save` results are added to a
file, and all that are in it are told. Targets, of 100 verdicts: 90 intervals cover the truth, and at most 5
of 100 equals are called faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from known_work import Work, Worker, calls
from planish.core import Candidate, Objective, Ratio
from planish.executors import LocalExecutor
from planish.measure import PairedSamples, Plan, Variant, Yardstick, remeasure

GAINS = (1.0, 1.02, 1.05, 1.2)
WHOLE = 714
"""Rounds come in multiples of this, so that each gain is exact."""
TIME = Objective("time_s", "s")
BURNER = "while True: pass"


@dataclass(frozen=True)
class Found:
    """A verdict.

    Args:
        setting: the burners, how the work was timed, and how long a call is.
        gain: the truth.
        seconds: that the comparison of all took.
        verdict: what was said.
        by_processor: whether processor time decided.
        decided: the interval of the gain.
        wall: the same by the clock alone.
        processes: in how many it was measured.
    """

    setting: str
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
    parser.add_argument("--count", type=int, default=25, help="comparisons, of four each")
    parser.add_argument("--seconds", type=float, default=15.0, help="bound of a comparison")
    parser.add_argument("--load", type=int, default=5, help="burners")
    parser.add_argument("--call", type=float, default=5e-3, help="seconds of a call of the baseline")
    parser.add_argument("--kind", choices=["alone", "paired"], default="paired")
    parser.add_argument("--save", type=Path, help="where results are kept")
    asked = parser.parse_args()
    known = _read(asked.save)
    setting = f"load {asked.load}, {asked.kind}, {asked.call * 1e3:g} ms, {asked.seconds:g} s"
    with burning(asked.load):
        for number in range(asked.count):
            seed = len(known) + number
            found = compared(setting, asked.kind == "paired", asked.call, asked.seconds, seed)
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


def compared(setting: str, paired: bool, call_s: float, seconds: float, seed: int) -> list[Found]:
    """Compare all gains at once."""
    rounds = round(call_s / _round_s() / WHOLE) * WHOLE
    spec = Worker(rounds if paired else 0, Yardstick())
    everybody = [Variant(str(g), Candidate((Work(round(rounds / g)),)), spec) for g in (1.0, *GAINS)]
    began = time.monotonic()
    _, *others = remeasure(everybody[0], everybody[1:], TIME, LocalExecutor, Plan(seed=seed, seconds=seconds))
    took = time.monotonic() - began
    return [_found(setting, gain, took, each) for gain, each in zip(GAINS, others, strict=True)]


def _round_s() -> float:
    """Give the processor time of a round, in seconds."""
    count, run = 20_000, calls(20_000)
    start = time.process_time()
    run(1)
    return (time.process_time() - start) / count


def _found(setting: str, gain: float, seconds: float, sampled: PairedSamples) -> Found:
    evidence = sampled.evidence
    assert evidence is not None
    return Found(
        setting,
        gain,
        seconds,
        sampled.verdict,
        evidence.by_processor,
        _gains(evidence.ratio),
        _gains(evidence.wall),
        len(sampled.values),
    )


def _gains(ratio: Ratio) -> tuple[float, float]:
    return 1 / ratio.high, 1 / ratio.low


def _read(path: Path | None) -> list[Found]:
    if path is None or not path.exists():
        return []
    return [Found(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def show(found: Sequence[Found]) -> None:
    """Print a table of what was found."""
    columns = ("gain", "verdicts", "covered", "faster", "slower", "width", "by CPU", "processes")
    print("".join(f"{name:>10}" for name in (*columns, "clock:", "covered", "width")))
    for gain in GAINS:
        of = [each for each in found if each.gain == gain]
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
        f"{covered(decided):>10}{verdicts.count('better'):>10}{verdicts.count('worse'):>10}{width(decided):>10.1%}"
        f"{by_cpu:>10.0%}{processes:>10.1f}{'':>10}{covered(wall):>10}{width(wall):>10.1%}"
    )


if __name__ == "__main__":
    main()
